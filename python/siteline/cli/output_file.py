"""What ``-o`` names: a file that is written as a whole or not at all, or stdout."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from siteline import _doors
from siteline.cli.output import is_terminal, require_stdout
from siteline.cli.run_lock import locked

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from siteline import Table

__all__ = ["OutputFile", "Written", "add_output"]

_ENDINGS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_STORE = b"SQLite format 3\0"
_FORMATS = ("csv", "jsonl", "arrow", "parquet")


class Written(NamedTuple):
    """What was written."""

    points: int
    """Rows."""
    bytes: int | None
    """The size of the file; ``None`` for stdout."""


def add_output(made: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Add ``-o`` and ``--format``."""
    made.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=default is None,
        default=default,
        help="write this file, or replace it; - is stdout" + (" (default)" if default else ""),
    )
    made.add_argument(
        "--format",
        choices=_FORMATS,
        help="default: by the ending of FILE, csv on stdout",
    )


class OutputFile:
    """Where the points go, and in which format."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Check what can be checked before anything is read."""
        from siteline.errors import ConfigError

        self.is_stdout: bool = options.output == "-"
        self.name: str = "stdout" if self.is_stdout else options.output
        """What the user calls it."""
        self.format: str = options.format or _format_of(options.output)
        self._parquet = None
        if self.format == "parquet":
            from siteline.cli.parquet import parquet_writer

            self._parquet = parquet_writer()
        if self.is_stdout:
            if options.json:
                raise ConfigError("With -o - stdout has the data, so --json has no place there.")
            require_stdout()
            if self.format in ("arrow", "parquet") and is_terminal(sys.stdout):
                raise ConfigError(f"-o - is a terminal, and {self.format} is not text.")
            self._path = ""
        else:
            # Of a link the file that it points to is replaced.
            self._path = os.path.realpath(options.output)
            _check_place(self._path, self.name)

    def beside(self, ending: str) -> str:
        """Return the path of a hidden file beside the output."""
        folder, name = os.path.split(self._path)
        return os.path.join(folder, f".{name}.siteline-{ending}")

    def meets(self, spool: str) -> bool:
        """Whether a spool, or a file beside it, is the output, or a file beside that."""
        spool, output = os.path.realpath(spool), os.path.normcase(self._path)
        mine = {output, *(os.path.normcase(self.beside(ending)) for ending in ("run", "new"))}
        beside = (f"{spool}{ending}" for ending in ("", "-wal", "-shm", "-lock", "-run"))
        return not mine.isdisjoint(map(os.path.normcase, beside))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only run that writes to the file."""
        if self.is_stdout:
            yield
            return
        with locked(self.beside("run"), self.name):
            yield

    def write(self, points: Table, columns: Sequence[str]) -> Written:
        """Write all points."""
        if self._parquet is not None and self.is_stdout:
            import shutil
            from tempfile import TemporaryDirectory

            # The end of a Parquet file says where its parts are: it is made as a file.
            with TemporaryDirectory(prefix="siteline-") as folder:
                path = os.path.join(folder, "out.parquet")
                count = self._parquet(points, columns, path)
                with open(path, "rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
            return Written(count, None)
        with self.opened() as stream:
            if self._parquet is not None:
                count = self._parquet(points, columns, stream.name)
            else:
                from siteline.cli.writers import write_stream

                count = write_stream(points, columns, self.format, stream)
        return Written(count, self.size())

    def size(self) -> int | None:
        """Return the bytes of the file; ``None`` for stdout."""
        return None if self.is_stdout else os.path.getsize(self._path)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Give what to write to. The file is there at the end, as a whole; after an error not."""
        if self.is_stdout:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        path = self.beside("new")
        with suppress(FileNotFoundError):  # of a run that was killed
            os.unlink(path)
        with _doors.whole_file(self._path, part=path) as part, open(part, "wb") as file:
            yield file


def _format_of(output: str) -> str:
    from siteline.errors import ConfigError

    if output == "-":
        return "csv"
    ending = os.path.splitext(output)[1].lower()
    if ending not in _ENDINGS:
        raise ConfigError(
            f"{output}: its ending says no format.",
            hint=f"Known are {', '.join(_ENDINGS)}. --format names one for any other file.",
        )
    return _ENDINGS[ending]


def _check_place(path: str, name: str) -> None:
    """Raise what would else come after everything was read, and been paid for."""
    import errno

    with suppress(FileNotFoundError):
        # By its own name: the path that a link such as /dev/stdout gives may be none.
        mode = os.stat(name or path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder", name)
        if not stat.S_ISREG(mode):
            # A device or a pipe would be replaced by a file.
            raise OSError(errno.EINVAL, "is not a regular file; -o - writes to stdout", name)
        with suppress(PermissionError), open(path, "rb") as file:
            if file.read(len(_STORE)) == _STORE:
                raise FileExistsError(errno.EEXIST, "is a store, which -o does not replace", name)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
