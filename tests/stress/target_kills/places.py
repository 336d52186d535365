"""The targets that are synced into, and where they are."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

DRIVERS = {"duckdb": "duckdb", "postgres": "adbc_driver_postgresql.dbapi", "delta": "deltalake"}


@dataclass(frozen=True)
class Place:
    """A class of targets, and the arguments that open one."""

    target: str
    """``module:class``."""
    arguments: tuple[str, ...]
    options: dict[str, Any]
    is_shared: bool = True
    """Whether several processes may have it open."""

    def open(self) -> Any:
        """Open the target."""
        module, _, name = self.target.partition(":")
        return getattr(import_module(module), name)(*self.arguments, **self.options)

    def settled(self, target: Any, feed: str) -> Any:
        """What is settled of a feed, as Arrow: of a view, or of a method."""
        if hasattr(target, "settled"):
            return target.settled(feed)
        driver: Any = import_module(DRIVERS[self.target.rpartition(":")[2].lower()])
        view = self.options.get("table", "points") + "_settled"
        query = f"SELECT * FROM {view} WHERE feed = '{feed}'"
        with driver.connect(self.arguments[0]) as connection:
            if hasattr(connection, "sql"):
                return connection.sql(query).to_arrow_table()
            with connection.cursor() as cursor:
                return cursor.execute(query).fetch_arrow_table()


def new_place(kind: str, folder: Path, server: Any) -> Place:
    """A new place for a target of this kind; what is no kind is a flaw of `kit.file_target`."""
    match kind:
        case "duckdb":
            path = str(folder / "plant.duckdb")
            return Place("siteline.targets:DuckDB", (path,), {"history": True}, is_shared=False)
        case "postgres":
            options = {"history": True, "table": f"points_{folder.name}"}
            return Place("siteline.targets:Postgres", (server.uri(),), options)
        case "delta":
            return Place("siteline.targets:Delta", (str(folder / "lake"),), {})
    return Place("kit.file_target:FileTarget", (str(folder / "points.pickle"),), {"flaw": kind})


def open_server(kind: str) -> AbstractContextManager[Any]:
    """The server of this kind of target; `None` without one."""
    if kind != "postgres":
        return nullcontext()
    server: AbstractContextManager[Any] = import_module("kit.postgres").running_server()
    return server
