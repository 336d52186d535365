"""If the system starts no more threads, calls raise an error with the limit and do not hang."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from kit import systems
from kit.interpreter import FORK_WITH_THREADS

PROGRAM = Path(__file__).parent / "limited_threads.py"
OPERATIONS = ("read", "sync", "asyncio", "sandbox", "service")
USUAL = [("read", 0), ("sync", 0), ("asyncio", 0), ("sandbox", 2), ("service", 1)]
OTHERS = [pair for pair in itertools.product(OPERATIONS, range(5)) if pair not in USUAL]


@pytest.fixture
def shared_folder():
    """A folder that every user can enter: pytest's own folders are for one user."""
    with tempfile.TemporaryDirectory(prefix="siteline-", dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        yield folder


@pytest.fixture
def limited(sandbox, shared_folder):
    """Returns a function that runs an operation with a limit of threads, then without it."""

    def run(operation, more):
        # Each run has its own user, because the limit counts all processes of a user.
        user = 1_000_000 + os.getpid() * 64 + OPERATIONS.index(operation) * 8 + more
        environment = os.environ | {"SITELINE_LEDGER": "memory", "HOME": shared_folder}
        command = [sys.executable, *FORK_WITH_THREADS, str(PROGRAM), operation]
        command += [str(more), str(user), shared_folder]
        done = subprocess.run(
            command,
            input=json.dumps(sandbox.env()),
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return run


@systems.PROC
@systems.ROOT
@pytest.mark.parametrize(
    ("operation", "more"),
    [*USUAL, *(pytest.param(*pair, marks=pytest.mark.campaign) for pair in OTHERS)],
)
def test_a_refused_thread_is_an_error_that_passes(limited, operation, more):
    # A call that waited for a refused thread would never return.
    with_limit, without = limited(operation, more)
    assert "returned" in without, without
    if more == 0 and operation != "service":
        assert "raised" in with_limit, with_limit
    if "raised" in with_limit:
        assert "this user may have " in with_limit["text"]
        assert "(RLIMIT_NPROC)" in with_limit["text"]
        assert with_limit["retryable"]
        assert with_limit["raised"] != "InternalError"
