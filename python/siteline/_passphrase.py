"""``password_command``: runs the command that prints a passphrase."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from typing import Any

from siteline.errors import CredentialError


def words(command: Any) -> list[str]:
    """Return the words of a command: a list as it is, a text split as a shell would split it."""
    if isinstance(command, str):
        try:
            command = shlex.split(command, posix=os.name != "nt")
        except ValueError:
            raise CredentialError(
                "password_command has a quote that never ends.",
                hint="Give it as a list of words, and nothing is split.",
            ) from None
    elif not isinstance(command, Sequence) or not all(isinstance(word, str) for word in command):
        found = f"an object of type {type(command).__name__}"
        raise TypeError(f"password_command= is text or a list of words; this is {found}.")
    if not command or not command[0]:
        raise CredentialError("password_command is empty.")
    return list(command)


def run(words: list[str], limit: int) -> tuple[str | None, bytes, str]:
    """Run a command: what failed, the first line that it printed, and its messages.

    What failed is returned, not raised: an exception would keep what the command printed in its
    traceback or its context.
    """
    try:
        ended = subprocess.run(
            words,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {limit} seconds", b"", ""
    except OSError as error:
        why = f": {error.strerror}" if error.strerror else ""
        return f"could not be started{why}", b"", ""
    line = ended.stdout.partition(b"\n")[0].removesuffix(b"\r")
    if line and not ended.returncode:
        return None, line, ""
    said = ended.stderr.decode(errors="replace").strip()
    if line:
        said = said.replace(line.decode(errors="replace"), "[removed]")
    status = ended.returncode
    return f"ended with status {status}" if status else "printed nothing", b"", said
