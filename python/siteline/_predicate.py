"""The time range and the series that a polars predicate selects in a store.

The representation of operators changes between versions of polars. So this module combines the
operands of an expression with each known operator, and compares the result with the expression. A
part with only ids is evaluated for the stored series. The whole predicate filters the points.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Literal, NamedTuple

import polars as pl

from siteline._records.series import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

IDS = Record._fields[:5]
_TIME = pl.col("timestamp")
# DuckDB casts the column to another unit. Milliseconds round, so they are not recognised.
_TIMES = (_TIME, *(_TIME.dt.cast_time_unit(unit) for unit in ("us", "ns")))
_FLIPPED = {"ge": "le", "gt": "lt", "le": "ge", "lt": "gt", "eq": "eq"}
_CLOSED: dict[Literal["both", "left", "right", "none"], tuple[str, str]] = {
    "both": ("ge", "le"),
    "left": ("ge", "lt"),
    "right": ("gt", "le"),
    "none": ("gt", "lt"),
}
_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000}
_DAY = 86_400 * 10**9


class Bounds(NamedTuple):
    """A half-open range in microseconds; ``None`` if a bound is missing."""

    start: int | None = None
    end: int | None = None

    def within(self, other: Bounds) -> Bounds:
        starts = [bound for bound in (self.start, other.start) if bound is not None]
        ends = [bound for bound in (self.end, other.end) if bound is not None]
        return Bounds(max(starts, default=None), min(ends, default=None))

    def is_empty(self) -> bool:
        return self.start is not None and self.end is not None and self.start >= self.end


class Asked:
    """The recognised parts of a predicate."""

    def __init__(self, predicate: pl.Expr | None) -> None:
        """Split a predicate into parts that are all true for a selected point."""
        parts = () if predicate is None else tuple(_parts(predicate))
        self.bounds = Bounds()
        self.of_ids = [part for part in parts if _is_of_ids(part)]
        self._others = []
        for part in parts:
            found = list(_bounds(part))
            for bounds, _ in found:
                self.bounds = self.bounds.within(bounds)
            if not found or not all(is_exact for _, is_exact in found):
                self._others.append(part)

    def filter(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Apply the whole predicate, exact ranges as numbers.

        DuckDB 1.5 passes times in the zone of its session, which polars does not compare with UTC.
        """
        time, (start, end) = _TIME.to_physical(), self.bounds
        limits = [] if start is None else [time >= start]
        limits += [] if end is None else [time < end]
        return frame.filter(*limits, *self._others) if limits or self._others else frame

    def places(self, series: pl.DataFrame) -> list[int]:
        """Return the rows of a frame of ids that the predicate may select."""
        left = series.with_row_index("place")
        for part in self.of_ids:
            try:
                left = left.filter(part)
            except Exception:
                # The series may have no points in the range, so the points decide.
                continue
        return left["place"].to_list()


def _is_of_ids(part: pl.Expr) -> bool:
    names = part.meta.root_names()
    return bool(names) and {*names}.issubset(IDS)


def _parts(predicate: pl.Expr) -> Iterator[pl.Expr]:
    """Yield the operands of nested conjunctions, or the expression itself."""
    left = [predicate]
    while left:
        part = left.pop()
        operands = part.meta.pop()[::-1]
        if len(operands) == 2 and _is(operands[0] & operands[1], part):
            left.extend(operands)
        else:
            yield part


def _is(one: pl.Expr, other: pl.Expr) -> bool:
    return one.meta.eq(other)


def _bounds(part: pl.Expr) -> Iterator[tuple[Bounds, bool]]:
    """Yield the bounds of a comparison with the timestamp, and whether they are exact."""
    operands = part.meta.pop()[::-1]
    if not any(_is(time, operand) for time in _TIMES for operand in operands):
        return
    if len(operands) == 2:
        yield from _compared(part, *operands)
    elif len(operands) == 3:
        column, low, high = operands
        for closed, names in _CLOSED.items():
            if _is(column.is_between(low, high, closed=closed), part):
                yield from (_bound(names[0], low), _bound(names[1], high))


def _compared(part: pl.Expr, left: pl.Expr, right: pl.Expr) -> Iterator[tuple[Bounds, bool]]:
    is_left = any(_is(time, left) for time in _TIMES)
    for name, flipped in _FLIPPED.items():
        if _is(getattr(operator, name)(left, right), part):
            yield _bound(name, right) if is_left else _bound(flipped, left)


def _bound(name: str, expression: pl.Expr) -> tuple[Bounds, bool]:
    """Return the range of a comparison, widened to microseconds."""
    instant = _nanoseconds(expression)
    if instant is None:
        return Bounds(), False
    floor, ceiling = instant // 1_000, -(-instant // 1_000)
    bounds = {
        "ge": Bounds(floor, None),
        "gt": Bounds(floor + 1, None),
        "lt": Bounds(None, ceiling),
        "le": Bounds(None, floor + 1),
        "eq": Bounds(floor, floor + 1),
    }
    return bounds[name], floor == ceiling


def _nanoseconds(expression: pl.Expr) -> int | None:
    """Evaluate a time; ``None`` for other values, such as a datetime without a zone."""
    if expression.meta.root_names():
        return None
    try:
        values = pl.select(expression).to_series()
    except pl.exceptions.PolarsError:
        return None
    kind, physical = values.dtype, values.to_physical()
    if len(values) != 1 or physical[0] is None:
        return None
    if isinstance(kind, pl.Date):
        return int(physical[0]) * _DAY
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        return int(physical[0]) * _NANOSECONDS[kind.time_unit]
    return None
