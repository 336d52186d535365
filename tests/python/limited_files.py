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


class Program:
    """The operations. Each creates its own objects."""

    def __init__(self, folder):
        """Creates the files and the store that the operations read."""
        self.folder = folder
        self.count = 0
        self.bundle = self.new("ca.pem")
        self.bundle.write_bytes((Path(__file__).parents[1] / "keys/certificate.pem").read_bytes())
        self.store = self.new("kept.siteline")
        self.feeds = self.new("feeds.toml")
        self.feeds.write_text(
            f'[feeds.plant]\nsite = "S1"\ninterval = "1h"\nstart = "{START}"\n', encoding="utf-8"
        )
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

    def key(self):
        return siteline.Credential("subject", os.environ["KEY_FILE"]).subject

    def new_key(self):
        siteline.PrivateKey.load(os.environ["KEY_FILE"]).save(self.new("key.pem"))

    def ledger(self):
        with siteline.Client(ledger=self.new("ledger")) as client:
            return len(client.read(**DAY, labels=False))

    def profile(self):
        return siteline.Client(profile="plant").subject

    def authorities(self):
        siteline.Client(ca_bundle=self.bundle, ledger="memory").close()

    def new_store(self):
        with siteline.Store(self.new("store.siteline")) as store:
            return self.kept.sync(self.feed(), store).pages

    def stored(self):
        with siteline.Store(self.store, read_only=True) as store:
            return len(store.read(self.feed()).to_arrow())

    def backup(self):
        with siteline.Store(self.store) as store:
            store.backup(self.new("backup.siteline"))

    def sandbox(self):
        with siteline.Sandbox() as sandbox:
            return sandbox.base_url

    def agent(self):
        with siteline.Agent(self.kept, listen=f"unix:{self.new('agent')}/sock") as agent:
            return agent.address

    def command_read(self):
        day = ["--start", DAY["start"], "--end", DAY["end"], "--interval", "1h"]
        return self.told("read", "--site", "S1", *day, "-o", str(self.new("day.csv")))

    def command_sync(self):
        return self.told("sync", str(self.feeds), str(self.new("store.siteline")))

    def told(self, *arguments):
        """Runs a command. If it fails, raises its status and its stderr."""
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
