"""``Store.scan``: a polars LazyFrame over a store's points."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from siteline._records.series import Record
from siteline.frames import import_polars

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from siteline._core import Points, Store

__all__: list[str] = []

_IDS = Record._fields[:5]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROWS = 1 << 16
"""Points of a batch: a few megabytes."""


def scan(
    store: Store,
    feed: str,
    settled_only: bool,
    flagged: Literal["keep", "drop", "only"],
    unread: Literal["error", "warn", "keep"],
) -> pl.LazyFrame:
    """Make the frame of :meth:`Store.scan`; nothing is read."""
    polars = import_polars("store.scan()")
    from polars.io.plugins import register_io_source

    source = Source(store, feed, settled_only=settled_only, flagged=flagged, unread=unread)
    source.points(None, None)  # refuses wrong options now, not at the end of a query
    kinds = (polars.String,) * 5 + (polars.Datetime("us", "UTC"),) + (polars.Float64,) * 3
    schema = dict(zip(Record._fields, (*kinds, polars.Int64), strict=True))
    return register_io_source(source, schema=schema)


class Source:
    """What polars calls for the points, once for each place of a plan that has the frame."""

    def __init__(self, store: Store, feed: str, **options: Any) -> None:
        """Keep what is to be read: ``options`` are those of ``Store.points``."""
        self.store = store
        self.feed = feed
        self.options = options

    def points(self, start: int | None, end: int | None) -> Points:
        """Give the points of a range in microseconds: a recipe."""
        return self.store.points(self.feed, _instant(start), _instant(end), **self.options)

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
        batches = self.points(*asked.bounds)._batches()
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


def _instant(microseconds: int | None) -> datetime | None:
    """Give the instant; ``None`` for one that no point can have, by which nothing is narrowed."""
    if microseconds is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
