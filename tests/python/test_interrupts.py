"""Waits: Ctrl-C ends them, and signal handlers, callbacks and log handlers may use the client."""

import asyncio
import gc
import logging
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import DAY, NOW


@systems.SIGNALS
@pytest.mark.parametrize(
    "read",
    [
        "scan.collect()",
        "scan.to_pandas()",
        "scan.to_polars()",
        "list(scan.pages())",
        "list(scan.records())",
        "client.discover()",
    ],
)
def test_ctrl_c_ends_a_wait_and_leaves_client_and_scan_usable(read):
    script = f"""
        import pandas, polars, signal, siteline
        with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
            client = sandbox.client()
            scan = client.data(
                site="S1", start="2026-11-01T00:00Z", end="2026-11-02T00:00Z", interval="5m",
                page_size=1000,
            )
            next(scan.pages()).to_polars()
            sandbox.fault(on="data", skip=1, times=99, hang=True)
            sandbox.fault(on="discovery", times=99, hang=True)
            try:
                print("waiting", flush=True)
                {read}
            except KeyboardInterrupt:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                print("interrupted", flush=True)
            sandbox.clear_faults()
            print(len(scan.to_pandas()) == len(sandbox.truth(**{DAY!r})), flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "waiting\n"
        rest = interrupt_until_it_ends(process)
    assert rest == "interrupted\nTrue\n"
    assert process.returncode == 0


def interrupt_until_it_ends(process):
    """Send SIGINT, again if Python has lost it in one of its own callbacks.

    The process ignores the second one if the first was not lost, and the machine only slow.
    """
    for _ in range(12):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            pass
    process.kill()
    raise AssertionError("SIGINT has no effect")


HANDLED = """
    import os, signal, threading, time, siteline
    class Enough(Exception):
        pass
    def handle(number, frame):
        {handle}
    def send():
        while not sandbox.stats["data_requests"]:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, handle)
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        client, other = sandbox.client(), sandbox.client()
        client.discover()
        sandbox.fault(on="data", hang=True)
        threading.Thread(target=send).start()
        try:
            client.data(site="S1", start=None).collect()
        except siteline.ForkError:
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
            "print(len(other.data(start=None, interval='1h').collect()) > 0); raise Enough",
            "pass",
            "True parent 2",
            marks=pytest.mark.fault("R1"),
            id="uses the client",
        ),
        pytest.param(
            "if os.fork(): raise Enough",
            "print(os.wait()[1], flush=True)",
            "child 2 0 parent 2",
            marks=pytest.mark.fault("R3"),
            id="forks",
        ),
    ],
)
def test_a_signal_handler_may_use_the_client_or_fork_while_a_call_waits(handle, after, printed):
    script = HANDLED.format(handle=handle, after=after)
    assert run_script(script, *FORK_WITH_THREADS).split() == printed.split()


# A handler that interrupts the first import of a module finds only a part of it, as in any program.
HOLDING = f"""
    import os, signal, threading, siteline, siteline.discovery
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
        key = siteline.PrivateKey.generate()
        with Relay(int(sandbox.base_url.rsplit(":", 1)[1]), hold) as relay:
            client = siteline.Client(
                f"http://127.0.0.1:{{relay.port}}",
                credential=siteline.Credential(sandbox.enroll(key.public_jwk), key),
                audience=sandbox.base_url + "/api/customer/oauth/token",
                clock=sandbox.clock,
            )
            points = len(sandbox.truth(**{DAY!r}))
            scan = client.data(**{DAY!r}, page_size=10_000)
            print(len(scan.collect()) == points, len(client.discover()), flush=True)
"""


@pytest.mark.fault("R1")
@systems.SIGNALS
@pytest.mark.parametrize("endpoint", ["/oauth/token", "/data"])
def test_a_signal_handler_may_wait_for_the_request_of_the_interrupted_call(endpoint):
    script = HOLDING.replace("ENDPOINT", endpoint)
    kit = {"PYTHONPATH": str(Path(__file__).parent)}
    assert run_script(script, environment=kit).split() == ["True", "2"] * 2


def test_a_log_handler_may_use_the_client_while_it_waits():
    with siteline.Sandbox(now=NOW) as sandbox:
        client = sandbox.client()
        handled = []

        class Asking(logging.Handler):
            def emit(self, record):
                if not handled:
                    handled.append(record.getMessage())
                    handled.append(client.discover())

        logger = logging.getLogger("siteline")
        handler = Asking()
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        try:
            sandbox.fault(on="data", nth=2, status=503)
            frame = client.data(**DAY, page_size=1_000).to_pandas()
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
        assert len(frame) == len(sandbox.truth(**DAY))
        assert len(handled) == 2


@pytest.mark.parametrize("named", [False, True])
def test_an_iterator_may_be_used_while_it_builds_a_record(named):
    """Building allocates, so the garbage collector may run, and with it arbitrary code."""
    with siteline.Sandbox(now=NOW) as sandbox:
        scan = sandbox.client().data(**DAY, page_size=2)
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
    """An exception such as a signal handler may raise anywhere, also in a log handler."""


@pytest.mark.parametrize("retried", [1, 2, 3])
def test_an_exception_while_logging_ends_the_wait_and_loses_no_page(retried):
    class Stopping(logging.Handler):
        def emit(self, record):
            stops.append(record)
            raise Stopped

    stops = []
    handler = Stopping(logging.INFO)
    logger = logging.getLogger("siteline.http")
    level = logger.level
    with siteline.Sandbox(now=NOW) as sandbox:
        pages = sandbox.client().data(**DAY, page_size=1_000).pages()
        sandbox.fault(on="data", nth=retried, status=503)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        got = []
        try:
            while True:
                try:
                    got.extend(pages)
                    break
                except Stopped:
                    continue
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
        assert len(stops) == 1
        assert sum(map(len, got)) == len(sandbox.truth(**DAY))


@pytest.mark.fault("R8")
@pytest.mark.skipif(
    not hasattr(siteline._siteline, "_panic"), reason="only a debug build can be made to panic"
)
@pytest.mark.parametrize("at", ["wait", "work", "call"])
def test_a_panic_in_the_core_is_an_internal_error(at, capfd):
    with pytest.raises(siteline.InternalError, match="internal error in siteline") as caught:
        siteline._siteline._panic(at)
    assert "still be used" in caught.value.hint
    assert isinstance(caught.value, RuntimeError)
    # The message contains the source location. Nothing is printed on stderr.
    assert "(src/bridge/runtime.rs:" in caught.value.message
    assert capfd.readouterr() == ("", "")


@pytest.mark.fault("R8")
@pytest.mark.skipif(
    not hasattr(siteline._siteline, "_panic"), reason="only a debug build can be made to panic"
)
@pytest.mark.parametrize("at", ["await", "result"])
def test_a_panic_in_an_awaited_call_is_an_internal_error_and_the_client_stays_usable(at, capfd):
    with siteline.Sandbox(now=NOW) as sandbox:
        client = sandbox.async_client()

        async def main():
            with pytest.raises(siteline.InternalError, match="internal error in siteline"):
                await asyncio.wait_for(siteline._siteline._panic(at), 60)
            return await client.discover()

        assert asyncio.run(main()).raw
    assert capfd.readouterr() == ("", "")
