"""The passphrase of a new key: from a file, a command or the terminal.

It is never the value of an argument, because other users can see a command line.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
import warnings

from siteline.cli.arguments import Options, add_options
from siteline.errors import CredentialError, SitelineWarning

_LONGEST = 65_536


def add_passphrase(made: argparse.ArgumentParser) -> None:
    """Adds the arguments for the source of the passphrase."""
    group = made.add_argument_group(
        "passphrase", "Without one of these options the key is not encrypted."
    )
    sources = {
        "--encrypt": "type it on the terminal, twice",
        "--passphrase-file FILE": "its first line; - is standard input",
        "--password-command COMMAND": "the first line that this command prints",
    }
    add_options(group.add_mutually_exclusive_group(), sources)


def passphrase_of(options: Options) -> bytes | None:
    """Returns the passphrase, or ``None`` for a key that is not encrypted."""
    if options.passphrase_file is not None:
        line = _line_of_file(options.passphrase_file)
    elif options.password_command is not None:
        from siteline import _passphrase

        line = _passphrase.printed(_passphrase.words(options.password_command))
    elif options.encrypt:
        line = _asked()
    else:
        return None
    if not line:
        raise CredentialError("The passphrase is empty.")
    return line


def _line_of_file(path: str) -> bytes:
    if path == "-":
        if sys.stdin is None:
            raise CredentialError("Standard input is closed: there is no passphrase.")
        return _first_line(sys.stdin.buffer.readline(_LONGEST + 1), "standard input")
    with open(path, "rb") as file:
        _warn_of_readers(path, os.fstat(file.fileno()).st_mode)
        line = file.readline(_LONGEST + 1)
    if not line:
        raise CredentialError(f"The file {path} is empty: its first line is the passphrase.")
    return _first_line(line, f"the file {path}")


def _first_line(line: bytes, place: str) -> bytes:
    if len(line) > _LONGEST:
        raise CredentialError(f"The first line of {place} has over {_LONGEST:,} bytes.")
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _warn_of_readers(path: str, mode: int) -> None:
    if os.name != "posix" or not stat.S_ISREG(mode) or not mode & 0o066:
        return

    text = f"Other users can read the passphrase file {path} (mode {mode & 0o777:03o})."
    warnings.warn(f"{text} Run chmod 600 on it.", SitelineWarning, stacklevel=2)


def _asked() -> bytes:
    from getpass import GetPassWarning, getpass

    with warnings.catch_warnings():
        # Otherwise getpass would continue, and show the passphrase.
        warnings.simplefilter("error", GetPassWarning)
        try:
            first, second = getpass("Passphrase of the new key: "), getpass("The same again: ")
        except (GetPassWarning, EOFError, OSError):
            raise CredentialError(
                "--encrypt needs a terminal, and there is none.",
                hint="Use --passphrase-file or --password-command.",
            ) from None
    if first != second:
        raise CredentialError("The two passphrases differ. No key was made.")
    return first.encode()
