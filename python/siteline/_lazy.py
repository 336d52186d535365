"""``Table.lazy()``: a polars LazyFrame over a store's points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline._records.series import Record
from siteline.frames import import_polars

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from siteline._core import Frame, _Shown

_IDS = Record._fields[:5]
ROWS = 1 << 16
"""Points of a batch: a few megabytes."""


def scan(frame: Frame, tz: str, labels: dict[Any, str] | None) -> pl.LazyFrame:
    """Return a lazy frame of a store's points."""
    polars = import_polars("lazy()")
    from polars.io.plugins import register_io_source

    kinds = {
        **dict.fromkeys(_IDS, polars.String),
        "label": polars.Categorical(),
        "timestamp": polars.Datetime("us", tz),
        **dict.fromkeys(("value", "minimum", "maximum"), polars.Float64),
        "sample_count": polars.Int64,
        "withdrawn": polars.Boolean,
    }
    source = Source(frame, (tz, labels, None))
    return register_io_source(source, schema={name: kinds[name] for name in source.names})


class Source:
    """The function that polars calls for the points."""

    def __init__(self, frame: Frame, shown: _Shown) -> None:
        self.frame = frame
        self.shown = shown
        self.names = frame.names(shown)

    def __call__(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Read the first ``n_rows`` points of a snapshot that match ``predicate``."""
        import polars as pl

        from siteline._predicate import Asked

        asked = Asked(predicate)
        names = self.names if columns is None else columns
        used = {*names, *(predicate.meta.root_names() if predicate is not None else ())}
        wanted = [name for name in self.names if name in used]
        places = [self.names.index(name) for name in wanted]
        left = n_rows
        if asked.bounds.is_empty() or left == 0:
            return
        source = self.frame
        if asked.bounds != (None, None):
            source = source.within(*asked.bounds)
        batches = source.batches(self.shown)
        if asked.of_ids:
            batches.keep(
                asked.places(
                    pl.DataFrame(batches.series(), dict.fromkeys(_IDS, pl.String), orient="row")
                )
            )
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
    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.capsule
