"""A line about each command: all that the help of the whole command needs."""

from __future__ import annotations

__all__ = ["GROUPS", "SUMMARIES"]

GROUPS = {
    "start here": {
        "doctor": "check settings and connection, and print the next step",
        "series": "list and search the series, and what is new",
        "read": "read a range into a file or to stdout",
    },
    "set up": {
        "keygen": "make a private key, and print its public half to enroll",
        "profile": "save, list and show settings",
        "completion": "print the completion script of a shell",
    },
    "keep a local copy": {
        "sync": "bring a store up to date",
        "coverage": "show which data of a store is settled, or was never read",
        "changes": "write what changed in a store",
        "store": "check, copy, restore, describe or export a store",
    },
    "operate": {
        "allowance": "show what is left of the daily allowance",
        "agent": "sign and count for many processes",
        "sandbox": "run the service on this machine, for tests and demos",
    },
}
"""In the order of the help. The module of a command has its name."""

SUMMARIES = {name: line for group in GROUPS.values() for name, line in group.items()}
