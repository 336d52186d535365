"""The process that is killed: one sync, which reports its commits on standard output.

``begin``, then ``ack N`` after the N-th page of the run was applied, then ``done``, or
``failed CLASS`` for an exception of siteline.
"""

from __future__ import annotations

import json
import os
import sys

import siteline


def report(text: str) -> None:
    """Write a line in one system call, so that the reader never gets part of a line."""
    os.write(1, f"{text}\n".encode())


def main() -> int:
    """Sync once."""
    job = json.loads(sys.argv[1])
    clock = siteline.Clock(job["now"])
    feed = siteline.Feed(**job["feed"])
    try:
        client = siteline.Client.from_env(clock=clock, ledger=job["ledger"])
        with siteline.Store(job["store"]) as store:
            report("begin")
            client.sync(feed, store, progress=lambda progress: report(f"ack {progress.pages}"))
    except siteline.SitelineError as error:
        report(f"failed {type(error).__name__}")
        print(error, file=sys.stderr)
        return 3
    report("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
