"""A program with only a few descriptors left: ``limited_files.py OPERATION LEFT FOLDER``.

It reads the variables of a sandbox from stdin, and opens files until only LEFT more can be opened.
It prints as JSON what came of the operation before, then, and when the files are closed again.
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

# The sandbox has the time of the system, so that a file of a ledger can count by it.
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
START, END = ((TODAY - timedelta(days=days)).isoformat() for days in (2, 1))
DAY = {"site": "S1", "interval": "1h", "start": START, "end": END}
MOST = 128


class Program:
    """The operations, each on objects of its own."""

    def __init__(self, folder):
        """Make what the operations read."""
        self.folder = folder
        self.count = 0
        self.bundle = self.new("ca.pem")
        self.bundle.write_bytes((Path(__file__).parents[1] / "keys/certificate.pem").read_bytes())
        self.store = self.new("kept.siteline")
        self.feeds = self.new("feeds.toml")
        self.feeds.write_text(
            f'[feeds.plant]\nsite = "S1"\ninterval = "1h"\nsince = "{START}"\n', encoding="utf-8"
        )
        with siteline.Client.from_env(ledger="memory") as client:
            client.sync(self.feed(), siteline.Store(self.store))
            self.kept = siteline.Client.from_env(ledger="memory")

    def new(self, name):
        """Return a path that nothing has."""
        self.count += 1
        return self.folder / f"{os.getpid()}-{self.count}-{name}"

    def feed(self):
        """Return the feed of the stores."""
        return siteline.Feed("plant", site="S1", interval="1h", since=START)

    def read(self):
        """Read by a client that has no connection yet."""
        return len(self.kept.data(**DAY).collect())

    def key(self):
        """Read the file of a key."""
        return siteline.Credential("subject", os.environ["KEY_FILE"]).subject

    def new_key(self):
        """Write the file of a key."""
        siteline.PrivateKey.generate().save(self.new("key.pem"))

    def ledger(self):
        """Count in a file."""
        with siteline.Client.from_env(ledger=self.new("ledger")) as client:
            return len(client.data(**DAY).collect())

    def default_ledger(self):
        """Count in the file that siteline chooses."""
        with siteline.Client.from_env() as client:
            return client.allowance.used, len(client.data(**DAY).collect())

    def profile(self):
        """Read a file of profiles."""
        return siteline.Client.from_profile("plant").subject

    def authorities(self):
        """Read the certificates to trust."""
        siteline.Client.from_env(ca_bundle=self.bundle, ledger="memory").close()

    def new_store(self):
        """Make a store, and sync into it."""
        with siteline.Store(self.new("store.siteline")) as store:
            return self.kept.sync(self.feed(), store).pages

    def stored(self):
        """Read a store."""
        with siteline.Store(self.store, read_only=True) as store:
            return len(store.points(self.feed()).to_arrow())

    def backup(self):
        """Copy a store."""
        with siteline.Store(self.store) as store:
            store.backup(self.new("backup.siteline"))

    def sandbox(self):
        """Serve."""
        with siteline.Sandbox() as sandbox:
            return sandbox.base_url

    def agent(self):
        """Serve a client to others."""
        with siteline.Agent(self.kept, listen=f"unix:{self.new('agent')}/sock") as agent:
            return agent.address

    def pull(self):
        """Write a file by the command."""
        return self.told("pull", *self.given(), "-o", str(self.new("day.csv")))

    def keygen(self):
        """Write a key by the command."""
        return self.told("keygen", str(self.new("key.pem")))

    def command_sync(self):
        """Sync by the command."""
        return self.told("sync", str(self.feeds), str(self.new("store.siteline")))

    def given(self):
        """Return the options of a day."""
        day = ["--start", DAY["start"], "--end", DAY["end"], "--interval", "1h"]
        return ["--site", "S1", *day]

    def told(self, *arguments):
        """Run a command; raise what it said on stderr, with its status."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = command(arguments)
        if status:
            raise Told(status, said.getvalue())
        return status


class Told(Exception):
    """A command failed."""


def outcome(call):
    """Return the class and the text of what is raised, or what is returned."""
    try:
        return {"returned": call()}
    except Told as told:
        return {"status": told.args[0], "text": told.args[1]}
    except siteline.SitelineError as error:
        return {"raised": type(error).__name__, "text": str(error), "retryable": error.retryable}
    except OSError as error:
        return {"raised": type(error).__name__, "text": str(error), "retryable": True}


def main():
    """Use up the descriptors, and try."""
    operation, left, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    os.environ |= json.load(sys.stdin)
    logging.disable()  # of the attempts
    program = Program(folder)
    call = getattr(program, operation)
    before = outcome(call)  # with all that it imports
    program.kept = siteline.Client.from_env(ledger="memory")
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST, MOST))
    opened = []
    with contextlib.suppress(OSError):
        while True:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    for _ in range(left):
        os.close(opened.pop())
    limited = outcome(call)
    for number in opened:
        os.close(number)
    print(json.dumps([before, limited, outcome(call)]))


main()
