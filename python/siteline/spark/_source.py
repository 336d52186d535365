"""The data source, which the engine creates in its worker processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from siteline.errors import ConfigError, QueryError
from siteline.spark import _batches
from siteline.spark._options import Options
from siteline.spark._partitions import shared
from siteline.spark._reading import Reading, Registered

if TYPE_CHECKING:
    import pyarrow as pa

    from siteline.spark._partitions import Part
    from siteline.spark._stream import PointStream


class Partition(InputPartition):
    """A part, as Spark sends it to a task."""

    value: Part


class PointReader(DataSourceReader):
    """Reads the points of one query in partitions.

    It has no ``pushFilters``: Spark refuses a reader that has it unless a setting allows it.
    """

    def __init__(self, reading: Reading, schema: Any) -> None:
        self._reading = reading
        self._zone = _batches.has_zone(schema)

    def partitions(self) -> list[Partition]:
        """Return the partitions, or raise if the allowance is too small."""
        reading = self._reading
        with reading.access.client() as client:
            plan, found, _ = reading.planned(client)
        return [Partition(part) for part in shared(plan, found, reading.options.max_pages)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        is_bounded = self._reading.options.max_pages is not None
        yield from self._reading.read(partition.value, self._zone, is_bounded=is_bounded)


class SitelineDataSource(DataSource):
    """``spark.read.format("siteline")``: registered by :func:`siteline.spark.register`.

    Spark and Sail create it in a worker process, never in the driver. The pickle of the registered
    subclass contains the driver's settings. Options would show them in plans.
    """

    registered: ClassVar[Registered] = Registered()
    """The driver's settings. Only :func:`siteline.spark.register` sets them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options, and fix the range: a read without ``end`` ends now.

        A stream may start in the future, so only the reader rejects a range without a bucket.
        """
        given = Options.parse(dict(options))
        access = self.registered.access(given.profile)
        density = self.registered.densities.get(given.key)
        self._given = Reading(given, access, density)
        self._fixed: Reading | QueryError
        try:
            self._fixed = self._given.fixed()
        except QueryError as error:
            self._fixed = error.with_traceback(None)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "siteline"

    def schema(self) -> str:
        """Return the ten columns."""
        return _batches.DDL

    def reader(self, schema: Any) -> PointReader:
        """Return the reader of a batch query."""
        self._given.options.refuse_times()
        if isinstance(self._fixed, QueryError):
            raise self._fixed
        return PointReader(self._fixed, schema)

    def streamReader(self, schema: Any) -> PointStream:
        """Return the reader of a stream."""
        try:
            from siteline.spark._stream import PointStream
        except ImportError as error:
            raise ConfigError("Streams of siteline need PySpark 4.2 or newer.") from error
        return PointStream(self._given, schema)
