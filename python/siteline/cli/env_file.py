"""A file of environment variables that a sandbox writes, and removes when it ends."""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from siteline import _doors

_MARK = "# The variables of a siteline sandbox."
_PLAIN = re.compile(r"[\w@%+=:,./-][\w@%+=:,./#-]*", re.ASCII)


@contextmanager
def env_file(path: str | None, variables: Mapping[str, str]) -> Iterator[Path]:
    """Writes the variables to a private file, and removes it at the end.

    Without a path the file is in a temporary folder, which is removed too.
    """
    import tempfile

    with ExitStack() as stack:
        if path is None:
            folder = tempfile.TemporaryDirectory(prefix="siteline-sandbox-")
            path = os.path.join(stack.enter_context(folder), "env")
        yield stack.enter_context(_written(Path(path), _text(variables)))


def _text(variables: Mapping[str, str]) -> str:
    lines = (f"{name}={_quoted(value)}" for name, value in variables.items())
    return "\n".join([_MARK, *lines, ""])


def _quoted(value: str) -> str:
    # One line, because some readers accept no line breaks. A PEM text needs none.
    if "-----BEGIN " in value:
        value = value.replace("\n", "")
    return value if _PLAIN.fullmatch(value) else shlex.quote(value)


@contextmanager
def _written(path: Path, text: str) -> Iterator[Path]:
    _refuse_another(path)
    with _doors.whole_file(path, mode=0o600, keeps=False) as part:
        part.write_text(text, encoding="utf-8")
        mine = part.stat()
    try:
        yield path
    finally:
        # Another sandbox may have replaced the file.
        if path.exists() and os.path.samestat(mine, path.stat()):
            path.unlink(missing_ok=True)


def _refuse_another(path: Path) -> None:
    if not os.path.lexists(path):
        return
    if path.is_file():
        with open(path, encoding="utf-8", errors="replace") as file:
            if file.readline().rstrip("\n") == _MARK:
                return
    text = "it is not the env file of a sandbox, so it is not replaced"
    raise FileExistsError(errno.EEXIST, text, str(path))
