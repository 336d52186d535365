"""The output of a command: a file that is written whole or not at all, or stdout."""

from __future__ import annotations

import argparse
import csv
import errno
import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from json import dumps
from typing import TYPE_CHECKING, Any, BinaryIO

from siteline import _doors
from siteline._escape import escaped_json
from siteline.cli.arguments import Options, add_options
from siteline.cli.output import is_terminal, require_stdout
from siteline.errors import ConfigError

if TYPE_CHECKING:
    from siteline import Table

_ENDINGS = {
    **{".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".arrow": "arrow", ".arrows": "arrow"},
    **{".parquet": "parquet", ".pq": "parquet", ".xlsx": "xlsx"},
}
_STORE = b"SQLite format 3\0"
_FORMATS = ("csv", "jsonl", "arrow", "parquet", "xlsx")
_LINES = ("csv", "jsonl")
_PACKAGES = {"parquet": ("pyarrow", "pyarrow"), "xlsx": ("openpyxl", "excel")}
"""The package that a format needs, and the extra that installs it."""


def add_output(made: argparse._ActionsContainer, *, without: str = "CSV on stdout") -> None:
    """Adds ``-o`` and ``--format``."""
    add_options(made, {"-o --output FILE": f"write this file; without it {without}"})
    help = "csv, jsonl, arrow, parquet, xlsx; default: by FILE"
    add_options(made, {"--format FORMAT": help}, choices=_FORMATS)


class OutputFile:
    """The destination of a table, and its format."""

    def __init__(self, options: Options) -> None:
        """Checks the output before any request."""
        self.is_stdout: bool = options.output in (None, "-")
        self.name: str = "stdout" if self.is_stdout else options.output
        self.format: str = options.format or _format_of(options.output)
        _check_package(self.format)
        if self.is_stdout:
            if options.json:
                raise ConfigError("stdout has the data, so --json needs -o FILE.")
            require_stdout()
            if self.format not in _LINES and is_terminal(sys.stdout):
                raise ConfigError(f"stdout is a terminal, and {self.format} is not text.")
            self.path: str = ""
        else:
            # The file behind a link is replaced.
            self.path = os.path.realpath(options.output)
            _check_place(self.path, self.name)

    @property
    def is_lines(self) -> bool:
        """Whether the format can be written row by row."""
        return self.format in _LINES

    def write(self, table: Table) -> None:
        """Writes all rows."""
        if self.format in _PACKAGES:
            write = table.to_parquet if self.format == "parquet" else table.to_excel
            if self.is_stdout:
                self._write_to_stdout(write)
            else:
                write(self.path)
            return
        with self.opened() as stream:
            if self.format == "arrow":
                for piece in _doors.ipc(table):
                    stream.write(piece)
            else:
                self.write_lines(stream, [table])

    def _write_to_stdout(self, write: Callable[[str], None]) -> None:
        # These formats end with a directory of their parts, so they need a file.
        import shutil
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="siteline-") as folder:
            path = os.path.join(folder, f"out.{self.format}")
            write(path)
            with open(path, "rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)

    def write_lines(self, stream: BinaryIO, tables: Iterable[Table]) -> int:
        """Writes the rows as CSV or JSON lines, each table at once; returns their number."""
        count = 0
        for number, table in enumerate(tables):
            text = io.StringIO()
            write = csv.writer(text, lineterminator="\n").writerow
            if self.format == "csv" and not number:
                write(table.columns)
            for row in _doors.rows(table):
                if self.format == "csv":
                    write(map(_plain, row.values()))
                else:
                    line = dumps(row, default=_plain, ensure_ascii=False, separators=(",", ":"))
                    text.write(f"{escaped_json(line)}\n")
                count += 1
                if text.tell() > 1 << 16:
                    _move(text, stream)
            _move(text, stream)
            stream.flush()
        return count

    @property
    def members(self) -> dict[str, Any]:
        """The members of the command's document about its output."""
        return {
            "output": None if self.is_stdout else self.name,
            "format": self.format,
            "bytes": None if self.is_stdout else os.path.getsize(self.path),
        }

    @property
    def size(self) -> str:
        """The size of the file for a person."""
        from siteline._doctor.machine import size

        return size(os.path.getsize(self.path))

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Yields the stream to write to. The file exists only if the block does not raise."""
        if self.is_stdout:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        with _doors.whole_file(self.path) as part, open(part, "wb") as file:
            yield file


def _move(text: io.StringIO, stream: BinaryIO) -> None:
    stream.write(text.getvalue().encode())
    text.seek(0)
    text.truncate()


def _plain(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value


def _check_package(format: str) -> None:
    from importlib.util import find_spec

    package, extra = _PACKAGES.get(format, ("csv", ""))
    if find_spec(package) is None:
        raise ConfigError(
            f"{format} needs {package}, which is not installed.",
            hint=f"pip install 'siteline[{extra}]', or use --format csv, jsonl or arrow.",
        )


def _format_of(output: str | None) -> str:
    if output in (None, "-"):
        return "csv"
    ending = os.path.splitext(output)[1].lower()
    if ending not in _ENDINGS:
        raise ConfigError(
            f"{output}: the ending belongs to no format.",
            hint=f"Use {', '.join(_ENDINGS)}, or --format.",
        )
    return _ENDINGS[ending]


def _check_place(path: str, name: str) -> None:
    # These errors would otherwise follow after a complete read.
    with suppress(FileNotFoundError):
        # The target of a link such as /dev/stdout may be no path.
        mode = os.stat(name or path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder", name)
        if not stat.S_ISREG(mode):
            # A device or a pipe would be replaced by a file.
            raise OSError(errno.EINVAL, "is not a regular file; leave -o out for stdout", name)
        with suppress(PermissionError), open(path, "rb") as file:
            if file.read(len(_STORE)) == _STORE:
                raise FileExistsError(errno.EEXIST, "is a store, which -o does not replace", name)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
