"""Files that a table writes: whole or not at all."""

from __future__ import annotations

import csv
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TextIO

from siteline.frames import missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from siteline._core import _Stream

__all__: list[str] = []


@contextmanager
def whole(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a part to write; it replaces the target if nothing is raised."""
    path = Path(target)
    part = path.with_name(f".{path.name}.{os.getpid()}-{token_hex(4)}")
    try:
        yield part
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        if error.filename is None or os.fspath(error.filename) != os.fspath(part):
            raise
        # The user named the target and not its part.
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def write_parquet(target: str | os.PathLike[str], stream: _Stream) -> None:
    """Write a stream as a Parquet file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ModuleNotFoundError as error:
        raise missing(error, "pyarrow", "to_parquet()") from error.__cause__
    with whole(target) as part:
        try:
            reader = pa.RecordBatchReader.from_stream(stream)
            with parquet.ParquetWriter(part, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
        except Exception:
            stream.check()
            raise


def write_csv(
    target: str | os.PathLike[str] | TextIO, columns: list[str], rows: Iterable[dict[str, Any]]
) -> None:
    """Write rows as CSV."""
    if not isinstance(target, (str, os.PathLike)):
        _write_rows(target, columns, rows)
        return
    with whole(target) as part, open(part, "x", encoding="utf-8", newline="") as file:
        _write_rows(file, columns, rows)


def _write_rows(file: TextIO, columns: list[str], rows: Iterable[dict[str, Any]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(one) for one in row.values()] for row in rows)


def _text(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value
