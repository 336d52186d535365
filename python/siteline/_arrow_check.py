"""Checks pyarrow data before its export: array offsets must not exceed their buffers.

The Arrow C interface does not transmit the sizes of buffers.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def checked(given: Any) -> Any:
    """Check an object of pyarrow or pandas, and return the object to read.

    Raises ValueError, of which ``pyarrow.ArrowInvalid`` is a subclass.
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
    """Check a pandas column if pyarrow stores its values."""
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
    """Raise ``UnicodeDecodeError`` if a name is not valid UTF-8."""
    list(schema.names)
