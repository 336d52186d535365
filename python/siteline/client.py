"""The client: it signs, counts and retries requests, and reads pages to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from siteline import _core, _labels, _logs, _selection, frames, types
from siteline import sync as _sync
from siteline._awaiting import wait_for
from siteline._core import zone_name
from siteline._escape import escaped
from siteline._handles import Closing, Itself
from siteline._html import WithHtml
from siteline._keywords import like
from siteline.progress import checked as progress_checked
from siteline.scan import Scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import time, tzinfo
    from os import PathLike

    from siteline._core import (
        _Duration,
        _Filter,
        _Instant,
        _ProgressArg,
        _Range,
        _Selection,
        _Zone,
    )
    from siteline._labels import Labels
    from siteline._selection import Series as _Series
    from siteline.aio import AsyncScan
    from siteline.credentials import Credential, MutualTls
    from siteline.feed import Feed
    from siteline.shapes import Shape
    from siteline.store import Store
    from siteline.sync import SyncPages
    from siteline.table import Table
    from siteline.targets import AsyncStoreTarget, StoreTarget
    from siteline.testing import Clock
    from siteline.types import Allowance, Discovery, Http, Plan, RequestEvent, SyncReport

__all__ = ["Client"]

_BEFORE_CALLS = (_logs, frames, types)
"""Imported before a call waits, because a signal handler that calls siteline meanwhile would find a
half-made module. ``_logs`` imports logging, which must not happen while another thread forks."""


def _without(given: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


class _Settings(Itself, WithHtml):
    """The settings of a client, and the methods that do not wait. Base of both clients."""

    _html = "html.client"

    __slots__ = ("_handle",)

    _scan_class: ClassVar[Any] = Scan

    def __init__(
        self,
        base_url: str | None = None,
        *,
        credential: Credential | MutualTls | None = None,
        profile: str | None = None,
        agent: str | None = None,
        daily_allowance: int | None = None,
        allowance_resets: str | time | None = None,
        ledger: str | PathLike[str] | None = None,
        tz: str | tzinfo | None = None,
        labels: Labels | None = None,
        filter_names: Mapping[str, str] | None = None,
        settle_lag: _Duration | None = None,
        scopes: str | Sequence[str] | None = None,
        ca_bundle: str | PathLike[str] | bytes | bytearray | memoryview | None = None,
        proxy: str | None = None,
        on_request: Callable[[RequestEvent], object] | None = None,
        shape: Shape | None = None,
        http: Http | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Make a client. Sends nothing.

        Without arguments the ``SITELINE_*`` variables give the settings, and the default profile
        gives the others. With ``profile``, this profile gives them. A ``base_url`` without
        ``profile`` reads no profile and no variable except ``SITELINE_AGENT``: a stored key is
        never used at another address. Keywords override both. ``None`` means "not given".

        Args:
            base_url: The address of the service, such as ``"https://customer.example.com"``.
            credential: A :class:`Credential`, or a :class:`MutualTls` for a platform-managed
                integration. A client of an agent needs none.
            profile: The name of a profile in the file of ``SITELINE_CONFIG``, otherwise
                ``siteline/config.toml`` in ``$XDG_CONFIG_HOME`` or ``~/.config``.
            agent: The address of an :class:`Agent` that signs and counts; ``""`` for none. By
                default ``SITELINE_AGENT``, if that agent has this service and subject.
            daily_allowance: Requests a day. A request that would exceed it is not sent. By default
                the service sets the limit.
            allowance_resets: When the service's day begins: ``"06:00Z"``, ``"08:00+02:00"`` or an
                aware ``datetime.time``. By default midnight UTC. A long ``Retry-After`` that shows
                another time wins.
            ledger: The file in which all processes count requests, or ``"memory"`` for this client
                only. By default one file for each service and subject.
            tz: The zone of dates and of times without an offset. By default ``"UTC"``.
            labels: The names of series in tables, as of :meth:`Client.scan`. By default
                ``"machine"``; ``False`` for none.
            filter_names: The query parameters by which the service filters machines, devices and
                tags, which the interface does not show: ``{"machine": "machineId"}``. With it a
                read of some machines requests and pays for their points only.
            settle_lag: The distance from now at which a read without ``end`` ends: ``"5m"``.
            scopes: The scopes of the token. By default discovery and data.
            ca_bundle: The only certificates to trust, a path or PEM ``bytes``. By default
                ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, the machine's store, or certifi.
            proxy: The address of a proxy. By default ``HTTPS_PROXY``, ``HTTP_PROXY`` or
                ``ALL_PROXY`` gives it, unless ``NO_PROXY`` names the host. Never used for loopback.
            on_request: Called with a :class:`RequestEvent` once for each finished attempt, on the
                thread that waits.
            shape: The member names of the service's replies. By default they are detected.
            http: Timeouts, attempts and limits: :class:`siteline.types.Http`.
            clock: A :class:`Clock`, for tests. By default the clock of the
                sandbox in ``SITELINE_SANDBOX_CLOCK``, otherwise the machine's.

        Raises:
            ConfigError: A setting is wrong or missing. Missing settings are one error that lists
                all places that were searched.
            AgentUnavailable: The agent does not answer.
        """
        given = _without(locals(), ("self", "base_url", "http"))
        given["shape"] = None if shape is None else shape._members()
        given |= http._given() if http is not None else {}
        options = {name: value for name, value in given.items() if value is not None}
        self._handle = _core.Client(base_url, **options)

    @classmethod
    def _over(cls, handle: _core.Client) -> Self:
        made = cls.__new__(cls)
        made._handle = handle
        return made

    @property
    def base_url(self) -> str:
        """The address of the service."""
        return self._handle.base_url

    @property
    def subject(self) -> str:
        """The subject of the credential or of the client certificate."""
        return self._handle.subject

    @property
    def tz(self) -> str | tzinfo:
        """The zone of dates and of times without an offset."""
        return self._handle.setting("tz") or "UTC"

    @property
    def _labels(self) -> Labels:
        labels = self._handle.setting("labels")
        return _labels.DEFAULT if labels is None else _labels.checked(labels)

    @property
    def allowance(self) -> Allowance:
        """The daily request allowance, as the ledger counts it."""
        return self._handle.allowance()

    @property
    def clock_skew(self) -> float | None:
        """The service's clock minus this machine's, in seconds; ``None`` before the first reply."""
        return self._handle.clock_skew

    def replace_credential(self, credential: Credential | MutualTls) -> None:
        """Sign with another credential of the same subject from the next token request on.

        This is for a key that is replaced while the program runs. The current access token is used
        until it expires. The new key must be enrolled by then. A pickle of the client has the new
        credential.

        Args:
            credential: The new credential.

        Raises:
            ConfigError: The credential has another subject, which needs another client.

        >>> key = siteline.PrivateKey.generate(2048)
        >>> sandbox.replace_key(client.subject, key.public_jwk)
        >>> client.replace_credential(siteline.Credential(client.subject, key))
        """
        self._handle.replace_credential(credential)

    def close(self) -> None:
        """Close the client. Later calls, and calls that wait, raise :class:`ClosedError`.

        ``on_request`` is called for the remaining requests.
        """
        self._handle.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings, the path of the ledger and where the key is; no secret.

        A client that would need a secret raises ``TypeError`` and says what to do. ``on_request``
        is left out. The process that loads the pickle requests its own token.
        """
        return (type(self)._over, (self._handle,))

    def __repr__(self) -> str:
        """Name the service and the subject."""
        # A traceback may show an object whose constructor failed.
        if not hasattr(self, "_handle"):
            return object.__repr__(self)
        closed = ", closed" if self._handle.is_closed else ""
        return f'<{type(self).__name__} {self.base_url} subject="{escaped(self.subject)}"{closed}>'


class Client(_Settings, Closing):
    """A client of the Customer Data Service, for one integration.

    It signs assertions, keeps one access token for the whole process, counts requests, retries
    transient failures and reads pages to their end. Threads may share it. Making one sends nothing.

    Each request is counted in a ledger before it is sent: a small file for each ``base_url`` and
    subject, shared by all clients, threads and processes. A process that is killed may count one
    request too many. The ledger also keeps the pauses that the service demanded, but no
    token. By default it is in ``siteline`` in ``$XDG_STATE_HOME`` or ``~/.local/state``. If that
    file cannot be made, the client warns once and counts in memory; with a ``daily_allowance``,
    that is a :class:`ConfigError`. It also counts in memory if the service is on loopback or a
    ``clock`` is given. If a named file cannot be made, that is a :class:`StoreError`.

    An agent signs and counts for all clients of its ``base_url`` and subject. No key and no ledger
    is read then, and settings that the agent decides are a :class:`ConfigError`. If the agent does
    not answer, that is :class:`AgentUnavailable`: no client continues without it.

    >>> client.scan(site="S1", interval="1m", start="2026-11-01T00:00:00Z").query.site
    ('S1',)
    >>> import os
    >>> os.environ.update(sandbox.env())
    >>> siteline.Client(daily_allowance=100).allowance.left
    100
    >>> for name in sandbox.env():
    ...     del os.environ[name]
    """

    __slots__ = ()

    def discover(self) -> Discovery:
        """Request the list of readable resources.

        Returns:
            The unchanged body. The request is not counted.
        """
        return self._handle.discover().wait()

    def series(self) -> Table:
        """Request the series that discovery lists, a table with a row for each.

        One discovery request, which is not counted. Series are found in the body by its shape,
        because the interface does not show it; ``report`` says where. If none is recognised, the
        table has the series that pages of this client had, with a :class:`SitelineWarning`; then
        ``Client(shape=...)`` can state where they are.

        >>> client.series().find("speed", line="L2").to_pandas()["label"].tolist()
        ['M3 / D31 / speed [1/min]', 'M4 / D41 / speed [1/min]']
        """
        from siteline import _series

        return _series.of_client(*self._handle.series().wait(), self._labels)

    def scan(
        self,
        *,
        start: _Instant | None,
        end: _Instant | None = None,
        interval: _Duration | None = None,
        site: _Selection | None = None,
        line: _Selection | None = None,
        machine: _Selection | None = None,
        device: _Selection | None = None,
        tag: _Selection | None = None,
        series: _Series | None = None,
        filters: Mapping[str, _Filter] | None = None,
        tz: _Zone = None,
        labels: Labels | None = None,
        page_size: int | None = None,
        split: int | _Duration | None = None,
        concurrency: int = 4,
        store: Store | None = None,
        deadline: _Duration | None = None,
        max_pages: int | None = None,
        progress: _ProgressArg = False,
        settle_lag: _Duration | None = None,
        extra_columns: Iterable[str] | None = None,
        keep_raw: bool = False,
    ) -> Scan:
        """Make a lazy :class:`Scan` over the aggregate data. Sends nothing.

        Parameters that are not given are not sent, except ``end``.

        Args:
            start: Start of the range: an aware datetime, a pandas Timestamp, ISO 8601 text in whole
                seconds, a date, ``"now"``, or an offset from now (``"-7d"``, ``"-90m"``). ``None``
                lets the service decide, which may cost years of pages.
            end: End of the range, exclusive. By default now minus ``settle_lag``. It is rounded
                down to a bucket and fixed by this call, as are relative times.
            interval: The bucket width: seconds, a ``timedelta`` or ``"1m"``. By default the service
                decides. Buckets are its multiples in UTC; a :class:`SitelineWarning` says if a
                bound is inside a bucket.
            site: The filter ``siteId``: one id, or several. The report and a warning name an id
                that discovery does not list. Each site and line is read by a chain of its own,
                and the result is one table.
            line: The filter ``lineId``, in the same way. With ``store`` each site and line
                has a feed, and they are read one after the other.
            machine, device, tag: Only series with this id or exact name, or one of several. A
                selection that discovery does not list is a :class:`QueryError` before any page.
                With ``labels=False`` only ids count, and they are not checked. The pages that
                arrive are always filtered. If the client has ``filter_names``, the ids are sent
                too, each in a chain of its own, and only matching pages are paid for. Otherwise a
                warning and ``report.filtered`` say how many points were left out.
            series: Only these series: a table of series, a DataFrame or Arrow table with the five
                id columns, or ids of series. If they have one site or line, it is sent.
            filters: Further query parameters by name. A list repeats the parameter.
            tz: The zone of dates and of times without an offset, such as ``"Europe/Berlin"``. By
                default the client's. A day has 23 or 25 hours when clocks are set. A time that
                clocks skip or repeat is a :class:`QueryError` that says how to write each. The
                timestamps of frames, files, text and plots are in this zone too.
            labels: The names of series in tables, in the column ``label``: ``"machine"``,
                ``"device"``, ``"name"``, ``"line"`` or ``"site"`` (the first part of a label), a
                mapping of tag ids or :class:`SeriesIds` to text, or a table of series. ``False``
                for none. By default the client's. For names the first read of a client sends one
                discovery request together with its first page, and a read with a new series
                another, at most once an hour. They are not counted. Without a response labels are
                ids, and one warning gives the reason.
            page_size: Items per page. By default 10,000, or the service's own size if it refuses
                that. A refusal costs one more request, and is remembered for 30 days.
            split: Reads the range in adjoining parts at the same time: their number, or the length
                of one as text or a ``timedelta``. It costs up to one more page for each part.
            concurrency: Most requests in flight, of different chains. It never changes the number
                of pages. :meth:`Scan.pages` and :meth:`Scan.records` follow one chain at a time.
            store: A :class:`Store`. Settled data of a feed with the same ``site``, ``line``,
                ``filters`` and ``interval`` is read from it. The rest is requested, and
                kept there, in that feed or in a new one that is named after the parameters. If
                another read or sync uses the feed, this one waits until the ``deadline``, or for a
                minute, and then raises :class:`StoreBusy`. If a sync has skipped a part of the
                range, that is an :class:`UnreadRange` before any request.
            deadline: The longest time of one read, waits and token exchange included.
            max_pages: A read that has more pages raises :class:`PageLimitReached`. With ``store``
                it limits the requested pages. After the error, ``collect()`` continues, and the
                pages count anew.
            progress: ``True`` for a bar in terminals and notebooks, or a callable that gets a
                :class:`Progress` after each page.
            settle_lag: Limits ``end`` to now minus this duration. By default a given ``end`` stays.
            extra_columns: Members of points or series to keep, as JSON text.
            keep_raw: Keeps each page's body in ``page.raw``.

        Raises:
            QueryError: An argument is wrong.

        >>> scan = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-02T00:00Z",
        ...                    interval="1h", filters={"machineId": ("M1", "M2")})
        >>> scan.query.interval, scan.query.filters
        (datetime.timedelta(seconds=3600), {'machineId': ('M1', 'M2')})
        >>> lines = client.read(line=["L1", "L2"], start="2026-11-01", end="2026-11-02",
        ...                     interval="1h")
        >>> lines.query.line, lines.report.pages
        (('L1', 'L2'), 2)
        >>> print(client.scan(start="2026-10-25", end="2026-10-26", tz="Europe/Berlin").query)
        from=2026-10-24T22:00:00Z to=2026-10-25T23:00:00Z
        >>> store = siteline.Store("plant.siteline")
        >>> again = {"site": "S1", "interval": "1h", "start": "2026-11-01", "end": "2026-11-02"}
        >>> [client.read(**again, store=store).report.pages for _ in range(2)]
        [1, 0]
        """
        tz = self.tz if tz is None else tz
        labels = self._labels if labels is None else _labels.checked(labels)
        settings = (zone_name(tz), labels, progress_checked(progress), store)
        # A store keeps all series of a line, so that the next read of it costs nothing.
        keeps_all = store is not None and not getattr(store, "_reads_once", False)
        parameters = None if keeps_all else self._handle.setting("filter_names")
        handle = self._handle.scan(
            _selection.query(site, line, interval, page_size, filters),
            _selection.selection(
                machine, device, tag, series, parameters, by_name=labels is not False
            ),
            (start, end, tz),
            (max_pages, deadline, concurrency),
            split,
            settle_lag,
            _selection.extra_columns(extra_columns),
            keep_raw,
        )
        scan: Scan = self._scan_class(handle, *settings)
        return scan

    @like(scan)
    def read(self, **query: Any) -> Table:
        """Read every page now, and merge them. Takes the parameters of :meth:`scan`.

        Every exception, ``KeyboardInterrupt`` included, has the attribute ``scan``:
        ``error.scan.collect()`` continues with the pages that were kept.

        >>> client.read(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
        ...             interval="1h")
        <Table 72 points, 12 series, 1 page>
        """
        return self.scan(**query).collect()

    def sync(
        self,
        feeds: Feed | Iterable[Feed],
        store: Store | StoreTarget | AsyncStoreTarget,
        *,
        until: _Instant | None = None,
        reread: _Range | Iterable[_Range] | None = None,
        wait: _Duration | None = None,
        deadline: _Duration | None = None,
        max_pages: int | None = None,
        concurrency: int = 4,
        progress: _ProgressArg = False,
    ) -> SyncReport:
        """Bring feeds up to date in a store: the newest data, due data, and data never read.

        A page and its bookmark are stored in one transaction: after a kill at any moment, the next
        run continues. When the allowance is used up, the sync returns, with ``complete``
        False. Committed pages stay after an error or an interrupt.

        Args:
            feeds: One :class:`Feed` or several, planned together.
            store: A :class:`Store`, or a target of yours: :class:`StoreTarget`.
            until: Limits the run to data before this time. By default now minus the settle lag.
            reread: A range ``(start, end)``, or a list of ranges, to read again. Parts before a
                feed's ``start`` or within its ``settle_lag`` of now are left out.
            wait: How long to wait for feeds that another run writes to (``"5m"``). By default not
                at all. Only for a :class:`Store`.
            deadline: The longest time of the whole run. With 0 it fails before any request.
            max_pages: Most pages to request, of all feeds together. The sync then returns, with
                ``complete`` False, and the next run continues. Repeats of a page are not counted.
            concurrency: Most pages that are requested and not yet stored, of different feeds. Pages
                are stored one at a time. A kill costs at most this number of requests.
            progress: As of :meth:`scan`.

        Raises:
            StoreBusy: Another run writes to a feed.
            FeedChanged: The store has the feed with another definition.
            SitelineError: An error of a read or of the store. An error of one range is raised after
                the others have been read. Its ``report`` has what was stored.

        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      start="2026-11-15T00:00Z")
        >>> client.sync(feed, siteline.Store("plant.siteline")).complete
        True
        """
        options = _without(locals(), ("self", "feeds", "store"))
        report: SyncReport = wait_for(
            _sync.syncing(self._handle, feeds, store, options, awaits=False)
        )
        return report

    def sync_pages(
        self,
        feeds: Feed | Iterable[Feed],
        states: Mapping[str, bytes] | None = None,
        *,
        until: _Instant | None = None,
        reread: _Range | Iterable[_Range] | None = None,
        deadline: _Duration | None = None,
        max_pages: int | None = None,
        concurrency: int = 4,
        progress: _ProgressArg = False,
    ) -> SyncPages:
        """Sync in the pull form: an iterator of pages and states, for dlt, Kafka or Spark.

        Store each page and its ``state`` in one transaction, and keep ``states.update(state)`` for
        the next sync. A request for the next page means that the one before is stored.

        ``page`` is a :class:`Page`, or ``None`` if only the state changes. ``state`` has one item:
        the feed's name and the bytes. If two pages have a point, the one with the higher
        ``sequence`` counts, then the later row. Nothing locks the feed.

        Args:
            feeds: One :class:`Feed` or several, planned together.
            states: The bytes that were kept last, by feed name. A feed that is not in it starts
                from the beginning. They are as secret as a bookmark.
            until, reread, deadline, max_pages, concurrency, progress: As of :meth:`sync`.

        >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
        ...                      start="2026-11-15T00:00Z")
        >>> rows, states = {}, {}
        >>> for page, state in client.sync_pages(feed, states):
        ...     for record in page.records() if page is not None else ():
        ...         rows[tuple(record.values())[:6]] = tuple(record.values())[6:]
        ...     states.update(state)
        >>> len(rows) > 0, list(states)
        (True, ['line-2'])
        """
        options = _without(locals(), ("self", "feeds", "states"))
        return _sync.SyncPages(self._handle, feeds, states, options)

    def plan(
        self,
        what: Feed | Scan | AsyncScan | Iterable[Feed | Scan | AsyncScan],
        store: Store | StoreTarget | AsyncStoreTarget | None = None,
        *,
        until: _Instant | None = None,
        reread: _Range | Iterable[_Range] | None = None,
    ) -> Plan:
        """Plan what the next sync, or a scan, would read and cost. Sends nothing.

        The pages of a scan are known if this client has read the same query over another range, or
        if a feed of the ``store`` has that query. A table that a scan keeps costs nothing.

        Args:
            what: Feeds, with their ``store``; or one :class:`Scan` or several.
            store: The store of the feeds.
            until, reread: As of :meth:`sync`. Only for feeds.

        Raises:
            QueryError: An argument is wrong.
            FeedChanged: The store has a feed with another definition.
        """
        options = {"until": until, "reread": reread}
        plan: Plan = wait_for(_sync.planning(self._handle, what, store, options))
        return plan
