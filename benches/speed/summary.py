"""A summary of a candidate's result, and its comparison with another one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from speed.service import COLUMNS, VALUES

Summary = dict[str, Any]


def summarize(product: Any) -> Summary:
    """Rows; sum and nulls of the values; dtypes or types; a digest of all rows in any order."""
    if isinstance(product, pd.DataFrame):
        none = pd.Index([])
        kinds = [f"{kind} {getattr(kind, 'categories', none).dtype}" for kind in product.dtypes]
        return _of_frame(product) | {"dtypes": kinds}
    if isinstance(product, Mapping):
        return dict(product)
    if hasattr(product, "to_pandas"):
        return _of_frame(product.to_pandas())
    rows = list(product)
    frame = pd.DataFrame.from_records(rows, columns=None if isinstance(rows[0], dict) else COLUMNS)
    members = chain(*(row.values() if isinstance(row, dict) else row for row in rows[:1000]))
    types = sorted({type(member).__name__ for member in members})
    return _of_frame(frame) | {"types": types, "time zone": str(frame["timestamp"].dt.tz)}


def _of_frame(frame: pd.DataFrame) -> Summary:
    plain = frame[list(COLUMNS[:5])].astype("str")
    plain["timestamp"] = frame["timestamp"].dt.as_unit("us").astype("int64")
    for name in VALUES:
        numbers = frame[name].astype("float64").to_numpy(dtype=np.float64, na_value=np.nan)
        # All NaNs count as the same.
        plain[name] = np.where(np.isnan(numbers), np.nan, numbers)
    return {
        "rows": len(frame),
        "columns": list(frame.columns),
        "nulls of value": int(plain["value"].isna().sum()),
        "sum of value": math.fsum(plain["value"].dropna()),
        "digest": str(pd.util.hash_pandas_object(plain, index=False).sum()),
    }


def difference(one: Summary, other: Summary) -> str | None:
    """The first difference in the figures that both have.

    Sums may differ by rounding; a digest, if both have one, is of the exact values.
    """
    for name in one.keys() & other.keys():
        left, right = one[name], other[name]
        close = isinstance(left, float) and math.isclose(left, right, rel_tol=1e-9)
        if left != right and not close:
            return f"{name}: {left!r} and {right!r}"
    return None if one.keys() & other.keys() else "nothing in common to compare"
