"""Runs the command ``siteline`` as a service, which ends when it is asked to."""

import contextlib
import signal
import subprocess

from kit.command import COMMAND, environment


@contextlib.contextmanager
def running(*arguments, env):
    """The command in a process, which is killed where a test fails."""
    # Without PYTHONUNBUFFERED, which would hide a line that waits in a buffer.
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
    """Send the signal and wait for the end; return the status, and the rest of the output."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return process.returncode, out, err
