"""``password_command``: runs the command that prints a passphrase."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Any

from siteline._core import _excerpt
from siteline._escape import described
from siteline._refusals import is_passing, no_process, no_thread
from siteline.errors import CredentialError

# Bytes kept of a command's output.
MOST = 65_536
# Seconds of a command: the user may have to touch a hardware key.
LIMIT = 60
# Seconds from its first line to its end.
AFTER_LINE = 5.0
# Seconds between two looks at its output, and at whether it has ended without closing it.
LOOK = 0.05
# Seconds for the output of an ended command, if another program holds its pipe.
AFTER_END = 1.0


def words(command: Any) -> list[str]:
    if isinstance(command, str):
        try:
            command = split(command, is_windows=os.name == "nt")
        except ValueError:
            raise CredentialError(
                "password_command has a quote that never ends.",
                hint="Pass a list of words instead, which is not split.",
            ) from None
    elif not isinstance(command, Sequence) or not all(isinstance(word, str) for word in command):
        found = described(command)
        raise TypeError(f"password_command= is text or a list of words; this is {found}.")
    if not command or not command[0]:
        raise CredentialError("password_command is empty.")
    return list(command)


def printed(command: list[str]) -> bytes:
    """Run a command and return the first line of its output."""
    failure, line, said = run(command, LIMIT)
    if failure is None:
        return line
    raise CredentialError(
        f"password_command ({_excerpt(command[0])}) {failure}.",
        hint=f"It said: {_excerpt(said)}"
        if said
        else "Run it by hand: its first line is the passphrase.",
    )


def split(text: str, *, is_windows: bool) -> list[str]:
    """Split a text as a shell does; on Windows a backslash is part of a path."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if is_windows:
        lexer.escape, lexer.quotes = "", '"'
    return list(lexer)


class _Output(threading.Thread):
    """Keeps the first `MOST` bytes of a pipe of the command.

    It reads all of stderr, so that the command does not block. It is a daemon thread, because a
    background program of the command may never close the pipe.
    """

    def __init__(self, pipe: IO[bytes] | None, *, reads_all: bool) -> None:
        super().__init__(daemon=True)
        assert pipe is not None
        self.pipe, self.reads_all = pipe, reads_all
        self.kept = b""
        self.start()

    def run(self) -> None:
        with self.pipe:
            while part := os.read(self.pipe.fileno(), MOST):
                self.kept += part[: MOST - len(self.kept)]
                if self.is_cut and not self.reads_all:
                    break

    @property
    def is_cut(self) -> bool:
        return len(self.kept) == MOST

    @property
    def line(self) -> bytes | None:
        """The first line, if its end was read."""
        line, end, _ = self.kept.partition(b"\n")
        return line.removesuffix(b"\r") if end else None


def run(words: list[str], limit: float) -> tuple[str | None, bytes, str]:
    """Return the failure of a command, the first line of its output, and its messages.

    The traceback of an exception could contain the output.
    """
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
        )
    except OSError as error:
        why = f": {error.strerror}" if error.strerror else ""
        if is_passing(error):
            raise _not_started(words[0], no_process(error)) from None
        return f"could not be started{why}", b"", ""
    try:
        return _outcome(process, limit)
    except RuntimeError:  # the system starts no thread
        why = no_thread()[0]
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    raise _not_started(words[0], why)


def _not_started(program: str, why: str | None) -> CredentialError:
    text = f"password_command ({program}) could not be started: {why}."
    return CredentialError(text, hint=no_thread()[1], retryable=True)


def _environment() -> dict[str, str] | None:
    """Return the environment for programs of the system, or ``None`` for an unchanged one.

    A PyInstaller application sets a library path to its own libraries, which others must not load.
    """
    if not hasattr(sys, "_MEIPASS"):
        return None
    environment = dict(os.environ)
    for name in ("LD_LIBRARY_PATH", "LIBPATH"):
        environment.pop(name, None)
        if (original := environment.get(f"{name}_ORIG")) is not None:
            environment[name] = original
    return environment


def _outcome(process: subprocess.Popen[bytes], limit: float) -> tuple[str | None, bytes, str]:
    end = time.monotonic() + limit
    printed = _Output(process.stdout, reads_all=False)
    said = _Output(process.stderr, reads_all=True)
    # Until a line, the end of the output, the end of the command, or the limit.
    while printed.line is None and printed.is_alive() and process.poll() is None:
        if time.monotonic() >= end:
            break
        printed.join(LOOK)
    status = _status(process, AFTER_LINE if printed.line is not None else end - time.monotonic())
    if status is not None and printed.line is None:
        # Its output is in the pipe, which may never be closed.
        printed.join(AFTER_END)
    line = printed.line
    if line is None and printed.is_cut:
        return f"printed {MOST:,} bytes without the end of a line", b"", ""
    if line is None and status is None:
        return f"did not end within {limit} seconds", b"", ""
    if line is None:
        line = printed.kept.removesuffix(b"\r")
    # A running command has printed its line. A command with truncated output may fail.
    if line and (not status or printed.is_cut):
        return None, line, ""
    said.join(AFTER_END)
    message = said.kept.decode(errors="replace").strip()
    if line:
        message = message.replace(line.decode(errors="replace"), "[removed]")
    return f"ended with status {status}" if status else "printed nothing", b"", message


def _status(process: subprocess.Popen[bytes], limit: float) -> int | None:
    try:
        return process.wait(max(limit, 0))
    except subprocess.TimeoutExpired:
        return None
