"""Runs that end a wait: by Ctrl-C, by asyncio, by close()."""

from torture.harness import Harness
from torture.server import Server


def interrupt(harness: Harness, where: str) -> float:
    """Press Ctrl-C during a wait; then both the sync and the async client must work."""
    modes = {"body": "stalled", "backoff": "busy", "pages": "endless", "exchange": "exchange"}
    with Server(listening=where != "connect") as server:
        url = server.url(modes.get(where, "silent"))
        with harness.interpreter("interrupt", url, where) as interpreter:
            interpreter.await_report("ready")
            if where == "connect":
                server.await_connecting()
            elif where == "exchange":
                server.await_request("/token")
                interpreter.send("wait")
            else:
                server.await_request("/data", count=5 if where == "pages" else 1)
            harness.wait_phase()
            signalled = interpreter.interrupt()
            reaction = interpreter.await_report("interrupted").at - signalled
            if where == "connect":
                server.open()
            server.release()
            interpreter.send("continue")
            interpreter.await_report("usable")
            interpreter.await_report("awaitable")
            interpreter.await_end()
            return harness.check_in_time(reaction)


def cancel(harness: Harness, how: str, loop: str = "asyncio") -> float:
    """Cancel an awaited request: the server must see its connection closed."""
    with (
        Server() as server,
        harness.interpreter("cancel", server.url("silent"), how, loop) as interpreter,
    ):
        interpreter.await_report("ready")
        if how == "wait_for":
            started = interpreter.await_report("ending")
            ended = interpreter.await_report("ended").at
            limit = started.at + started.numbers["after"]
        else:
            server.await_request("/data")
            harness.wait_phase()
            interpreter.send("end")
            limit = interpreter.await_report("ending").at
            ended = interpreter.await_report("ended").at
        closed = server.await_close(timeout=harness.limits.timeout)
        if how == "drop":
            interpreter.send("continue")
        interpreter.await_report("usable")
        interpreter.await_end()
        return harness.check_in_time(max(closed, ended) - limit)


def loops(harness: Harness, how: str, loop: str = "asyncio") -> None:
    """One client in several event loops; one of them closed with a call pending."""
    with Server() as server:
        url = server.url("stalled" if how == "pending" else "page")
        with harness.interpreter("loops", url, how, loop) as interpreter:
            if how == "pending":
                interpreter.await_report("pending")
                server.await_request("/data")
                interpreter.send("close")
                interpreter.await_report("closed")
                server.release()
                interpreter.send("continue")
            interpreter.await_report("usable")
            interpreter.await_end()


def close(harness: Harness, api: str) -> float:
    """Close the client while another thread waits: that thread gets ClosedError."""
    with (
        Server() as server,
        harness.interpreter("close", server.url("silent"), api) as interpreter,
    ):
        interpreter.await_report("ready")
        server.await_request("/data")
        harness.wait_phase()
        interpreter.send("close")
        started = interpreter.await_report("ending").at
        reaction = interpreter.await_report("ended").at - started
        interpreter.await_end()
        return harness.check_in_time(reaction)
