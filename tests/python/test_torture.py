"""Interrupts, closing, cancellation, forks and exits, each in a new interpreter.

A scenario runs once, within a limit for a busy machine. `make campaigns ONLY=torture` runs all
variants often, each within its own limit. `torture.xml` has the longest reaction of each test.
"""

import importlib.util
import os
import random

import pytest
from kit.examples import examples
from torture import processes, waits
from torture.harness import Harness, Limits

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX systems")

LOOPS = ("asyncio", *(["uvloop"] if importlib.util.find_spec("uvloop") else []))
WAITS = ("connect", "response", "body", "backoff", "pages", "await")
ENDS = [
    *("daemon", "daemon,code", "daemon_await", "busy", "busy,code", "busy_await"),
    *("busy_await,code", "busy_records", "handler", "iterator", "iterator_await"),
    *("pending", "pending_closed", "cancelled", "atexit_before"),
    *("nothing", "nothing,code", "nothing,raise"),
]


def some(*cases, later=()):
    """Values of a parameter; the later ones are for campaigns."""
    return [*cases, *(pytest.param(one, marks=pytest.mark.campaign) for one in later)]


@pytest.fixture
def torture(request, record_property):
    """Runs a scenario; in the campaign `runs` times, at random phases and within its limit."""

    def torture(scenario, *variant, runs, limit=60):
        chance, worst = random.Random(request.node.name), 0
        for _ in range(examples(1, runs)):
            limits = Limits(react=examples(60, limit), timeout=120)
            harness = Harness(limits, phase=chance.uniform(0, examples(0, 0.1)))
            worst = max(worst, scenario(harness, *variant) or 0)
        record_property("worst_ms", round(worst))

    return torture


@pytest.mark.parametrize("where", some("exchange", "notebook", later=WAITS))
def test_ctrl_c_ends_every_wait_and_the_client_stays_usable(torture, where):
    torture(waits.interrupt, where, runs=25, limit=0.2)


@pytest.mark.parametrize("api", some("wait", later=["await"]))
def test_close_ends_the_wait_of_another_thread(torture, api):
    torture(waits.close, api, runs=20, limit=0.2)


@pytest.mark.parametrize("loop", some(LOOPS[-1], later=LOOPS[:-1]))
@pytest.mark.parametrize("how", some("drop", later=["cancel", "wait_for", "gather", "group"]))
def test_a_cancelled_or_dropped_request_closes_its_connection(torture, how, loop):
    torture(waits.cancel, how, loop, runs=10, limit=0.1)


@pytest.mark.parametrize("loop", some(LOOPS[0], later=LOOPS[1:]))
@pytest.mark.parametrize("how", some("pending", later=["answers"]))
def test_a_loop_may_close_with_calls_pending(torture, how, loop):
    torture(waits.loops, how, loop, runs=5)


@pytest.mark.parametrize("loop", some(LOOPS[0], later=LOOPS[1:]))
@pytest.mark.parametrize("how", some("threads", later=["again"]))
def test_one_client_serves_many_loops(torture, how, loop):
    torture(waits.loops, how, loop, runs=5)


@pytest.mark.parametrize(
    ("threads", "forks"), [(1, 200), pytest.param(6, 50, marks=pytest.mark.campaign)]
)
def test_forked_children_keep_the_token_and_refuse_the_parents_iterator(torture, threads, forks):
    torture(processes.fork, examples(30, forks), threads, runs=4, limit=5)


@pytest.mark.parametrize("kind", some("", later=["_executor"]))
@pytest.mark.parametrize("start", some("fork", later=["spawn", "forkserver"]))
def test_process_pools_read_after_the_parent_has_read(torture, start, kind):
    torture(processes.pools, start + kind, runs=3)


@pytest.mark.parametrize(
    "how", some("daemon_await,code", "pending,raise", "atexit_after", later=ENDS)
)
def test_a_script_ends_with_its_own_status_and_without_output(torture, how):
    torture(processes.end, how, runs=10, limit=1.5)


@pytest.mark.campaign
@pytest.mark.parametrize("what", ["iterator", "client", "records"])
def test_64_threads_share_one(torture, what):
    torture(processes.share, what, runs=10)


@pytest.mark.parametrize(
    ("what", "times"),
    [
        ("clients", 2_000),
        ("pages", 10_000),
        pytest.param("awaitable_clients", 2_000, marks=pytest.mark.campaign),
    ],
)
def test_dropped_objects_leave_nothing_behind(torture, what, times):
    torture(processes.leak, what, examples(400, times), runs=2)
