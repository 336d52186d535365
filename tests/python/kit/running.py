"""Runs the command ``siteline`` as a service until a signal ends it."""

import contextlib
import signal
import subprocess

from kit.command import COMMAND, environment


@contextlib.contextmanager
def running(*arguments, env):
    """Runs the command in a process, which is killed at the end of the block."""
    # PYTHONUNBUFFERED would hide the error that a line stays in a buffer.
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(env), "PYTHONUNBUFFERED": ""},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def end(process, number=signal.SIGTERM):
    """Sends the signal and waits for the end; returns the status and the rest of the output."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return process.returncode, out, err
