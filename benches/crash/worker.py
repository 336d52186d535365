"""The process that is killed: one sync. Says on standard output what has been committed.

``begin``, then ``ack N`` after the N-th page of the run was applied, then ``done``, or
``failed CLASS`` for an exception of siteline.
"""

from __future__ import annotations

import json
import os
import sys

import siteline


def say(text: str) -> None:
    """In one system call, so that nothing is said by halves."""
    os.write(1, f"{text}\n".encode())


def main() -> int:
    """Sync once."""
    told = json.loads(sys.argv[1])
    clock = siteline.Clock(told["now"])
    feed = siteline.Feed(**told["feed"])
    try:
        client = siteline.Client.from_env(clock=clock, ledger=told["ledger"])
        with siteline.Store(told["store"]) as store:
            say("begin")
            client.sync(feed, store, progress=lambda progress: say(f"ack {progress.pages}"))
    except siteline.SitelineError as error:
        say(f"failed {type(error).__name__}")
        print(error, file=sys.stderr)
        return 3
    say("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
