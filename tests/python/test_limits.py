"""Without free descriptors or threads, calls raise an error with the limit and do not hang."""

import itertools
import json
import os
import sys
import tempfile
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.command import run_program
from kit.interpreter import FORK_WITH_THREADS

PROGRAM = Path(__file__).parent / "limited.py"
FILES = ("ledger", "read", "sync", "agent")
OPERATIONS = ("read", "sync", "asyncio", "sandbox", "service")
USUAL = [("read", 0), ("sync", 0), ("asyncio", 0), ("sandbox", 2), ("service", 1)]
OTHERS = [pair for pair in itertools.product(OPERATIONS, range(5)) if pair not in USUAL]


@pytest.fixture
def limited():
    """Returns a function that runs operations; the results with limits and without, by name."""
    # Every user can enter this folder: pytest's own folders are for one user.
    with tempfile.TemporaryDirectory(prefix="siteline-", dir="/tmp") as folder:
        Path(folder).chmod(0o777)

        def run(*words):
            with siteline.Sandbox() as sandbox:
                variables = sandbox.env()
                # Another user cannot read its file, and this sandbox has the time of the machine.
                del variables["SITELINE_SANDBOX_CLOCK"]
                program = (sys.executable, *FORK_WITH_THREADS, PROGRAM, folder, *words)
                given = json.dumps(variables)
                done = run_program(*program, env={"HOME": folder}, cwd="/", input=given)
            assert (done.returncode, done.stderr) == (0, "")
            return json.loads(done.stdout)

        yield run


@systems.MODES
def test_a_missing_descriptor_is_named_with_its_limit(limited):
    for name, (with_limit, without) in limited("files", "0,1,3,6", *FILES).items():
        assert all("returned" in found for found in without), (name, without)
        assert "returned" not in with_limit[0], (name, with_limit)
        for found in with_limit:
            if "returned" not in found:
                limit = "too many open files: this process may open 128 (RLIMIT_NOFILE)"
                assert limit in found["text"], (name, found)
                assert found["retryable"], (name, found)


@systems.PROC
@systems.ROOT
@pytest.mark.parametrize(
    ("operation", "more"),
    [*USUAL, *(pytest.param(*pair, marks=pytest.mark.campaign) for pair in OTHERS)],
)
def test_a_refused_thread_is_an_error_that_passes(limited, operation, more):
    # Each run has its own user, because the limit counts all processes of a user.
    user = 1_000_000 + os.getpid() * 64 + OPERATIONS.index(operation) * 8 + more
    # A call that waited for a refused thread would never return.
    [[[found], [without]]] = limited("threads", more, user, operation).values()
    assert "returned" in without, without
    if more == 0 and operation != "service":
        assert "raised" in found, found
    if "raised" in found:
        assert "this user may have " in found["text"]
        assert "(RLIMIT_NPROC)" in found["text"]
        assert found["retryable"]
        assert found["raised"] != "InternalError"
