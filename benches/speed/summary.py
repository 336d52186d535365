"""A summary of a candidate's result, and its comparison with another one."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from speed.service import COLUMNS, VALUES

Summary = dict[str, Any]


def summarize(product: Any) -> Summary:
    """Rows; sum, nulls and dtype of each column; a digest of the values by series and time."""
    if isinstance(product, pd.DataFrame):
        kinds = [getattr(kind, "categories", None) for kind in product.dtypes]
        return _of_frame(product) | {
            "dtypes": [
                str(dtype) if categories is None else f"category of {categories.dtype}"
                for dtype, categories in zip(product.dtypes, kinds, strict=True)
            ]
        }
    if isinstance(product, Mapping):
        return dict(product)
    if hasattr(product, "to_pandas"):
        return _of_frame(product.to_pandas())
    return _of_records(product)


def _of_frame(frame: pd.DataFrame) -> Summary:
    summary: Summary = {"rows": len(frame), "columns": list(frame.columns)}
    for name in COLUMNS:
        summary[f"nulls of {name}"] = int(frame[name].isna().sum())
    for name in COLUMNS[:5]:
        summary[f"rows by {name}"] = frame[name].astype("str").value_counts().sort_index().to_dict()
    for name in VALUES:
        summary[f"sum of {name}"] = math.fsum(frame[name].dropna().tolist())
    return summary | {"digest": _digest(frame)}


def _digest(frame: pd.DataFrame) -> str:
    micros = frame["timestamp"].dt.as_unit("us").astype("int64").to_numpy()
    order = np.lexsort((micros, frame["tag_guid"].astype("str").to_numpy(dtype=np.str_)))
    digest = hashlib.sha256(micros[order].tobytes())
    for name in VALUES:
        numbers = frame[name].astype("float64").to_numpy(dtype=np.float64, na_value=np.nan)[order]
        # All NaNs count as the same.
        digest.update(np.where(np.isnan(numbers), np.nan, numbers).tobytes())
    return digest.hexdigest()


def _of_records(records: Any) -> Summary:
    """The summary of a frame, and the type of each member of the first thousand records."""
    rows = list(records)
    first = rows[0]
    members = [list(row.values() if isinstance(row, dict) else row) for row in islice(rows, 1000)]
    types = [
        sorted({type(value).__name__ for value in each}) for each in zip(*members, strict=True)
    ]
    if any(each[5].utcoffset() is None for each in members):
        raise RuntimeError("a datetime is not aware")
    names = list(first) if isinstance(first, dict) else list(COLUMNS)
    return _of_frame(pd.DataFrame.from_records(rows, columns=names)) | {"types": types}


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
