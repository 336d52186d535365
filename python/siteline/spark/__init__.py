"""Points as DataFrames of Spark 4.1 and later, and of Sail.

>>> import siteline.spark                                         # doctest: +SKIP
>>> siteline.spark.register(spark, "plant-a")                     # doctest: +SKIP
>>> frame = (spark.read.format("siteline")                        # doctest: +SKIP
...          .options(site="S1", start="2026-11-01", end="2026-11-15", interval="1m",
...                   page_size=10_000, by="1d").load())

:func:`register` lets a session read, with one token and one allowance for all its tasks.
:func:`plan` returns the cost of a read before it starts. :func:`sync` fills a Delta table:
queries of it cost no requests. :func:`upsert` writes a stream into a Delta table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline.spark._delta import sync, upsert
from siteline.spark._driver import plan, register

if TYPE_CHECKING:
    from siteline.spark._source import SitelineDataSource

__all__ = ["SitelineDataSource", "plan", "register", "sync", "upsert"]


def __getattr__(name: str) -> Any:
    # Importing this module must not import pyspark.
    if name == "SitelineDataSource":
        from siteline.spark._source import SitelineDataSource

        return SitelineDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
