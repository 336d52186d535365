"""A line about each command: all that the help of the whole command needs."""

from __future__ import annotations

GROUPS = {
    "start here": {
        "doctor": "check settings and connection, and print the next step",
        "series": "list and search the series, and show changes",
        "read": "read a range into a file or to stdout",
    },
    "set up": {
        "keygen": "make a private key, and print its public half to enroll",
        "profile": "save, list and show settings",
        "completion": "print the completion script of a shell",
    },
    "keep a local copy": {
        "sync": "bring a store up to date",
        "coverage": "show settled and unread data of a store",
        "changes": "write the changed points of a store",
        "store": "check, backup, restore, info and export of a store",
    },
    "operate": {
        "allowance": "show the rest of the daily allowance",
        "agent": "sign and count for many processes",
        "sandbox": "run the service on this machine, for tests and demos",
    },
}
"""In the order of the help. The module of a command has its name."""

SUMMARIES = {name: line for group in GROUPS.values() for name, line in group.items()}


def overview() -> str:
    """Returns the commands, beginning with those that a beginner needs."""
    width = max(map(len, SUMMARIES))
    lines = ["Reads time series of the Customer Data Service, and keeps a local copy up to date."]
    for title, group in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<{width}}  {line}" for name, line in group.items()]
    return "\n".join([*lines, "", "siteline COMMAND --help shows the options and an example."])


def complete_help() -> str:
    """Returns the help of the whole command. It needs no argparse, which would double its time."""
    from siteline.cli.exits import table

    usage = "usage: siteline [-h] [--version] COMMAND ..."
    return f"{usage}\n\n{overview()}\n\nexit status:\n{table()}\n"
