"""pandas columns that share a table's memory without a copy.

The memory of a table is immutable: Arrow consumers, frames and threads share it. pandas copies a
column before it writes to it, if there is another reference. This module keeps one to each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# The result of can_share(), once it is known; and the block that refers to all columns.
_known: list[bool] = []
_blocks: list[Any] = []


def can_share(pandas: Any) -> bool:
    """Whether this pandas copies a shared column before it writes to it. Tried once.

    The reference is internal to pandas. If it has changed, and under pandas 2, frames are copies.
    """
    if not _known:
        try:
            _known.append(_try(pandas))
        except Exception:  # any failure means no
            _known.append(False)
    return _known[0]


def share(frame: pd.DataFrame) -> None:
    """Keep a reference to each column of the frame while the column exists in any frame."""
    for block in frame._mgr.blocks:
        block.refs.add_reference(_blocks[0])


def timestamps(pandas: Any, microseconds: Any, zone: str = "UTC") -> Any:
    """Return microseconds since 1970 as a column of times, without a copy."""
    if zone != "UTC":
        # pandas takes numbers for the clock of the zone.
        return timestamps(pandas, microseconds).tz_convert(zone)
    return pandas.array(microseconds, dtype=pandas.DatetimeTZDtype("us", "UTC"), copy=False)


def _try(pandas: Any) -> bool:
    """Write to three shared columns through pandas, and check that the memory is unchanged."""
    import numpy as np

    if int(pandas.__version__.split(".", 1)[0]) < 3:
        return False
    _blocks.append(pandas.DataFrame({"reference": np.zeros(1)})._mgr.blocks[0])
    values = np.arange(2.0)
    values.flags.writeable = False
    counts = np.arange(2)
    counts.flags.writeable = False
    integers = pandas.arrays.IntegerArray(counts, np.zeros(2, dtype=bool), copy=False)
    times = timestamps(pandas, counts)
    if not np.shares_memory(times.asi8, counts) or times[1] != pandas.Timestamp(1000, tz="UTC"):
        return False
    frame = pandas.DataFrame({"value": values, "count": integers, "time": times}, copy=False)
    if not np.shares_memory(values, frame["value"].to_numpy()):
        return False
    share(frame)
    columns = [frame[name] for name in frame]
    new = [7, 7, times[1]]
    del frame
    for column, value in zip(columns, new, strict=True):
        column.iloc[0] = value
    return [column.iloc[0] for column in columns] == new and values[0] == counts[0] == 0
