"""Plays about the process: it forks, it shares, it ends."""

from __future__ import annotations

from torture.server import Server
from torture.stage import Fault, Stage

HANGING = ("daemon", "daemon_await", "pending", "pending_closed", "cancelled")
"""Ends that leave a data request without a reply."""


def fork(stage: Stage, times: int, threads: int = 1) -> float:
    """Fork so often while threads of the parent read; children use the inherited token."""
    with Server() as server:
        url = server.url("page")
        with stage.interpreter("fork", url, threads, times) as interpreter:
            worst = interpreter.await_word("unharmed").numbers["worst"]
            interpreter.await_end()
            _one_token(server, 1)
            return stage.in_time(worst)


def pools(stage: Stage, how: str) -> None:
    """Hand work to a pool of processes; those that fork inherit the token."""
    with (
        Server() as server,
        stage.interpreter("pools", server.url("page"), how, warn=False) as interpreter,
    ):
        workers = int(interpreter.await_word("unharmed").numbers["workers"])
        interpreter.await_end()
        # One for the parent before, one after, one for each worker that inherits none.
        _one_token(server, 2 if how == "fork" else workers + 2)


def _one_token(server: Server, most: int) -> None:
    tokens = sum(path.endswith("/token") for path in server.requests)
    if tokens > most:
        raise Fault(f"{tokens} token requests, not {most}")


def end(stage: Stage, how: str) -> float:
    """End in the middle of something: with its own status, in time, without a word."""
    what, _, ending = how.partition(",")
    with Server() as server:
        way = "silent" if what in HANGING else "page" if what == "nothing" else "endless"
        url = server.url(way)
        with stage.interpreter("end", url, how) as interpreter:
            if what == "cancelled":
                interpreter.await_word("asking")
                server.await_request("/data")
                interpreter.say("cancel")
            interpreter.await_word("ready")
            if what in HANGING:
                server.await_request("/data")
            stage.let_pass()
            interpreter.say("end")
            begun = interpreter.await_word("ending").at
            status = {"code": 7, "raise": 1}.get(ending, 0)
            complaint = "LookupError: the script's own" if ending == "raise" else ""
            return stage.in_time(interpreter.await_end(status=status, complaint=complaint) - begun)


def share(stage: Stage, how: str) -> None:
    """Share a client, an iterator or a log handler between many threads."""
    with Server() as server:
        url = server.url("endless" if how in ("iterator", "records") else "page")
        with stage.interpreter("share", url, how) as interpreter:
            interpreter.await_word("done")
            interpreter.await_end()


def leak(stage: Stage, how: str, times: int) -> None:
    """Make and drop clients, or read pages: memory, file descriptors and threads stay."""
    with Server() as server:
        url = server.url("endless" if how == "pages" else "page")
        with stage.interpreter("leak", url, how, times) as interpreter:
            interpreter.await_word("done")
            interpreter.await_end()
