"""Plays about waits that are ended: by Ctrl-C, by asyncio, by close()."""

from __future__ import annotations

from torture.server import Server
from torture.stage import Stage


def interrupt(stage: Stage, where: str) -> float:
    """Ctrl-C within a wait; afterwards the client must serve both doors."""
    ways = {"body": "stalled", "backoff": "busy", "pages": "endless", "exchange": "exchange"}
    with Server(listening=where != "connect") as server:
        url = server.url(ways.get(where, "silent"))
        with stage.interpreter("interrupt", url, where) as interpreter:
            interpreter.await_word("ready")
            if where == "connect":
                server.await_dialling()
            elif where == "exchange":
                server.await_request("/token")
                interpreter.say("queue up")
            else:
                server.await_request("/data", count=5 if where == "pages" else 1)
            stage.let_pass()
            signalled = interpreter.interrupt()
            reaction = interpreter.await_word("interrupted").at - signalled
            if where == "connect":
                server.open()
            server.release()
            interpreter.say("go on")
            interpreter.await_word("usable")
            interpreter.await_word("awaitable")
            interpreter.await_end()
            return stage.in_time(reaction)


def cancel(stage: Stage, how: str, loop: str = "asyncio") -> float:
    """Give up an awaited request: the server must see its connection closed."""
    with (
        Server() as server,
        stage.interpreter("cancel", server.url("silent"), how, loop) as interpreter,
    ):
        interpreter.await_word("ready")
        if how == "wait_for":
            begun = interpreter.await_word("ending")
            ended = interpreter.await_word("ended").at
            limit = begun.at + begun.numbers["after"]
        else:
            server.await_request("/data")
            stage.let_pass()
            interpreter.say("end")
            limit = interpreter.await_word("ending").at
            ended = interpreter.await_word("ended").at
        closed = server.await_close(patience=stage.limits.patience)
        if how == "drop":
            interpreter.say("go on")
        interpreter.await_word("usable")
        interpreter.await_end()
        return stage.in_time(max(closed, ended) - limit)


def loops(stage: Stage, how: str, loop: str = "asyncio") -> None:
    """One client in several loops; one of them closed with a call pending."""
    with Server() as server:
        url = server.url("stalled" if how == "pending" else "page")
        with stage.interpreter("loops", url, how, loop) as interpreter:
            if how == "pending":
                interpreter.await_word("pending")
                server.await_request("/data")
                interpreter.say("close")
                interpreter.await_word("closed")
                server.release()
                interpreter.say("go on")
            interpreter.await_word("usable")
            interpreter.await_end()


def close(stage: Stage, door: str) -> float:
    """Close the client while another thread waits: ClosedError there."""
    with (
        Server() as server,
        stage.interpreter("close", server.url("silent"), door) as interpreter,
    ):
        interpreter.await_word("ready")
        server.await_request("/data")
        stage.let_pass()
        interpreter.say("close")
        begun = interpreter.await_word("ending").at
        reaction = interpreter.await_word("ended").at - begun
        interpreter.await_end()
        return stage.in_time(reaction)
