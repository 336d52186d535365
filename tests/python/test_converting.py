"""Frames of an asyncio scan are made on another thread than the loop's."""

import asyncio
import contextvars
import sys
import threading
from contextlib import contextmanager

import pytest
import siteline
from kit.ranges import SIX_HOURS
from kit.waiting import wait_until
from siteline import frames

WAYS = ["to_pandas", "to_polars", "to_arrow"]


@contextmanager
def watch(on_call):
    """Call `on_call()` in each thread that begins to make a frame."""
    codes = {getattr(frames, name).__code__ for name in WAYS}

    def profile(frame, event, _argument):
        if event == "call" and frame.f_code in codes:
            on_call()

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def test_a_frame_is_made_on_another_thread_in_the_callers_context(sandbox):
    request, seen = contextvars.ContextVar("request", default="none"), []

    async def read():
        request.set("mine")
        async with sandbox.async_client() as client:
            scan = client.scan(**SIX_HOURS)
            for way in WAYS:
                assert len(await getattr(scan, way)()) == 72
            with pytest.raises(siteline.errors.QueryError, match="ids='texts' is unknown"):
                await scan.to_pandas(ids="texts")

    with watch(lambda: seen.append((threading.get_ident(), request.get()))):
        asyncio.run(read())
    threads, values = zip(*seen, strict=True)
    assert values == ("mine",) * 3
    assert threading.get_ident() not in threads


def test_a_cancelled_task_does_not_wait_for_its_frame(sandbox):
    begun, go_on = threading.Event(), threading.Event()
    went_on = []

    def on_call():
        begun.set()
        went_on.append(go_on.wait(60))

    async def read():
        async with sandbox.async_client() as client:
            scan = client.scan(**SIX_HOURS)
            task = asyncio.create_task(scan.to_pandas())
            while not begun.is_set():
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            go_on.set()
            return len(await scan.to_pandas()), sandbox.stats.data_requests

    with watch(on_call):
        assert asyncio.run(read()) == (72, 3)
        # The thread of the cancelled task may end after the other one.
        wait_until(lambda: len(went_on) == 2)
    assert went_on == [True, True], "the cancelled task was done before its frame"


def test_a_frame_is_made_although_every_thread_of_the_loops_executor_waits_for_one(sandbox):
    async def read():
        loop = asyncio.get_running_loop()
        async with sandbox.async_client() as client:
            scan = client.scan(**SIX_HOURS)

            def wait_for_the_frame():
                return len(asyncio.run_coroutine_threadsafe(scan.to_pandas(), loop).result(60))

            waiting = [asyncio.to_thread(wait_for_the_frame) for _ in range(40)]
            return set(await asyncio.gather(*waiting))

    assert asyncio.run(read()) == {72}
