"""Files that are written whole or not at all."""

from __future__ import annotations

import csv
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from siteline._core import _Stream

__all__: list[str] = []


@contextmanager
def whole_file(
    path: str | os.PathLike[str],
    *,
    mode: int | None = None,
    keeps: bool = True,
    part: str | None = None,
) -> Iterator[Path]:
    """Yield the path of an empty file that replaces ``path``, synced, unless the block raises.

    With ``keeps``, the file behind a link is replaced, and keeps its mode, its group and, for root,
    its owner. Otherwise the new file has the mode ``mode``, by default the mode that the umask
    leaves. A file that root creates belongs to the owner of its folder.
    """
    from siteline._core import NewFile

    made = NewFile(path, part, mode, keeps)
    written = made.part
    try:
        yield written
        made.finish()
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(written)):
            raise
        # The user named the path and not its part.
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        made.discard()


def write_parquet(target: str | os.PathLike[str], stream: _Stream) -> None:
    """Write a stream as a Parquet file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ModuleNotFoundError as error:
        from siteline.frames import missing

        raise missing(error, "pyarrow", "to_parquet()") from error.__cause__
    with whole_file(target) as part:
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
    with whole_file(target) as part, open(part, "w", encoding="utf-8", newline="") as file:
        _write_rows(file, columns, rows)


def _write_rows(file: TextIO, columns: list[str], rows: Iterable[dict[str, Any]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(one) for one in row.values()] for row in rows)


def _text(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value
