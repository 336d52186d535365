"""The process that is killed: one sync, which reports its commits on standard output.

``begin``; ``forgot NAME`` and ``compacted`` after what is to be done before the sync; ``ack N``
after the N-th page of the run was applied; then ``done``, or ``stopped`` after as many pages as it
was to store, or ``failed CLASS`` for an exception of siteline.
"""

import json
import os
import sys
from typing import Any

import siteline


class Enough(Exception):
    """The run has stored as many pages as it was to store."""


def report(text: str) -> None:
    """Write a line in one system call, so that the reader never gets part of a line."""
    os.write(1, f"{text}\n".encode())


def maintain(store: siteline.Store, job: dict[str, Any]) -> None:
    for name, before in job["forget"].items():
        store.forget(name, before)
        report(f"forgot {name}")
    if job["compact"]:
        store.compact()
        report("compacted")


def main() -> int:
    job = json.loads(sys.argv[1])
    clock = siteline.testing.Clock(job["now"])
    feeds = [siteline.Feed(**feed) for feed in job["feeds"]]

    def page(progress: siteline.types.Progress) -> None:
        report(f"ack {progress.pages}")
        if progress.pages == job["most"]:
            raise Enough

    try:
        client = siteline.Client(clock=clock, ledger=job["ledger"])
        with siteline.Store(job["store"]) as store:
            report("begin")
            maintain(store, job)
            client.sync(feeds, store, progress=page, concurrency=job["concurrency"])
    except Enough:
        report("stopped")
        return 0
    except siteline.SitelineError as error:
        report(f"failed {type(error).__name__}")
        print(error, file=sys.stderr)
        return 3
    report("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
