"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from siteline._core import _Stream


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
    its owner. Otherwise the new file has ``mode``, by default as the umask leaves it. A file that
    root creates belongs to the owner of its folder.
    """
    from siteline._core import NewFile

    made = NewFile(path, part, mode, keeps)
    written = made.part()
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
    from siteline.frames import needing

    with needing("pyarrow", "to_parquet()"):
        import pyarrow as pa
        import pyarrow.parquet as parquet
    with whole_file(target) as part:
        try:
            reader = pa.RecordBatchReader.from_stream(stream)
            with parquet.ParquetWriter(part, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
        except Exception:
            stream.check()
            raise


def write_csv(target: Any, columns: list[str], rows: Iterable[dict[str, Any]]) -> None:
    if not isinstance(target, (str, os.PathLike)):
        _write_rows(target, columns, rows)
        return
    with whole_file(target) as part, open(part, "w", encoding="utf-8", newline="") as file:
        _write_rows(file, columns, rows)


_MOST_ROWS, _MOST_COLUMNS = 1 << 20, 1 << 14


def write_excel(
    target: str | os.PathLike[str], columns: list[str], count: int, rows: Iterable[dict[str, Any]]
) -> None:
    from siteline.errors import QueryError
    from siteline.frames import needing

    if count >= _MOST_ROWS or len(columns) > _MOST_COLUMNS:
        raise QueryError(
            f"{count:,} rows of {len(columns):,} columns do not fit: an Excel sheet has "
            f"{_MOST_ROWS:,} rows with the header, and {_MOST_COLUMNS:,} columns.",
            hint="Use to_csv() or to_parquet(), a shorter range, or resample().",
        )
    with needing("openpyxl", "to_excel()", "excel"):
        import openpyxl
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("siteline")

    def cell(value: Any) -> Any:
        if isinstance(value, str):
            made = WriteOnlyCell(
                sheet, ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", value)
            )
            # An id that begins with "=" is no formula.
            made.data_type = "s"
            return made
        return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value

    with whole_file(target) as part:
        sheet.append([cell(name) for name in columns])
        for row in rows:
            sheet.append([cell(value) for value in row.values()])
        book.save(part)


def _write_rows(file: TextIO, columns: list[str], rows: Iterable[dict[str, Any]]) -> None:
    import csv

    writer = csv.writer(file, lineterminator="\n")
    try:
        file.write("")
    except TypeError:
        raise TypeError("target= is a file of bytes: open it for text, or give its path.") from None
    writer.writerow(columns)
    writer.writerows([_text(one) for one in row.values()] for row in rows)


def _text(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value
