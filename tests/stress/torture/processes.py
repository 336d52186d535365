"""Runs of fork, process pools, threads, memory and exit."""

from torture.harness import Fault, Harness
from torture.server import Server

HANGING = ("daemon", "daemon_await", "pending", "pending_closed", "cancelled")
"""Variants that exit while a data request waits for its reply."""


def fork(harness: Harness, times: int, threads: int = 1) -> float:
    """Fork ``times`` times while threads of the parent read; children use the inherited token."""
    with Server() as server:
        url = server.url("page")
        with harness.interpreter("fork", url, threads, times) as interpreter:
            worst = interpreter.await_report("done").numbers["worst"]
            interpreter.await_end()
            _check_tokens(server, 1)
            return harness.check_in_time(worst)


def pools(harness: Harness, how: str) -> None:
    """Read in a pool of processes; forked workers inherit the token."""
    with (
        Server() as server,
        harness.interpreter("pools", server.url("page"), how, warn=False) as interpreter,
    ):
        workers = int(interpreter.await_report("done").numbers["workers"])
        interpreter.await_end()
        # One for the parent before, one after, and one for each worker that does not inherit it.
        _check_tokens(server, 2 if how == "fork" else workers + 2)


def _check_tokens(server: Server, most: int) -> None:
    tokens = sum(path.endswith("/token") for path in server.requests)
    if tokens > most:
        raise Fault(f"{tokens} token requests, not {most}")


def end(harness: Harness, how: str) -> float:
    """Exit during an operation: with the script's status, in time, nothing on stderr."""
    what, _, ending = how.partition(",")
    with Server() as server:
        mode = "silent" if what in HANGING else "page" if what == "nothing" else "endless"
        url = server.url(mode)
        with harness.interpreter("end", url, how) as interpreter:
            if what == "cancelled":
                interpreter.await_report("asking")
                server.await_request("/data")
                interpreter.send("cancel")
            interpreter.await_report("ready")
            if what in HANGING:
                server.await_request("/data")
            harness.wait_phase()
            interpreter.send("end")
            started = interpreter.await_report("ending").at
            status = {"code": 7, "raise": 1}.get(ending, 0)
            last_line = "LookupError: raised by the script" if ending == "raise" else ""
            return harness.check_in_time(
                interpreter.await_end(status=status, last_line=last_line) - started
            )


def share(harness: Harness, how: str) -> None:
    """Share a client or an iterator between many threads."""
    with Server() as server:
        url = server.url("endless" if how in ("iterator", "records") else "page")
        with harness.interpreter("share", url, how) as interpreter:
            interpreter.await_report("done")
            interpreter.await_end()


def leak(harness: Harness, how: str, times: int) -> None:
    """Make and drop clients, or read pages: memory, files and threads do not increase."""
    with Server() as server:
        url = server.url("endless" if how == "pages" else "page")
        with harness.interpreter("leak", url, how, times) as interpreter:
            interpreter.await_report("done")
            interpreter.await_end()
