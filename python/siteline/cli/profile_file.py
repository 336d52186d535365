"""The file of profiles: read, and a profile appended to it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline.cli.profile_members import table
from siteline.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_LARGEST = 1 << 20
"""Maximum bytes of a file that the client reads."""


def read_profiles(path: Path) -> dict[str, dict[str, Any]]:
    """Return the profiles by name, in the order of the file. A missing file has none."""
    return _parsed(_content(path), path)


def append_profile(path: Path, name: str, members: dict[str, Any]) -> None:
    """Append a profile without changing the other bytes of the file."""
    _check_name(name)
    _doors.create_folder(path.parent)
    with _alone(path):
        before = _content(path)
        if name in _parsed(before, path):
            raise ConfigError(
                f'There is a profile "{name}" already, in {path}.',
                hint="Choose another name, or change it in the file.",
            )
        after = before + _addition(before, name, members)
        if len(after) > _LARGEST:
            raise ConfigError(f"{path} would be longer than {_LARGEST:,} bytes.")
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        with _doors.whole_file(path, mode=0o600) as part:
            part.write_bytes(after)


def _addition(before: bytes, name: str, members: dict[str, Any]) -> bytes:
    end = "\r\n" if b"\r\n" in before else "\n"
    space = ""
    if before.strip():
        space = end if before.endswith(b"\n") else 2 * end
    try:
        return (space + table(name, members, end)).encode()
    except UnicodeEncodeError:
        raise ConfigError("An argument has bytes that are not UTF-8, as TOML requires.") from None


def _check_name(name: str) -> None:
    # It must fit on a line of TOML and in SITELINE_PROFILE.
    if not name or name != name.strip() or not name.isprintable():
        raise ConfigError(
            f"{name!r} cannot be the name of a profile.",
            hint="A name has only printable characters, and no blank at its ends.",
        )


def _content(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return b""
    if len(content) > _LARGEST:
        raise ConfigError(f"{path} is longer than {_LARGEST:,} bytes: it is no file of profiles.")
    return content


def _parsed(content: bytes, path: Path) -> dict[str, dict[str, Any]]:
    import tomllib

    try:
        found = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        # The parser's message may quote a part of the file.
        at = re.search(r"at line (\d+)", str(error))
        where = f"line {at[1]} of {path}" if at else f"the end of {path}"
        raise ConfigError(f"There is a mistake in {where}: it is not TOML.") from None
    except (RecursionError, ValueError):
        # Values that are nested too deep, or a number with thousands of digits.
        raise ConfigError(f"{path} is no file of profiles: no profile has such values.") from None
    for name, members in found.items():
        if not isinstance(members, dict):
            raise ConfigError(
                f'"{name[:80]}" is not in a profile, in {path}.',
                hint="Write a line such as [plant-a] above it.",
            )
    return found


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Allow only one process at a time to change the file, if the system has file locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    # Lock the folder, because the file is replaced and its lock would be lost.
    folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a network filesystem may have no locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
