"""Memory that a pandas frame looks at where it lies, and never writes to.

A table's columns do not change: Arrow consumers, other frames and readers in other threads look at
the same memory, and NumPy knows that it is read-only. pandas copies a column before it writes to it
where somebody else refers to it (copy-on-write), and somebody always does: a block of this module.
Writing past pandas (``column.array[0] = 1``) raises ``ValueError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_known: list[bool] = []
_readers: list[Any] = []


def can_lend(pandas: Any) -> bool:
    """Whether pandas copies what was lent before it writes: tried out once, not believed.

    pandas has no public name for a reference. Where it changes what we use, frames get memory of
    their own, as they do under pandas 2.
    """
    if not _known:
        try:
            _known.append(_tried(pandas))
        except Exception:  # whatever it is, it is not lending
            _known.append(False)
    return _known[0]


def lend(frame: pd.DataFrame) -> None:
    """Refer to each column of the frame for as long as it is there, in whatever frame it is."""
    for block in frame._mgr.blocks:
        block.refs.add_reference(_readers[0])


def timestamps(pandas: Any, microseconds: Any) -> Any:
    """Microseconds since the Unix epoch as a column of times in UTC, without a copy."""
    return pandas.array(microseconds, dtype=pandas.DatetimeTZDtype("us", "UTC"), copy=False)


def _tried(pandas: Any) -> bool:
    import numpy as np

    if int(pandas.__version__.split(".", 1)[0]) < 3:
        return False
    _readers.append(pandas.DataFrame({"reader": np.zeros(1)})._mgr.blocks[0])
    values = np.arange(2.0)
    values.flags.writeable = False
    counts = np.arange(2)
    counts.flags.writeable = False
    whole = pandas.arrays.IntegerArray(counts, np.zeros(2, dtype=bool), copy=False)
    times = timestamps(pandas, counts)
    if not np.shares_memory(times.asi8, counts) or times[1] != pandas.Timestamp(1000, tz="UTC"):
        return False
    frame = pandas.DataFrame({"value": values, "count": whole, "time": times}, copy=False)
    if not np.shares_memory(values, frame["value"].to_numpy()):
        return False
    lend(frame)
    columns = [frame[name] for name in frame]
    new = [7, 7, times[1]]
    del frame
    for column, value in zip(columns, new, strict=True):
        column.iloc[0] = value
    return [column.iloc[0] for column in columns] == new and values[0] == counts[0] == 0
