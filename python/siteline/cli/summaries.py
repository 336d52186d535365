"""What each command does, in a line: all of it that the help of the whole command needs."""

from __future__ import annotations

__all__ = ["SUMMARIES"]

SUMMARIES = {
    "keygen": "make a key to enroll",
    "profile": "make, list and show profiles",
    "doctor": "look for what is wrong, in the order of cause",
    "token": "check that the service gives a token",
    "discover": "list what may be read, and what of that is new",
    "plan": "show what a read or a sync would cost",
    "pull": "read a range into a file",
    "sync": "bring the feeds of a store up to date",
    "coverage": "show what of a feed has been read",
    "lateness": "show how late the points of a feed come",
    "changes": "write what has changed in a store",
    "store": "check a store, copy it, describe it",
    "allowance": "show the daily allowance as the ledger has counted it",
    "agent": "sign and count for many processes",
    "sandbox": "run the service on this machine, for trying out",
    "completion": "print the completion of a shell",
}
"""In the order of the help; the module of a command has its name."""
