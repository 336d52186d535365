"""The scenarios of benches/torture, a few times each: what happens when things stop.

The limits have much slack, for a busy machine: these tests say what happens; ``make torture`` says
how fast.
"""

import importlib.util
import os
import sys

import pytest
from torture import plays_process, plays_wait
from torture.stage import Limits, Stage

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="signals and forks are those of POSIX systems"
)

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
def stage():
    return Stage(sys.executable, "siteline", Limits(react=20, patience=60))


@pytest.mark.fault("R1")
@pytest.mark.parametrize(
    "where", ["connect", "response", "body", "backoff", "exchange", "pages", "await"]
)
def test_ctrl_c_ends_every_wait_at_once_and_the_client_goes_on(stage, where):
    plays_wait.interrupt(stage, where)


@pytest.mark.fault("R2")
def test_an_interrupt_in_a_notebook_cancels_a_top_level_await(stage):
    plays_wait.interrupt(stage, "notebook")


@pytest.mark.fault("R2", "R14")
@pytest.mark.parametrize("door", ["wait", "await"])
def test_close_ends_the_wait_of_another_thread(stage, door):
    plays_wait.close(stage, door)


@pytest.mark.fault("R5")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("how", ["cancel", "wait_for", "gather", "group"])
def test_a_cancelled_request_closes_its_connection(stage, how, loop):
    plays_wait.cancel(stage, how, loop)


@pytest.mark.fault("R6")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_request_that_is_dropped_unawaited_closes_its_connection(stage, loop):
    plays_wait.cancel(stage, "drop", loop)


@pytest.mark.fault("R6")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("how", ["pending", "answers"])
def test_a_loop_may_close_with_calls_pending(stage, how, loop):
    plays_wait.loops(stage, how, loop)


@pytest.mark.fault("R7")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("how", ["again", "threads"])
def test_one_client_serves_many_loops(stage, how, loop):
    plays_wait.loops(stage, how, loop)


@pytest.mark.fault("R3")
@pytest.mark.parametrize("threads", [1, 4])
def test_forked_children_go_on_with_the_token_and_refuse_the_parents_iterator(stage, threads):
    plays_process.fork(stage, 30, threads=threads)


@pytest.mark.fault("R3")
@pytest.mark.parametrize("kind", ["", "_executor"])
@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_pools_of_processes_read_after_the_parent_has(stage, start, kind):
    plays_process.pools(stage, start + kind)


@pytest.mark.fault("R4")
@pytest.mark.parametrize("how", ENDS)
def test_a_script_ends_with_its_own_status_in_time_and_without_a_word(stage, how):
    for _ in range(2):
        plays_process.end(stage, how)


@pytest.mark.parametrize("what", ["client", "iterator", "records"])
def test_64_threads_share_one(stage, what):
    plays_process.share(stage, what)


@pytest.mark.fault("R9")
def test_a_log_handler_may_use_the_client_in_100_threads(stage):
    plays_process.share(stage, "handler")


@pytest.mark.fault("R17")
@pytest.mark.parametrize(
    ("what", "times"), [("clients", 400), ("awaitable_clients", 400), ("pages", 2_000)]
)
def test_nothing_is_left_of_what_was_dropped(stage, what, times):
    plays_process.leak(stage, what, times)
