"""The scenarios of tests/stress/torture, a few times each: interrupts, closing, cancellation.

The limits are wide, for a busy machine: these tests check the behaviour, ``make torture`` the
times.
"""

import importlib.util
import os
import sys

import pytest
from torture import processes, waits
from torture.harness import Harness, Limits

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX systems")

IS_LONG = bool(os.environ.get("SITELINE_LONG"))
"""Set by ``make faults-long``, for a machine that does nothing else."""
REACT = 1.5 if IS_LONG else 20
MADE = 2_000 if IS_LONG else 400

LOOPS = [
    "asyncio",
    pytest.param(
        "uvloop",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("uvloop") is None, reason="uvloop is not installed"
        ),
    ),
]
ENDS = [
    "nothing",
    "nothing,code",
    "nothing,raise",
    "daemon",
    "daemon_await,code",
    "busy",
    "busy_await",
    "busy_records",
    "handler",
    "iterator",
    "iterator_await",
    "pending",
    "pending_closed",
    "pending,raise",
    "cancelled",
    "atexit_before",
    "atexit_after",
]


@pytest.fixture
def harness():
    return Harness(sys.executable, "siteline", Limits(react=REACT, timeout=60))


@pytest.mark.fault("R1")
@pytest.mark.parametrize(
    "where", ["connect", "response", "body", "backoff", "exchange", "pages", "await"]
)
def test_ctrl_c_ends_every_wait_at_once_and_the_client_stays_usable(harness, where):
    waits.interrupt(harness, where)


@pytest.mark.fault("R2")
def test_an_interrupt_in_a_notebook_cancels_a_top_level_await(harness):
    waits.interrupt(harness, "notebook")


@pytest.mark.fault("R2", "R14")
@pytest.mark.parametrize("api", ["wait", "await"])
def test_close_ends_the_wait_of_another_thread(harness, api):
    waits.close(harness, api)


@pytest.mark.fault("R5")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("how", ["cancel", "wait_for", "gather", "group"])
def test_a_cancelled_request_closes_its_connection(harness, how, loop):
    waits.cancel(harness, how, loop)


@pytest.mark.fault("R6")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_request_that_is_dropped_unawaited_closes_its_connection(harness, loop):
    waits.cancel(harness, "drop", loop)


@pytest.mark.fault("R6")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("how", ["pending", "answers"])
def test_a_loop_may_close_with_calls_pending(harness, how, loop):
    waits.loops(harness, how, loop)


@pytest.mark.fault("R7")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("how", ["again", "threads"])
def test_one_client_serves_many_loops(harness, how, loop):
    waits.loops(harness, how, loop)


@pytest.mark.fault("R3")
@pytest.mark.parametrize("threads", [1, 4])
def test_forked_children_keep_the_token_and_refuse_the_parents_iterator(harness, threads):
    processes.fork(harness, 30, threads=threads)


@pytest.mark.fault("R3")
@pytest.mark.parametrize("kind", ["", "_executor"])
@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_process_pools_read_after_the_parent_has_read(harness, start, kind):
    processes.pools(harness, start + kind)


@pytest.mark.fault("R4")
@pytest.mark.parametrize("how", ENDS)
def test_a_script_ends_with_its_own_status_in_time_and_without_output(harness, how):
    for _ in range(2):
        processes.end(harness, how)


@pytest.mark.parametrize("what", ["client", "iterator", "records"])
def test_64_threads_share_one(harness, what):
    processes.share(harness, what)


@pytest.mark.fault("R9")
def test_a_log_handler_may_use_the_client_in_100_threads(harness):
    processes.share(harness, "handler")


@pytest.mark.fault("R17")
@pytest.mark.parametrize(
    ("what", "times"),
    [("clients", MADE), ("awaitable_clients", MADE), ("pages", 10_000 if IS_LONG else 2_000)],
)
def test_dropped_objects_leave_nothing_behind(harness, what, times):
    processes.leak(harness, what, times)
