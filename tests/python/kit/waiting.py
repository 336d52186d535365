"""Waits for a condition that another thread or process makes true."""

import time


def wait_until(condition, timeout=60):
    """Wait until `condition()` is true; fail after `timeout` seconds."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"not true within {timeout} s"
        time.sleep(0.001)
