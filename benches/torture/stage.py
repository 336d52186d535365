"""One play: a fresh interpreter, what it says, and how it ends."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SCRIPTS = Path(__file__).with_name("scripts")
SLOW = re.compile(r"Executing <.*> took \d+\.\d+ seconds$")
"""What asyncio says with -X dev of a machine that is busy with other things."""


class Fault(Exception):
    """What a play should not have shown."""


@dataclass(frozen=True)
class Word:
    """A line that the interpreter said: a word and when, on the machine's monotonic clock."""

    text: str
    at: float
    numbers: dict[str, float]


@dataclass(frozen=True)
class Limits:
    """How long a play may take, in seconds."""

    react: float
    """Longest time to react; beyond it the play has failed."""
    patience: float
    """Longest wait for anything at all; beyond it the interpreter is killed."""


@dataclass(frozen=True)
class Stage:
    """Where plays take place: an interpreter, the package it tries, and the limits."""

    python: str
    package: str
    limits: Limits
    phase: float = 0.0
    """Seconds to let pass before what a play does to a wait, so that it comes at any phase."""

    def interpreter(self, script: str, *arguments: object, warn: bool = True) -> Interpreter:
        """Run a script with these arguments; ``warn`` makes warnings errors."""
        options = ["-X", "dev", "-W", "error"] if warn else []
        command = [self.python, *options, str(SCRIPTS / f"{script}.py"), self.package]
        return Interpreter(command + [str(argument) for argument in arguments], self.limits)

    def let_pass(self) -> None:
        """Let the phase of this play pass."""
        time.sleep(self.phase)

    def in_time(self, seconds: float) -> float:
        """Check a time to react, and return it in milliseconds."""
        if seconds > self.limits.react:
            raise Fault(f"took {seconds * 1000:.0f} ms")
        return max(seconds, 0.0) * 1000


class Interpreter:
    """A running script."""

    def __init__(self, command: list[str], limits: Limits) -> None:
        """Start it."""
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
        self._said: list[str] = []
        self._errors: list[str] = []
        self._ended_at = 0.0
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._readers = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._note_errors, daemon=True),
        ]
        self._waiter.start()
        for reader in self._readers:
            reader.start()

    def _wait(self) -> None:
        self._process.wait()
        self._ended_at = time.monotonic()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _note_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)

    def await_word(self, expected: str) -> Word:
        """Wait for the next line, which must begin with this word."""
        try:
            line = self._lines.get(timeout=self._limits.patience)
        except queue.Empty:
            raise Fault(f"no {expected!r} within {self._limits.patience:.0f} s") from None
        text, *parts = (line or "").split() or [""]
        if text != expected:
            raise Fault(f"{(line or 'nothing more').strip()!r} for {expected!r}{self._complaint()}")
        numbers = {name: float(value) for name, _, value in (part.partition("=") for part in parts)}
        return Word(text, numbers.pop("at"), numbers)

    def say(self, word: str) -> None:
        """Tell the script something."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{word}\n")
            self._process.stdin.flush()
        except OSError:
            raise Fault(f"it ended before it was told {word!r}{self._complaint()}") from None

    def interrupt(self) -> float:
        """Send what Ctrl-C sends, and return when."""
        at = time.monotonic()
        self._process.send_signal(signal.SIGINT)
        return at

    def await_end(self, *, status: int = 0, complaint: str = "") -> float:
        """Wait for the end with this status, ``complaint`` last on stderr; return when it came."""
        self._waiter.join(self._limits.patience)
        if self._waiter.is_alive():
            raise Fault(f"did not end within {self._limits.patience:.0f} s")
        for reader in self._readers:
            reader.join(self._limits.patience)
        if self._process.returncode != status:
            raise Fault(f"ended, not with {status}{self._complaint()}")
        said = "".join(line for line in self._errors if not SLOW.match(line)).strip()
        if said.splitlines()[-1:] != complaint.splitlines()[-1:]:
            raise Fault(f"on stderr: {said[-2000:] or 'nothing'}")
        return self._ended_at

    def _complaint(self) -> str:
        self._waiter.join(1)
        if self._waiter.is_alive():
            return ""
        self._readers[1].join(1)
        return f", status {self._process.returncode}, stderr: {''.join(self._errors)[-2000:]}"

    def __enter__(self) -> Self:
        """Leave ends the interpreter and all that it started."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End it, with its children."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for thread in (self._waiter, *self._readers):
            thread.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
