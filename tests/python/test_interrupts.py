"""Ctrl-C ends waits. Signal handlers, callbacks and log handlers may use the client."""

import asyncio
import gc
import logging
from itertools import islice

import pytest
import siteline
from kit import systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.interrupts import interrupted
from kit.logs import handling
from kit.ranges import DAY, NOW, SIX_HOURS
from kit.waiting import wait_until

READS = {
    "collect": lambda client, scan: scan.collect(),
    "to_pandas": lambda client, scan: scan.to_pandas(),
    "pages": lambda client, scan: list(scan.pages()),
    "records": lambda client, scan: list(scan.records()),
    "head": lambda client, scan: scan.head(),
    "progress": lambda client, scan: client.read(**DAY, page_size=1_000, progress=print),
    "names": lambda client, scan: client.read(**DAY, page_size=1_000, labels="machine"),
    "discover": lambda client, scan: client.discover(),
}


@systems.SIGNALS
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_ctrl_c_ends_a_wait_and_leaves_client_and_scan_usable(sandbox, read):
    client = sandbox.client()
    scan = client.scan(**DAY, page_size=1_000)
    client.discover()
    for on in ("data", "discovery"):
        sandbox.fault(on=on, times=99, hang=True)

    def begun():
        requests = sandbox.stats
        return requests.data_requests + requests.discovery_requests > 1

    assert interrupted(
        lambda: read(client, scan), when=lambda: wait_until(begun), otherwise=client.close
    )
    sandbox.clear_faults()
    assert len(scan.collect()) == len(sandbox.expected(**DAY))
    assert client.discover()["sites"]


HANDLED = """
    import os, signal, threading, time, siteline
    class Enough(Exception):
        pass
    def handle(number, frame):
        {handle}
    def send():
        while not sandbox.stats.data_requests:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, handle)
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        client, other = sandbox.client(), sandbox.client()
        client.discover()
        sandbox.fault(on="data", hang=True)
        threading.Thread(target=send).start()
        try:
            client.scan(site="S1", start=None).collect()
        except siteline.errors.ForkError:
            print("child", len(client.discover()), flush=True)
            os._exit(0)
        except Enough:
            {after}
            print("parent", len(client.discover()), flush=True)
"""


@systems.SIGNALS
@pytest.mark.parametrize(
    ("handle", "after", "printed"),
    [
        pytest.param(
            "print(len(other.scan(start=None, interval='1h').collect()) > 0); raise Enough",
            "pass",
            "True parent 2",
            id="uses the client",
        ),
        pytest.param(
            "if os.fork(): raise Enough",
            "print(os.wait()[1], flush=True)",
            "child 2 0 parent 2",
            id="forks",
        ),
    ],
)
def test_a_signal_handler_may_use_the_client_or_fork_while_a_call_waits(handle, after, printed):
    script = HANDLED.format(handle=handle, after=after)
    assert run_script(script, *FORK_WITH_THREADS).split() == printed.split()


@pytest.mark.parametrize("named", [False, True])
def test_the_garbage_collector_may_read_records(named):
    """It runs while a record is built, and may call any Python code."""
    outer, inner, turn = [], [], [True]

    def read(phase, info):
        if turn:
            turn.clear()
            inner.extend(islice(records, 1))
            turn.append(True)

    with siteline.Sandbox(now=NOW) as sandbox:
        scan = sandbox.client().scan(**{**SIX_HOURS, "page_size": 2})
        records, threshold = scan.records(named=named), gc.get_threshold()
        gc.callbacks.append(read)
        gc.set_threshold(1)
        try:
            outer.extend(records)
        finally:
            gc.set_threshold(*threshold)
            gc.callbacks.remove(read)
        assert inner
        expected = map(str, scan.records(named=named))
        assert sorted(map(str, [*outer, *inner])) == sorted(expected)


class Stopped(BaseException):
    """An exception that a signal handler may raise anywhere, even in a log handler."""


@pytest.mark.parametrize("retried", [1, 3])
def test_an_exception_while_logging_ends_the_wait_and_loses_no_page(retried):
    def stop(record):
        stops.append(record)
        raise Stopped

    stops, got = [], []
    with siteline.Sandbox(now=NOW) as sandbox:
        pages = sandbox.client().scan(**DAY, page_size=1_000).pages()
        sandbox.fault(on="data", nth=retried, status=503)
        with handling(stop, "siteline.http", logging.INFO):
            while True:
                try:
                    got.extend(pages)
                    break
                except Stopped:
                    continue
        assert len(stops) == 1
        assert sum(map(len, got)) == len(sandbox.expected(**DAY))


@pytest.mark.skipif(
    not hasattr(siteline._core, "_panic"), reason="only a debug build can be made to panic"
)
@pytest.mark.parametrize("at", ["future", "result", "work", "call", "await future", "await result"])
def test_a_panic_in_the_core_is_an_internal_error(at, capfd):
    async def wait():
        await asyncio.wait_for(siteline._core._panic(at.split()[1]), 60)

    with pytest.raises(siteline.errors.InternalError, match="internal error in siteline") as caught:
        asyncio.run(wait()) if "await" in at else siteline._core._panic(at).wait()
    assert "still be used" in caught.value.hint
    assert isinstance(caught.value, RuntimeError)
    # The message contains the source location. Nothing is printed on stderr.
    assert "(src/bridge/runtime.rs:" in caught.value.message
    assert capfd.readouterr() == ("", "")
