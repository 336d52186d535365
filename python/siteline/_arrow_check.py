"""Lets pyarrow compare the offsets of its arrays with their buffers.

The Arrow C interface has no sizes of buffers, so siteline cannot do it after the export.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__: list[str] = []


def checked(given: Any) -> Any:
    """Return the object whose Arrow stream is to be read.

    Raises:
        ValueError: A buffer of a pyarrow object is broken. ``pyarrow.ArrowInvalid`` is one.
    """
    pa = sys.modules.get("pyarrow")
    if pa is None:
        return given
    if isinstance(given, pa.RecordBatchReader):
        _check_names(given.schema)
        return pa.RecordBatchReader.from_batches(given.schema, _batches(given))
    if isinstance(given, pa.Table | pa.RecordBatch):
        _check_names(given.schema)
        given.validate(full=True)
    elif isinstance(given, pa.ChunkedArray):
        given.validate(full=True)
    else:
        pd = sys.modules.get("pandas")
        if pd is not None and isinstance(given, pd.DataFrame):
            for number in range(given.shape[1]):
                check_column(given.iloc[:, number])
    return given


def check_column(column: Any) -> None:
    """Check a pandas column if pyarrow has its values.

    Raises:
        ValueError: As :func:`checked`.
    """
    pa, values = sys.modules.get("pyarrow"), column.array
    if pa is None or not hasattr(values, "__arrow_array__"):
        return
    dtype = column.dtype
    if getattr(dtype, "storage", None) == "pyarrow" or hasattr(dtype, "pyarrow_dtype"):
        array = values.__arrow_array__()
        if isinstance(array, pa.Array | pa.ChunkedArray):
            array.validate(full=True)


def _batches(reader: Any) -> Iterator[Any]:
    for batch in reader:
        batch.validate(full=True)
        yield batch


def _check_names(schema: Any) -> None:
    """Names that are not UTF-8 raise ``UnicodeDecodeError``."""
    list(schema.names)
