"""The targets that are synced into, and their places."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import siteline

if TYPE_CHECKING:
    from pathlib import Path

DRIVERS = {"duckdb": "duckdb", "postgres": "adbc_driver_postgresql.dbapi", "delta": "deltalake"}


@dataclass(frozen=True)
class Place:
    """A class of targets, and the arguments that open one."""

    target: str
    """The name of a class of `siteline.targets`."""
    arguments: tuple[str, ...]
    options: dict[str, Any]
    is_shared: bool = True
    """Whether several processes may have it open."""

    def open(self) -> Any:
        return getattr(siteline.targets, self.target)(*self.arguments, **self.options)

    def settled(self, target: Any, feed: str) -> Any:
        """Returns the settled points of a feed, from a view or a method."""
        if hasattr(target, "settled"):
            return target.settled(feed)
        driver: Any = import_module(DRIVERS[self.target.lower()])
        view = self.options.get("table", "points") + "_settled"
        query = f"SELECT * FROM {view} WHERE feed = '{feed}'"
        with driver.connect(self.arguments[0]) as connection:
            if hasattr(connection, "sql"):
                return connection.sql(query).to_arrow_table()
            with connection.cursor() as cursor:
                return cursor.execute(query).fetch_arrow_table()


def new_place(kind: str, folder: Path, server: Any) -> Place:
    """Returns a new place for a target of this kind."""
    if kind == "duckdb":
        return Place("DuckDB", (str(folder / "plant.duckdb"),), {"history": True}, is_shared=False)
    if kind == "postgres":
        options = {"history": True, "table": f"points_{folder.name}"}
        return Place("Postgres", (server.uri(),), options)
    return Place("Delta", (str(folder / "lake"),), {})


def open_server(kind: str) -> AbstractContextManager[Any]:
    if kind != "postgres":
        return nullcontext()
    server: AbstractContextManager[Any] = import_module("kit.postgres").running_server()
    return server
