"""Ctrl-C ends waits. Signal handlers, callbacks and log handlers may use the client."""

import asyncio
import gc
import logging
from pathlib import Path

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


# A handler that interrupts the first import of a module sees an incomplete module.
HOLDING = f"""
    import os, signal, threading, siteline, siteline.types
    from kit.keys import private_key
    from kit.tls_service import Relay
    released = threading.Event()
    def handle(number, frame):
        # The reply arrives while the handler waits for the interrupted call's request.
        threading.Thread(target=released.set).start()
        print(len(scan.collect()) == points, len(client.discover()), flush=True)
    def hold(data):
        if b"ENDPOINT" in data and not released.is_set():
            os.kill(os.getpid(), signal.SIGUSR1)
            released.wait()
    signal.signal(signal.SIGUSR1, handle)
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        key = private_key()
        with Relay(int(sandbox.base_url.rsplit(":", 1)[1]), hold) as relay:
            client = siteline.Client(
                f"http://127.0.0.1:{{relay.port}}",
                credential=siteline.Credential(
                    sandbox.enroll(key.public_jwk), key,
                    audience=sandbox.base_url + "/api/customer/oauth/token",
                ),
                clock=sandbox.clock,
            )
            points = len(sandbox.expected(**{DAY!r}))
            scan = client.scan(**{DAY!r}, page_size=10_000)
            print(len(scan.collect()) == points, len(client.discover()), flush=True)
"""


@systems.SIGNALS
@pytest.mark.parametrize("endpoint", ["/oauth/token", "/data"])
def test_a_signal_handler_may_wait_for_the_request_of_the_interrupted_call(endpoint):
    script = HOLDING.replace("ENDPOINT", endpoint)
    kit = {"PYTHONPATH": str(Path(__file__).parent)}
    assert run_script(script, environment=kit).split() == ["True", "2"] * 2


@pytest.mark.parametrize("named", [False, True])
def test_an_iterator_may_be_used_while_it_builds_a_record(named):
    """Building a record allocates, so the garbage collector may run arbitrary code."""
    with siteline.Sandbox(now=NOW) as sandbox:
        scan = sandbox.client().scan(**{**SIX_HOURS, "page_size": 2})
        records = scan.records(named=named)
        outer = [next(records)]
        inner = []

        def asking(phase, info):
            if not inner:
                inner.append(None)
                inner.append(next(records))

        threshold = gc.get_threshold()
        gc.callbacks.append(asking)
        gc.set_threshold(1)
        try:
            outer.extend(records)
        finally:
            gc.set_threshold(*threshold)
            gc.callbacks.remove(asking)
        expected = list(scan.records(named=named))
        assert len(outer) + 1 == len(expected)
        assert all(record in expected for record in [*outer, inner[1]])
        assert inner[1] not in outer


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
@pytest.mark.parametrize("at", ["future", "result", "work", "call"])
def test_a_panic_in_the_core_is_an_internal_error(at, capfd):
    with pytest.raises(siteline.errors.InternalError, match="internal error in siteline") as caught:
        siteline._core._panic(at).wait()
    assert "still be used" in caught.value.hint
    assert isinstance(caught.value, RuntimeError)
    # The message contains the source location. Nothing is printed on stderr.
    assert "(src/bridge/runtime.rs:" in caught.value.message
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(
    not hasattr(siteline._core, "_panic"), reason="only a debug build can be made to panic"
)
@pytest.mark.parametrize("at", ["future", "result"])
def test_a_panic_in_an_awaited_call_is_an_internal_error_and_the_client_stays_usable(at, capfd):
    with siteline.Sandbox(now=NOW) as sandbox:
        client = sandbox.async_client()

        async def main():
            with pytest.raises(siteline.errors.InternalError, match="internal error in siteline"):
                await asyncio.wait_for(siteline._core._panic(at), 60)
            return await client.discover()

        assert asyncio.run(main()).raw
    assert capfd.readouterr() == ("", "")
