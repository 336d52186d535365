"""The partition that the engine sends to a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

if TYPE_CHECKING:
    from siteline.spark._partitions import Part


class Partition(InputPartition):
    """A part, as Spark sends it to a task."""

    value: Part

    def __init__(self, part: Part) -> None:
        """Wrap the part."""
        super().__init__(part)
