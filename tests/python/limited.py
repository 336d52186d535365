"""Runs operations with few free descriptors or threads, and prints their results as JSON.

``limited.py FOLDER files LEFT,LEFT OPERATION...`` opens files until LEFT more can be opened.
``limited.py FOLDER threads MORE USER OPERATION`` switches to USER, who has no other process, and
limits itself to MORE additional threads. The program reads the variables of a sandbox from stdin.
It prints the results of each operation with the limits, and the results without one.
"""

import asyncio
import contextlib
import importlib
import json
import logging
import os
import resource
import sys
import time
from datetime import UTC, datetime, timedelta

import siteline

TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
START, END = ((TODAY - timedelta(days=days)).isoformat() for days in (2, 1))
DAY = {"site": "S1", "interval": "1h", "start": START, "end": END}
# Without repeats there is no wait.
OPTIONS = {"labels": False, "ledger": "memory", "http": siteline.types.Http(tries=1)}
MOST = 128


class Program:
    """The operations. Each creates its own objects."""

    def __init__(self, folder):
        self.folder = folder

    def new(self, name):
        return os.path.join(self.folder, f"{os.getpid()}-{time.monotonic_ns()}-{name}")

    def read(self, **options):
        with siteline.Client(**{**OPTIONS, **options}) as client:
            return len(client.read(**DAY))

    def ledger(self):
        return self.read(ledger=self.new("ledger"))

    def sync(self):
        feed = siteline.Feed("plant", site="S1", interval="1h", start=START)
        store = siteline.Store(self.new("plant.siteline"))
        with store, siteline.Client(**OPTIONS) as client:
            client.sync(feed, store)
            store.check()
            store.backup(self.new("backup.siteline"))

    def agent(self):
        with siteline.Client(**OPTIONS) as client:
            siteline.Agent(client, listen=f"unix:{self.new('agent')}/sock").close()

    def asyncio(self):
        async def converted():
            return (await siteline.AsyncClient(**OPTIONS).scan(**DAY).to_arrow()).num_rows

        return asyncio.run(converted())

    def sandbox(self):
        with siteline.Sandbox() as sandbox, sandbox.client() as client:
            return len(client.read(**DAY))

    def service(self):
        async def together():
            reads = [siteline.AsyncClient(**OPTIONS).read(**DAY) for _ in range(4)]
            return [len(table) for table in await asyncio.gather(*reads)]

        return [self.read(), *asyncio.run(together())]


def outcome(call):
    """Returns the class and text of the raised error, or the returned value."""
    try:
        return {"returned": call()}
    except (siteline.SitelineError, OSError) as error:
        retryable = getattr(error, "retryable", True)
        return {"raised": type(error).__name__, "text": str(error), "retryable": retryable}


def with_files(call, left):
    """Calls with only this many free descriptors."""
    for _ in range(20):
        opened = []
        with contextlib.suppress(OSError):
            while True:
                opened.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(left):
            os.close(opened.pop())
        found = outcome(call)
        for number in opened:
            os.close(number)
        # A connection of an earlier client may have been closed only now, which freed a descriptor.
        if left or "returned" not in found:
            break
    return found


def files(program, lefts, *operations):
    """Calls each operation before, during and after shortages of descriptors."""
    calls = {name: getattr(program, name) for name in operations}
    # The first calls also import all modules that the operations need.
    before = {name: outcome(call) for name, call in calls.items()}
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST, MOST))
    counts = [int(left) for left in lefts.split(",")]
    during = {name: [with_files(call, left) for left in counts] for name, call in calls.items()}
    after = {name: outcome(call) for name, call in calls.items()}
    return {name: [during[name], [before[name], after[name]]] for name in operations}


def import_what_needs(call):
    """Imports the modules of an operation, because USER may not read the package's folder."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        call()
        os.write(sending, json.dumps(sorted(sys.modules)).encode())
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as pipe:
        names = json.load(pipe)
    os.waitpid(child, 0)
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def threads(program, more, user, operation):
    """Calls an operation with the limit of threads, and then without it."""
    call = getattr(program, operation)
    import_what_needs(call)
    if operation == "service":
        program.read()
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    os.setresuid(*[int(user)] * 3)
    used = len(os.listdir("/proc/self/task"))
    resource.setrlimit(resource.RLIMIT_NPROC, (used + int(more), hard))
    limited = outcome(call)
    resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
    return {operation: [[limited], [outcome(call)]]}


os.environ |= json.load(sys.stdin)
logging.disable()  # stderr must stay empty
print(json.dumps(globals()[sys.argv[2]](Program(sys.argv[1]), *sys.argv[3:])))
