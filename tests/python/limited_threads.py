"""A program that may start only a few more threads.

``limited_threads.py OPERATION MORE USER FOLDER`` reads the variables of a sandbox from stdin. It
becomes USER, who has no other process, and may then start MORE threads. It prints as JSON what came
of the operation, and what came of it without the limit.
"""

import asyncio
import importlib
import json
import os
import resource
import sys
import time
from contextlib import suppress

import siteline

DAY = {"site": "S1", "interval": "1h", "start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z"}


class Program:
    """The operations, with clients that were made before the limit, and not yet used."""

    def __init__(self, folder):
        """Read the key, which only the first user may."""
        self._folder = folder
        self._clients = [siteline.Client.from_env() for _ in range(4)]
        self._awaiting = [siteline.AsyncClient.from_env() for _ in range(4)]

    def read(self):
        """Read a day."""
        return len(self._clients[0].data(**DAY).collect())

    def discover(self):
        """Read the catalogue."""
        return len(self._clients[0].discover())

    def sync(self):
        """Sync, and check the store, which has a thread of its own."""
        feed = siteline.Feed("plant", site="S1", interval="1h", since="2026-11-18")
        with siteline.Store(os.path.join(self._folder, f"{time.monotonic_ns()}.siteline")) as store:
            report = self._clients[0].sync(feed, store)
            store.check()
            return len(report.to_dict())

    def asyncio(self):
        """Read a day in asyncio, and convert it, on a thread of its own too."""

        async def converted():
            frame = await self._awaiting[0].data(**DAY).to_arrow()
            return frame.num_rows

        return asyncio.run(converted())

    def sandbox(self):
        """Serve, and read from that."""
        with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox, sandbox.client() as client:
            return len(client.data(**DAY).collect())

    def service(self):
        """Make several calls together, each of which signs on a thread of its own."""

        async def together():
            reads = [client.data(**DAY).collect() for client in self._awaiting]
            return [len(table) for table in await asyncio.gather(*reads)]

        return [self.read(), *asyncio.run(together())]


def import_what_needs(program, operation):
    """Import what the operation imports: the next user may not enter the folder of the package."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        getattr(program, operation)()
        os.write(sending, json.dumps(sorted(sys.modules)).encode())
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as pipe:
        names = json.load(pipe)
    os.waitpid(child, 0)
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)


def outcome(call):
    """Return the class and the text of what is raised, or what is returned."""
    begun = time.monotonic()
    try:
        done = {"returned": call()}
    except siteline.SitelineError as error:
        done = {"raised": type(error).__name__, "text": str(error), "retryable": error.retryable}
    return done | {"seconds": time.monotonic() - begun}


def main():
    """Limit the threads, and try."""
    operation, more, user, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    os.environ |= json.load(sys.stdin)
    program = Program(folder)
    import_what_needs(program, operation)
    if operation == "service":
        program.read()
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    os.setresuid(user, user, user)
    used = len(os.listdir("/proc/self/task"))
    resource.setrlimit(resource.RLIMIT_NPROC, (used + more, hard))
    limited = outcome(getattr(program, operation))
    resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
    print(json.dumps([limited, outcome(getattr(program, operation))]))


main()
