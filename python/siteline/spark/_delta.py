"""Points in a Delta table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from siteline._keywords import strict
from siteline.frames import needing
from siteline.targets import Delta
from siteline.targets._lake import SAME
from siteline.targets._shared import IDS, VALUES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from siteline import Feed
    from siteline.types import SyncReport

_TYPES: dict[str, Any] = dict.fromkeys(IDS, "string") | {"timestamp": "timestamp"}
_TYPES |= dict.fromkeys(VALUES[:3], "double") | {"sample_count": "long", "day": "date"}
_DIFFERS = " or ".join(f"(t.{name} is distinct from s.{name})" for name in VALUES)


@strict
def sync(
    spark: SparkSession,
    feeds: Feed | Iterable[Feed],
    path: str | os.PathLike[str],
    *,
    profile: str | None = None,
    options: dict[str, str] | None = None,
    **settings: Any,
) -> SyncReport:
    """Bring a Delta table up to date, with the token and the allowance of the session.

    This is :meth:`Client.sync` into :class:`siteline.targets.Delta`, in the driver. Reads of the
    table (``spark.read.format("delta").load(path)``) cost no request, but every action on
    ``format("siteline")`` reads again.

    Args:
        spark: A registered session.
        feeds: A feed, or several.
        path: The folder or URL of the table.
        profile: The profile, if several are registered.
        options: ``storage_options`` of deltalake.
        settings: Other parameters of :meth:`Client.sync`.
    """
    from siteline.spark._driver import registered

    target = Delta(path, options=options)
    with registered(spark).access(profile).client() as client:
        return client.sync(feeds, target, **settings)


@strict
def upsert(path: str | os.PathLike[str], options: dict[str, str] | None = None) -> DeltaUpsert:
    """Return a writer of a stream's batches: ``stream.writeStream.foreachBatch(upsert(path))``.

    New points are inserted and revised points are updated, in one commit. A batch that is written
    again after a crash changes nothing. The table has the ten columns and ``day``, its partition.
    A point that the service has withdrawn stays; :func:`sync` marks it.

    deltalake writes it in the process of the driver, which collects the points of each batch:
    ``maxPages`` limits them.

    Args:
        path: The folder or URL of the table.
        options: ``storage_options`` of deltalake.
    """
    with needing("deltalake", "siteline.spark.upsert", "delta"):
        import deltalake  # noqa: F401
    path = os.fspath(path)
    return DeltaUpsert(path if "://" in path else os.path.abspath(path), options)


class DeltaUpsert:
    def __init__(self, path: str, options: dict[str, str] | None) -> None:
        self._path, self._options = path, options

    def __call__(self, batch: DataFrame, number: int) -> None:
        import pyarrow as pa

        points = batch.toArrow()
        if not points.num_rows:
            return
        days = points["timestamp"].cast(pa.timestamp("us", "UTC")).cast(pa.date32())
        self.write(points.append_column("day", days))

    def write(self, points: Any) -> None:
        """Write unique points with their days."""
        import deltalake

        fields = [deltalake.Field(*of) for of in _TYPES.items()]
        table = deltalake.DeltaTable.create(
            self._path, deltalake.Schema(fields), "ignore", ["day"], storage_options=self._options
        )
        days = sorted({str(day) for day in points["day"].unique().to_pylist()})
        # With literals Delta skips the files of other days.
        where = f"t.day in ({str(days)[1:-1]}) and {SAME}"
        merge = table.merge(points, where, "s", "t", streamed_exec=False)
        changed = {name: f"s.{name}" for name in VALUES}
        merge.when_matched_update(changed, _DIFFERS).when_not_matched_insert_all().execute()
