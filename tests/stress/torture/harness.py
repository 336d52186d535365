"""One run: a new interpreter, its reports and its exit."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SCRIPTS = Path(__file__).with_name("scripts")
SLOW = re.compile(r"Executing <.*> took \d+\.\d+ seconds$")
"""A line that asyncio logs with -X dev on a busy machine."""


class Fault(Exception):
    """A run that failed."""


@dataclass(frozen=True)
class Report:
    """A line that a script printed: a name, the time on the monotonic clock, and figures."""

    name: str
    at: float
    numbers: dict[str, float]


@dataclass(frozen=True)
class Limits:
    react: float
    """The longest time to react; a run that takes longer fails."""
    timeout: float
    """The longest wait for one event; then the interpreter is killed."""


@dataclass(frozen=True)
class Harness:
    """Runs scripts in new interpreters within limits."""

    limits: Limits
    phase: float = 0.0
    """Seconds to sleep before a wait is ended, so that it ends at a random moment."""

    def interpreter(self, script: str, *arguments: object, warn: bool = True) -> Interpreter:
        """Run a script with these arguments; ``warn`` makes warnings errors."""
        options = ["-X", "dev", "-W", "error"] if warn else []
        command = [sys.executable, *options, str(SCRIPTS / f"{script}.py")]
        return Interpreter(command + [str(argument) for argument in arguments], self.limits)

    def wait_phase(self) -> None:
        time.sleep(self.phase)

    def check_in_time(self, seconds: float) -> float:
        """Check a time to react, and return it in milliseconds."""
        if seconds > self.limits.react:
            raise Fault(f"took {seconds * 1000:.0f} ms")
        return max(seconds, 0.0) * 1000


class Interpreter:
    def __init__(self, command: list[str], limits: Limits) -> None:
        self._limits = limits
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": ""}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._errors: list[str] = []
        self._ended_at = 0.0
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._readers = [
            threading.Thread(target=self._read_reports, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        self._waiter.start()
        for reader in self._readers:
            reader.start()

    def _wait(self) -> None:
        self._process.wait()
        self._ended_at = time.monotonic()

    def _read_reports(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)

    def await_report(self, expected: str) -> Report:
        """Wait for the next report, which must have this name."""
        try:
            line = self._lines.get(timeout=self._limits.timeout)
        except queue.Empty:
            raise Fault(f"no {expected!r} within {self._limits.timeout:.0f} s") from None
        name, *parts = (line or "").split() or [""]
        if name != expected:
            raise Fault(f"{(line or 'nothing').strip()!r} instead of {expected!r}{self._stderr()}")
        numbers = {key: float(value) for key, _, value in (part.partition("=") for part in parts)}
        return Report(name, numbers.pop("at"), numbers)

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except OSError:
            raise Fault(f"the script ended before {line!r} was sent{self._stderr()}") from None

    def interrupt(self) -> float:
        at = time.monotonic()
        self._process.send_signal(signal.SIGINT)
        return at

    def await_end(self, *, status: int = 0, last_line: str = "") -> float:
        """Wait for the exit; return its time. ``last_line``: the expected last line on stderr."""
        self._waiter.join(self._limits.timeout)
        if self._waiter.is_alive():
            raise Fault(f"did not end within {self._limits.timeout:.0f} s")
        for reader in self._readers:
            reader.join(self._limits.timeout)
        if self._process.returncode != status:
            raise Fault(f"ended, not with status {status}{self._stderr()}")
        errors = "".join(line for line in self._errors if not SLOW.match(line)).strip()
        if errors.splitlines()[-1:] != last_line.splitlines()[-1:]:
            raise Fault(f"on stderr: {errors[-2000:] or 'nothing'}")
        return self._ended_at

    def _stderr(self) -> str:
        self._waiter.join(1)
        if self._waiter.is_alive():
            return ""
        self._readers[1].join(1)
        return f", status {self._process.returncode}, stderr: {''.join(self._errors)[-2000:]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for thread in (self._waiter, *self._readers):
            thread.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
