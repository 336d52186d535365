"""Runs an operation with a limit of threads: ``limited_threads.py OPERATION MORE USER FOLDER``.

The program reads the variables of a sandbox from stdin. It switches to USER, who has no other
process, and limits itself to MORE additional threads. It prints the result of the operation as
JSON, and then the result without the limit.
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
    """The operations. Their clients are created before the limit, but send no request before it."""

    def __init__(self, folder):
        self._folder = folder
        self._clients = [siteline.Client(labels=False) for _ in range(4)]
        self._awaiting = [siteline.AsyncClient(labels=False) for _ in range(4)]

    def read(self):
        return len(self._clients[0].scan(**DAY).collect())

    def sync(self):
        feed = siteline.Feed("plant", site="S1", interval="1h", start="2026-11-18")
        with siteline.Store(os.path.join(self._folder, f"{time.monotonic_ns()}.siteline")) as store:
            report = self._clients[0].sync(feed, store)
            store.check()
            return len(report.to_dict())

    def asyncio(self):

        async def converted():
            frame = await self._awaiting[0].scan(**DAY).to_arrow()
            return frame.num_rows

        return asyncio.run(converted())

    def sandbox(self):
        with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox, sandbox.client() as client:
            return len(client.scan(**DAY).collect())

    def service(self):

        async def together():
            reads = [client.scan(**DAY).collect() for client in self._awaiting]
            return [len(table) for table in await asyncio.gather(*reads)]

        return [self.read(), *asyncio.run(together())]


def import_what_needs(program, operation):
    """Imports the modules of an operation, because USER may not read the package's folder."""
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
    """Returns the class and text of the raised error, or the returned value."""
    try:
        return {"returned": call()}
    except siteline.SitelineError as error:
        return {"raised": type(error).__name__, "text": str(error), "retryable": error.retryable}


def main():
    """Runs the operation with the limit, and then without it."""
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
