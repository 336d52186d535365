"""Runs operations with few free descriptors: ``limited_files.py FOLDER LEFT,LEFT OPERATION...``.

The program reads the variables of a sandbox from stdin. For each operation and each LEFT it opens
files until only LEFT more can be opened. It prints the results before, during and after as JSON.
"""

import contextlib
import io
import json
import logging
import os
import resource
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import siteline
from siteline.cli import main as command

# The sandbox uses the system time, because a ledger file counts requests by it.
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
START, END = ((TODAY - timedelta(days=days)).isoformat() for days in (2, 1))
DAY = {"site": "S1", "interval": "1h", "start": START, "end": END}
MOST = 128
# A wait between attempts moves the clock of the sandbox, and then no ledger file counts by it.
ONCE = siteline.types.Http(tries=1)


class Program:
    """The operations. Each creates its own objects."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        self.store = self.new("kept.siteline")
        with siteline.Client(ledger="memory", labels=False) as client:
            client.sync(self.feed(), siteline.Store(self.store))
            self.kept = siteline.Client(ledger="memory", labels=False)

    def new(self, name):
        self.count += 1
        return self.folder / f"{os.getpid()}-{self.count}-{name}"

    def feed(self):
        return siteline.Feed("plant", site="S1", interval="1h", start=START)

    def read(self):
        return len(self.kept.scan(**DAY).collect())

    def ledger(self):
        with siteline.Client(ledger=self.new("ledger"), http=ONCE) as client:
            return len(client.read(**DAY, labels=False))

    def default_ledger(self):
        with siteline.Client(http=ONCE) as client:
            return client.allowance.used, len(client.read(**DAY, labels=False))

    def new_store(self):
        with siteline.Store(self.new("store.siteline")) as store:
            return self.kept.sync(self.feed(), store).pages

    def backup(self):
        with siteline.Store(self.store) as store:
            store.backup(self.new("backup.siteline"))

    def agent(self):
        with siteline.Agent(self.kept, listen=f"unix:{self.new('agent')}/sock") as agent:
            return agent.address

    def command_read(self):
        return self.told("read", *self.given(), "-o", str(self.new("day.csv")))

    def given(self):
        day = ["--start", DAY["start"], "--end", DAY["end"], "--interval", "1h"]
        return ["--site", "S1", *day]

    def told(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = command(arguments)
        if status:
            raise Told(status, said.getvalue())
        return status


class Told(Exception):
    """The error for a failed command, with its status and stderr."""


def outcome(call):
    """Returns the class and text of the raised error, or the returned value."""
    try:
        return {"returned": call()}
    except Told as told:
        return {"status": told.args[0], "text": told.args[1]}
    except siteline.SitelineError as error:
        return {"raised": type(error).__name__, "text": str(error), "retryable": error.retryable}
    except OSError as error:
        return {"raised": type(error).__name__, "text": str(error), "retryable": True}


def limited(program, call, left):
    """Calls with only this many free descriptors."""
    for _ in range(20):
        # A client that has no connection yet.
        program.kept.close()
        program.kept = siteline.Client(ledger="memory", labels=False)
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


def main():
    """Runs each operation before, during and after shortages of descriptors."""
    folder, lefts = Path(sys.argv[1]), [int(left) for left in sys.argv[2].split(",")]
    os.environ |= json.load(sys.stdin)
    logging.disable()  # stderr must stay empty
    program = Program(folder)
    calls = {name: getattr(program, name) for name in sys.argv[3:]}
    # The first calls also import all modules that the operations need.
    before = {name: outcome(call) for name, call in calls.items()}
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST, MOST))
    during = {
        name: {left: limited(program, call, left) for left in lefts} for name, call in calls.items()
    }
    after = {name: outcome(call) for name, call in calls.items()}
    print(json.dumps([before, during, after]))


main()
