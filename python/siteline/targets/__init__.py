"""The targets of :meth:`siteline.Client.sync`, in addition to :class:`siteline.Store`.

:class:`DuckDB`, :class:`Postgres` and :class:`Delta` store the same points, values and flags as a
``Store``, and the state of a feed in the transaction of its points. For other databases write a
:class:`siteline.targets.StoreTarget`.
"""

from siteline.targets._delta import Delta
from siteline.targets._duckdb import DuckDB
from siteline.targets._postgres import Postgres
from siteline.targets._protocols import AsyncStoreTarget, StoreTarget

__all__ = ["AsyncStoreTarget", "Delta", "DuckDB", "Postgres", "StoreTarget"]
