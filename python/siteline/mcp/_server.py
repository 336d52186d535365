"""The tools of the MCP server. A model reads their descriptions, names and answers."""

from __future__ import annotations

import functools
import inspect
import json
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field
from typing_extensions import TypedDict  # pydantic needs it before Python 3.12

from siteline import __version__, _doors
from siteline.errors import SitelineError, UnreadRange

if TYPE_CHECKING:
    from siteline.aio import AsyncClient
    from siteline.client import Client
    from siteline.store import Store
    from siteline.table import Table
    from siteline.types import RequestEvent

__all__: list[str] = []

_Cell = str | float | int | bool | None
_LENGTHS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "mo": 2_592_000}
_MOST_PERIODS = 50_000  # more would not fit into memory

# An unknown argument, such as the name of a filter, must not be ignored.
ArgModelBase.model_config["extra"] = "forbid"

_INSTRUCTIONS = """Production data of machines: time series of aggregated points, in local copies \
("feeds"). Call list_feeds first, then list_series for names and units. Data of recent days may \
still change; data before settled_through is final. Times without an offset are UTC unless tz is \
given; ranges exclude their end."""

_Feed = Annotated[str, Field(description="name of a feed, as list_feeds returns it")]
_Start = Annotated[str, Field(description='ISO 8601 time, or "-7d" before the newest data')]
_End = Annotated[str, Field(description="end of the range, exclusive; same forms as start")]
_Text = Annotated[
    str | None, Field(description="only series with this text in id, name, unit or label")
]
_Limit = Annotated[int, Field(ge=1, le=1000, description="maximum number of rows")]
_Tz = Annotated[str, Field(description='IANA time zone, such as "Europe/Berlin"')]
_Every = Annotated[str, Field(description='length of a period: "15m", "1h", "1d", "1w", "1mo"')]
_Agg = Literal["mean", "sum", "first", "last", "increase"]

_Partial = Annotated[
    Literal["null", "keep", "drop"], Field(description="periods that were not read completely")
]


class Rows(TypedDict):
    """Rows of a table. If total exceeds the number of rows, the others were left out."""

    columns: list[str]
    rows: list[list[_Cell]]
    total: int
    notes: list[str]


class FeedState(TypedDict):
    """A feed and how far its data is read and final."""

    feed: str
    site: str | None
    line: str | None
    interval_seconds: float | None
    start: str | None
    settled_through: str | None
    read_through: str | None
    newest: str | None


class Feeds(TypedDict):
    """The feeds of all stores."""

    feeds: list[FeedState]


class Windows(TypedDict):
    """The state of a feed by time. hours has the total time in each state."""

    feed: str
    settled_through: str | None
    read_through: str | None
    hours: dict[str, float]
    windows: list[list[_Cell]]
    total: int


def _answering(tool: Callable[..., Any]) -> Callable[..., CallToolResult]:

    @functools.wraps(tool)
    def run(*args: Any, **keywords: Any) -> CallToolResult:
        try:
            answer = tool(*args, **keywords)
        except SitelineError as error:
            # A model cannot make the calls of Python that hints name.
            hint = " The tool coverage shows it." if isinstance(error, UnreadRange) else ""
            raise ToolError(f"{error.message}{hint}") from None
        # By default it would be indented, and four times as long.
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=answer
        )

    return run


class Server:
    def __init__(
        self, stores: dict[str, Store], client: Client | AsyncClient | None, requests: int
    ) -> None:
        self.stores, self.left = stores, requests
        # Only one thread at a time can collect warnings.
        self.lock = threading.Lock()
        # One read of the service at a time, next to other tools.
        self.reading = threading.Lock()
        self.server = MCPServer(
            "siteline", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
        )
        tools: list[Callable[..., Any]] = [self.list_feeds, self.list_series, self.read_points]
        tools += [self.completeness, self.coverage, self.changes]
        for tool in tools:
            self.add(tool, is_local=True)
        if client is not None:
            # This client repeats no request, so each one is counted here.
            self.client = _doors.sending_once(client)
            _doors.instrument(self.client, self)
            self.add(self.read_service, is_local=False)

    def add(self, tool: Callable[..., Any], *, is_local: bool) -> None:
        """Register a tool. Its docstring is the description."""
        about = ToolAnnotations(
            read_only_hint=True, idempotent_hint=True, open_world_hint=not is_local
        )
        self.server.add_tool(_answering(tool), description=inspect.getdoc(tool), annotations=about)

    def feeds(self) -> dict[str, tuple[Store, Any]]:
        """Return the store and the state of each feed. Equal names begin with their store."""
        found = [
            (stem, store, state)
            for stem, store in self.stores.items()
            for state in _doors.overview(store)
        ]
        count = Counter(state["feed"].name for *_, state in found)
        feeds: dict[str, tuple[Store, Any]] = {}
        for stem, store, state in sorted(found, key=lambda one: count[one[2]["feed"].name]):
            name = state["feed"].name
            shown = name if count[name] == 1 else f"{stem}/{name}"
            while shown in feeds:
                shown = f"{stem}/{shown}"
            feeds[shown] = (store, state)
        return feeds

    def feed(self, name: str) -> tuple[Store, str]:
        feeds = self.feeds()
        if name not in feeds:
            raise ToolError(f"There is no feed {name!r}. The feeds are: {', '.join(feeds)}.")
        store, state = feeds[name]
        return store, state["feed"].name

    def rows(self, make: Callable[[], Table], text: str | None, limit: int) -> Rows:
        """Return the first rows of a table, without ids unless they are its series."""
        with self.lock, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            table = make()
            notes = [] if len(table) or text is None else [f"No series with a point has {text!r}."]
            shown = table.columns if table.kind == "series" else ["label"]
            columns = [
                one for one in table.columns if one in shown or not one.endswith(("_id", "_guid"))
            ]
            first = islice(_doors.rows(table), limit)
            rows = [[_cell(row[name]) for name in columns] for row in first]
            total = len(table)
        if total > len(rows):
            hint = "take a shorter range, a text, or longer periods."
            notes.append(f"{total - len(rows)} rows were left out: {hint}")
        notes += dict.fromkeys(str(one.message) for one in warned)
        return {"columns": columns, "rows": rows, "total": total, "notes": notes}

    def list_feeds(self) -> Feeds:
        """List the feeds: which site, line and bucket width each has, and how far it is read."""
        return {"feeds": [_state(name, state) for name, (_, state) in self.feeds().items()]}

    def list_series(self, feed: _Feed, text: _Text = None, limit: _Limit = 100) -> Rows:
        """List the series of a feed with label, name, unit and ids."""
        store, name = self.feed(feed)
        return self.rows(lambda: _found(store.series(name), text), text, limit)

    def read_points(
        self,
        feed: _Feed,
        start: _Start,
        end: _End,
        text: _Text = None,
        every: _Every | None = None,
        agg: _Agg | None = None,
        partial: _Partial = "null",
        final: Annotated[bool, Field(description="only data that will not change")] = False,
        tz: _Tz = "UTC",
        limit: _Limit = 200,
    ) -> Rows:
        """Read points. With every and agg, resample them; agg is how value is combined.

        "mean" suits temperatures and speeds, "increase" suits counters. A range that was never read
        is an error; coverage shows it.
        """
        store, name = self.feed(feed)

        def make() -> Table:
            points = store.read(name, start, end, final=final, withdrawn="drop", tz=tz)
            return _resampled(_found(points, text), every, agg, partial)

        return self.rows(make, text, limit)

    def completeness(
        self,
        feed: _Feed,
        start: _Start,
        end: _End,
        text: _Text = None,
        every: _Every = "1d",
        tz: _Tz = "UTC",
        limit: _Limit = 200,
    ) -> Rows:
        """Count the buckets per series and period: share, buckets, missing, unread, expected."""
        store, name = self.feed(feed)

        def make() -> Table:
            points = store.read(name, start, end, withdrawn="drop", unread="keep", tz=tz)
            _check_size(points, every)
            return _found(points, text).completeness(every)

        return self.rows(make, text, limit)

    def coverage(self, feed: _Feed, limit: _Limit = 50) -> Windows:
        """Return which time of a feed was read and is final, and the newest windows that are not.

        A window is [start, end, state]. States: "settled" is final, "provisional" may change,
        "due" changes with the next sync, "unread" was never read, "forgotten" was removed.
        """
        store, name = self.feed(feed)
        found = store.coverage(name)
        others: list[list[_Cell]] = [
            [_cell(one.start), _cell(one.end), one.state] for one in found if one.state != "settled"
        ]
        return {
            "feed": feed,
            "settled_through": _cell(found.settled_through),
            "read_through": _cell(found.read_through),
            "hours": {state: span.total_seconds() / 3600 for state, span in found.spans.items()},
            "windows": others[-limit:],
            "total": len(others),
        }

    def changes(
        self,
        feed: _Feed,
        since: Annotated[str, Field(description="ISO 8601 time of an earlier look")],
        text: _Text = None,
        tz: _Tz = "UTC",
        limit: _Limit = 200,
    ) -> Rows:
        """Return the points that were stored or revised since a time, with their present values."""
        store, name = self.feed(feed)
        return self.rows(lambda: _found(store.changes(name, since, tz=tz), text), text, limit)

    def read_service(
        self,
        start: _Start,
        end: _End,
        site: Annotated[str | None, Field(description="only this site, by id")] = None,
        line: Annotated[str | None, Field(description="only this line, by id")] = None,
        interval: Annotated[str, Field(description='bucket width: "1m", "1h"')] = "1h",
        text: _Text = None,
        every: _Every | None = None,
        agg: _Agg | None = None,
        tz: _Tz = "UTC",
        limit: _Limit = 200,
    ) -> Rows:
        """Read points from the service. Costs requests of a small budget, so ask the feeds first.

        Each request returns some thousand points, so choose a short range and a long interval.
        """

        span: dict[str, Any] = {"start": start, "end": end, "interval": interval, "tz": tz}
        try:
            with self.reading:
                if self.left < 1:
                    raise ToolError("The requests of this server are spent. Use the feeds.")
                # An automatic page size may cost a second request, so one is kept for it.
                size, pages = (1000, 1) if self.left == 1 else (None, self.left - 1)
                points = self.client.read(
                    site=site, line=line, page_size=size, max_pages=pages, concurrency=1, **span
                )
            found = self.rows(lambda: _resampled(_found(points, text), every, agg), text, limit)
        except SitelineError as error:
            raise ToolError(f"{error.message} {self.left} requests are left.") from None
        found["notes"].append(f"{self.left} requests are left.")
        return found

    def request(self, event: RequestEvent) -> None:
        """Count a request: the client calls this."""
        self.left -= event.kind == "data"

    def revised(self, feeds: object) -> None:
        """Ignore revisions: this client syncs nothing."""


def _state(name: str, state: Any) -> FeedState:
    feed, interval = state["feed"], state["feed"].interval
    return {
        "feed": name,
        "site": feed.site,
        "line": feed.line,
        "interval_seconds": interval.total_seconds() if interval else None,
        "start": _cell(feed.start),
        "settled_through": _cell(state["settled_through"]),
        "read_through": _cell(state["read_through"]),
        "newest": _cell(state["newest"]),
    }


def _found(table: Table, text: str | None) -> Table:
    return table if text is None else table.find(text)


def _resampled(
    points: Table, every: str | None, agg: _Agg | None, partial: _Partial = "null"
) -> Table:
    if (every is None) != (agg is None):
        raise ToolError('every and agg belong together, such as every="1h" and agg="mean".')
    return points if every is None or agg is None else points.resample(every, agg, partial=partial)


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    # JSON has no NaN and no infinity.
    return None if isinstance(value, float) and not isfinite(value) else value


def _check_size(points: Table, every: str) -> None:
    start, end = points.report.start, points.report.end
    length = re.fullmatch(r"(\d+)(mo|[smhdw])", every)
    if start is None or end is None or length is None:
        return
    seconds = int(length[1]) * _LENGTHS[length[2]]
    if (end - start).total_seconds() / max(seconds, 1) > _MOST_PERIODS:
        raise ToolError("That is too many periods. Take a shorter range, or a longer every.")
