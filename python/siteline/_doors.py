"""Internal functions for the satellites, such as ``cli``, which otherwise use public names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from siteline._core import _create_folder as create_folder
from siteline._core import _forbid_core_dumps as forbid_core_dumps
from siteline._core import _of_state as of_state
from siteline._core import _paths as paths
from siteline._core import _sources as sources
from siteline._escape import escaped
from siteline._files import whole_file
from siteline._handles import OfThisProcess
from siteline._records.sync import WHY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol, TypeVar

    from siteline import _core
    from siteline.aio import AsyncClient
    from siteline.client import Client
    from siteline.scan import ScanBase
    from siteline.store import Store
    from siteline.table import Table
    from siteline.types import Delays, Discovery

    _Handle_co = TypeVar("_Handle_co", covariant=True)

    class _Has(Protocol[_Handle_co]):
        @property
        def _handle(self) -> _Handle_co: ...


__all__ = [
    "WHY",
    "OfThisProcess",
    "create_folder",
    "forbid_core_dumps",
    "of_state",
    "paths",
    "sources",
    "whole_file",
]


def handle(of: _Has[_Handle_co]) -> _Handle_co:
    """Return the handle of the core: of a client, a table, a store or an agent."""
    return of._handle


def instrument(client: Client | AsyncClient | None, observer: _core._Instrument | None) -> None:
    """Set the observer of a client's requests and revisions; ``None`` for all clients.

    It is independent of ``on_request``, which belongs to the user.
    """
    from siteline._core import _instrument

    _instrument(None if client is None else client._handle, observer)


def with_settings(base_url: str | None = None, **keywords: Any) -> Client:
    """Make a client of the keywords of profiles, which include the fields of ``Http``."""
    from siteline import _core
    from siteline.client import Client

    return Client._over(_core.Client(base_url, **keywords))


def sending_once(client: Client | AsyncClient) -> Client:
    """Return a client with the same ledger and token that repeats no request."""
    from siteline.client import Client

    return Client._over(client._handle.sending_once())


def series_of(discovery: Discovery) -> Table:
    """Return the series that siteline finds in a discovery body without a shape."""
    from siteline import _labels, _series

    names = _series.Names.of_body(discovery)
    return _series.table(names.rows, names, _labels.DEFAULT)


def labels(table: Table) -> dict[Any, str] | None:
    return table._shown(None)


def series_count(table: Table) -> str:
    """Return the number of series, or of the series in which none was found, as HTML."""
    from html import escape

    return escape(escaped(table._series_count()))


def zone(shown: Table | ScanBase) -> str:
    return shown._tz


def rows(table: Table) -> Iterator[dict[str, Any]]:
    """Yield the rows as the files have them."""
    return table._rows()


def ipc(table: Table) -> Iterator[bytes]:
    """Yield an Arrow IPC stream, for which the command needs no pyarrow."""
    return table._ipc()


def restore(backup: str, store: str, progress: Any) -> bool:
    """Make a store of its backup; return whether it replaced one."""
    from os.path import basename

    from siteline._core import _restore
    from siteline.progress import of_long_work

    with of_long_work(f"restore {basename(store)}", progress) as report:
        return _restore(backup, store, report)


def spool(path: str) -> Store:
    """Open a store for one read: each range is read once into it, with all filters sent."""
    from siteline.store import Store

    store = Store(path, labels=False)
    store._reads_once = True
    return store


def overview(store: Store) -> list[dict[str, Any]]:
    """Return how far each feed is settled and read, without reading its windows."""
    from siteline.feed import Feed

    found = [] if store._is_new() else store._handle.overview()
    return [{**members, "feed": Feed._restore(members["feed"])} for members in found]


def nearest(table: Table) -> str:
    """Return the nearest names of a search without a match, as a sentence."""
    from siteline._selection import as_hint

    return as_hint(table._searched[1] if table._searched else ())


def curve(delays: Delays) -> list[tuple[int, float]]:
    """Return the share that has arrived by each delay in seconds."""
    return delays._shares()
