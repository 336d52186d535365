"""Waits for a condition that another thread, task or process makes true."""

import asyncio
import time


def wait_until(condition, timeout=60):
    """Waits until `condition()` is true; fails after `timeout` seconds."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"not true within {timeout} s"
        time.sleep(0.001)


async def wait_until_async(condition, timeout=60):
    """Waits until `condition()` is true while other tasks of the loop run."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"not true within {timeout} s"
        await asyncio.sleep(0.001)
