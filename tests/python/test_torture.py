"""The scenarios of tests/stress/torture, once each: interrupts, closing, cancellation, exit.

Most variants are campaigns. The limits are wide, for a busy machine; ONLY=torture checks times.
"""

import importlib.util
import os
import sys

import pytest
from torture import processes, waits
from torture.harness import Harness, Limits

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX systems")

LOOPS = ("asyncio", *(["uvloop"] if importlib.util.find_spec("uvloop") else []))
ENDS = [
    "nothing",
    "nothing,code",
    "nothing,raise",
    "daemon",
    "busy",
    "busy_await",
    "busy_records",
    "handler",
    "iterator",
    "iterator_await",
    "pending",
    "pending_closed",
    "cancelled",
    "atexit_before",
]


def some(*cases, later=()):
    """Values of a parameter; the later ones are for campaigns."""
    return [*cases, *(pytest.param(one, marks=pytest.mark.campaign) for one in later)]


@pytest.fixture
def harness():
    return Harness(sys.executable, "siteline", Limits(react=60, timeout=120))


@pytest.mark.parametrize(
    "where",
    some("exchange", later=("connect", "response", "body", "backoff", "pages", "await")),
)
def test_ctrl_c_ends_every_wait_and_the_client_stays_usable(harness, where):
    waits.interrupt(harness, where)


def test_an_interrupt_in_a_notebook_cancels_a_top_level_await(harness):
    waits.interrupt(harness, "notebook")


@pytest.mark.parametrize("api", some("wait", later=["await"]))
def test_close_ends_the_wait_of_another_thread(harness, api):
    waits.close(harness, api)


@pytest.mark.campaign
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("how", ["cancel", "wait_for", "gather", "group"])
def test_a_cancelled_request_closes_its_connection(harness, how, loop):
    waits.cancel(harness, how, loop)


@pytest.mark.parametrize("loop", some(LOOPS[-1], later=LOOPS[:-1]))
def test_a_request_that_is_dropped_unawaited_closes_its_connection(harness, loop):
    waits.cancel(harness, "drop", loop)


@pytest.mark.parametrize("loop", some(LOOPS[0], later=LOOPS[1:]))
@pytest.mark.parametrize("how", some("pending", later=["answers"]))
def test_a_loop_may_close_with_calls_pending(harness, how, loop):
    waits.loops(harness, how, loop)


@pytest.mark.parametrize("loop", some(LOOPS[0], later=LOOPS[1:]))
@pytest.mark.parametrize("how", some("threads", later=["again"]))
def test_one_client_serves_many_loops(harness, how, loop):
    waits.loops(harness, how, loop)


@pytest.mark.parametrize("threads", some(1, later=[4]))
def test_forked_children_keep_the_token_and_refuse_the_parents_iterator(harness, threads):
    processes.fork(harness, 30, threads=threads)


@pytest.mark.parametrize("kind", some("", later=["_executor"]))
@pytest.mark.parametrize("start", some("fork", later=["spawn", "forkserver"]))
def test_process_pools_read_after_the_parent_has_read(harness, start, kind):
    processes.pools(harness, start + kind)


@pytest.mark.parametrize(
    "how", some("daemon_await,code", "pending,raise", "atexit_after", later=ENDS)
)
def test_a_script_ends_with_its_own_status_and_without_output(harness, how):
    processes.end(harness, how)


@pytest.mark.campaign
@pytest.mark.parametrize("what", ["iterator", "client", "records", "handler"])
def test_64_threads_share_one(harness, what):
    processes.share(harness, what)


@pytest.mark.parametrize("what", some("clients", "pages", later=["awaitable_clients"]))
def test_dropped_objects_leave_nothing_behind(harness, what):
    processes.leak(harness, what, 400)
