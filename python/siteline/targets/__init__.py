"""Where :meth:`siteline.Client.sync` can write beside a :class:`siteline.Store`.

:class:`DuckDB`, :class:`Postgres` and :class:`Delta` keep the points of feeds in a database or a
lake that you have: the same points, values and flags as a ``Store``, and the state of each feed in
the transaction of its points. For others see :class:`siteline.targets.StoreTarget`.
"""

from siteline.targets._delta import Delta
from siteline.targets._duckdb import DuckDB
from siteline.targets._postgres import Postgres
from siteline.targets._protocols import AsyncStoreTarget, StoreTarget

__all__ = ["AsyncStoreTarget", "Delta", "DuckDB", "Postgres", "StoreTarget"]
