"""``Table.lazy()``: a polars LazyFrame over a store's points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._records.series import Record
from siteline.frames import import_polars

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from siteline._core import Frame

__all__: list[str] = []

_IDS = Record._fields[:5]
ROWS = 1 << 16
"""Points of a batch: a few megabytes."""


def scan(frame: Frame, tz: str) -> pl.LazyFrame:
    """Make the lazy frame of points of a store; nothing is read."""
    polars = import_polars("lazy()")
    from polars.io.plugins import register_io_source

    kinds = (polars.String,) * 5 + (polars.Datetime("us", tz),) + (polars.Float64,) * 3
    schema = dict(zip(Record._fields, (*kinds, polars.Int64), strict=True))
    return register_io_source(Source(frame, tz), schema=schema)


class Source:
    """What polars calls for the points, once for each place of a plan that has the frame."""

    def __init__(self, frame: Frame, tz: str) -> None:
        """Keep what is to be read."""
        self.frame = frame
        self.tz = tz

    def __call__(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Read a snapshot, as far as the consumer asks for more of it.

        Of the points that ``predicate`` lets through, the first ``n_rows``.
        """
        import polars as pl

        from siteline._predicate import Asked

        asked = Asked(predicate)
        names = [*Record._fields] if columns is None else columns
        used = {*names, *(predicate.meta.root_names() if predicate is not None else ())}
        wanted = [name for name in Record._fields if name in used]
        places = [Record._fields.index(name) for name in wanted]
        left = n_rows
        if asked.bounds.is_empty() or left == 0:
            return
        source = self.frame
        if asked.bounds != (None, None):
            source = source.within(*asked.bounds)
        batches = source.batches()
        if asked.of_ids:
            batches.keep(asked.places(pl.DataFrame(_Stream(batches.series()))))
        while left is None or left > 0:
            rows = min(batch_size or ROWS, ROWS, left or ROWS)
            batch = batches.next(rows, places)
            if batch is None:
                return
            frame = pl.DataFrame(_Stream(batch))
            frame = frame.with_columns(
                pl.col(name).cast(pl.String) for name in wanted if name in _IDS
            )
            if "timestamp" in wanted:
                frame = frame.with_columns(pl.col("timestamp").dt.convert_time_zone(self.tz))
            frame = asked.filter(frame).select(names).head(frame.height if left is None else left)
            if left is not None:
                left -= frame.height
            yield frame


class _Stream:
    """An Arrow stream that a consumer asks an object for."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.capsule
