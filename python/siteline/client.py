"""The client: it signs, counts and retries requests, and reads pages to their end."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

from siteline import _core, _labels, _logs, _selection, _series, frames, types
from siteline import sync as _sync
from siteline._awaiting import check_callback, wait_for
from siteline._core import zone_name
from siteline._escape import escaped
from siteline._handles import Closing, Itself, WithHtml
from siteline._keywords import like
from siteline._records.allowance import Allowance
from siteline._records.discovery import Discovery
from siteline.errors import ConfigError
from siteline.progress import checked as progress_checked
from siteline.scan import Scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import time, tzinfo
    from os import PathLike

    from siteline._core import _Duration, _Filter, _Instant, _ProgressArg, _Range, _Selection
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
    from siteline.types import Http, Plan, RequestEvent, SyncReport

__all__ = ["Client"]

_BEFORE_CALLS = (_logs, frames, types)
"""Imported before a call waits: a signal handler that calls siteline would find a half-made module.
``_logs`` imports logging, which must not happen while another thread forks."""


def _without(given: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


class _Settings(Itself, WithHtml):
    """The settings of a client, and the methods that do not wait."""

    _html = "html.client"

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

        Settings are from the ``SITELINE_*`` variables and then the default profile; with
        ``profile``, from this profile. A ``base_url`` without ``profile`` reads no profile and no
        variable except ``SITELINE_AGENT``: a stored key is never used at another address. Keywords
        override all. ``None`` means "not given".

        Args:
            base_url: The address of the service, such as ``"https://customer.example.com"``.
            credential: A :class:`Credential`, or a :class:`MutualTls` for a platform-managed
                integration. A client of an agent needs none.
            profile: The name of a profile in the file of ``SITELINE_CONFIG``, otherwise
                ``siteline/config.toml`` in ``$XDG_CONFIG_HOME`` or ``~/.config``.
            agent: The address of an :class:`Agent` that signs and counts; ``""`` for none. By
                default ``SITELINE_AGENT``, if that agent has this service and subject.
            daily_allowance: Requests a day; one that would exceed it is not sent. By default none.
            allowance_resets: Start of the service's day: ``"06:00Z"``, ``"08:00+02:00"`` or an
                aware ``datetime.time``. By default midnight UTC. A long ``Retry-After`` overrides.
            ledger: The file in which all processes count, or ``"memory"`` for this client only. By
                default one file for each service and subject.
            tz: The zone of dates and of times without an offset. By default ``"UTC"``.
            labels: The names of series, as of :meth:`Client.scan`. By default ``"machine"``.
            filter_names: The service's query parameters for machines, devices and tags, which the
                interface does not show: ``{"machine": "machineId"}``. A read then pays only for
                the machines that it selects.
            settle_lag: Distance from now of a read without ``end``. By default ``"5m"``.
            scopes: The scopes of the token. By default discovery and data.
            ca_bundle: The only certificates to trust, a path or PEM ``bytes``. By default
                ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, or the machine's store, or certifi.
            proxy: The address of a proxy, never used for loopback. By default ``HTTPS_PROXY``,
                ``HTTP_PROXY`` or ``ALL_PROXY``, unless ``NO_PROXY`` names the host.
            on_request: Called on the waiting thread, with a :class:`RequestEvent` per attempt.
            shape: The member names of the service's replies. By default they are detected.
            http: Timeouts, attempts and limits: :class:`siteline.types.Http`.
            clock: A :class:`Clock` for tests. By default from ``SITELINE_SANDBOX_CLOCK``.

        Raises:
            ConfigError: A setting is wrong, or missing in all places that the error lists.
            AgentUnavailable: The agent does not answer.
        """
        given = _without(locals(), ("self", "base_url", "http"))
        given["shape"] = None if shape is None else asdict(shape)
        given |= http._given() if http is not None else {}
        options = {name: value for name, value in given.items() if value is not None}
        if on_request is not None:
            check_callback("on_request", on_request, "RequestEvent", ConfigError)
        self._handle = _core.Client(base_url, **options)

    @property
    def base_url(self) -> str:
        """The address of the service."""
        return self._handle.base_url

    @property
    def subject(self) -> str:
        """The subject of the credential or certificate."""
        return self._handle.subject

    @property
    def tz(self) -> str | tzinfo:
        """The zone of dates and of times without an offset."""
        return self._handle.setting("tz") or "UTC"

    @property
    def _labels(self) -> Labels:
        labels = self._handle.setting("labels")
        return _labels.DEFAULT if labels is None else labels

    @property
    def allowance(self) -> Allowance:
        """The daily request allowance, as the ledger counts it."""
        return Allowance._restore(self._handle.allowance())

    @property
    def clock_skew(self) -> float | None:
        """The service's clock minus this machine's, in seconds; ``None`` before the first reply."""
        return self._handle.clock_skew()

    def replace_credential(self, credential: Credential | MutualTls) -> None:
        """Sign with another credential of the same subject, from the next token request on.

        The current access token is used until it expires; the new key must be enrolled by then.

        Raises:
            ConfigError: The credential has another subject.

        >>> key = siteline.PrivateKey.generate(2048)
        >>> sandbox.replace_key(client.subject, key.public_jwk)
        >>> client.replace_credential(siteline.Credential(client.subject, key))
        """
        self._handle.replace_credential(credential)

    def close(self) -> None:
        """Close the client: later calls, and calls that wait, raise :class:`ClosedError`.

        ``on_request`` is called for the remaining requests.
        """
        self._handle.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings, the path of the ledger and the place of the key; no secret.

        A client that needs a secret raises ``TypeError``. ``on_request`` is left out. The process
        that loads the pickle requests its own token.
        """
        return (type(self)._over, (self._handle,))

    def _text(self) -> str:
        closed = ", closed" if self._handle.is_closed() else ""
        return f'<{type(self).__name__} {self.base_url} subject="{escaped(self.subject)}"{closed}>'


class Client(_Settings, Closing):
    """A client of the Customer Data Service, for one integration.

    It signs assertions, keeps one access token for the whole process, counts requests, retries
    transient failures and reads pages to their end. Threads may share it.

    Each request is counted in a ledger before it is sent: a small file for each ``base_url`` and
    subject, which all processes share. A process that is killed may count one request too many. The
    ledger also keeps the pauses that the service demanded, but no token. By default it is in
    ``siteline`` in ``$XDG_STATE_HOME`` or ``~/.local/state``. If that file cannot be made, the
    client warns once and counts in memory; with a ``daily_allowance``, that is a
    :class:`ConfigError`. A named file that cannot be made is a :class:`StoreError`. For a service
    on loopback, or with a ``clock``, the client counts in memory.

    An agent signs and counts for all clients of its ``base_url`` and subject. They read no key and
    no ledger; settings that the agent decides are a :class:`ConfigError`.

    >>> client.scan(site="S1", interval="1m", start="2026-11-01T00:00:00Z").query.site
    ('S1',)
    """

    def discover(self) -> Discovery:
        """Request the list of readable resources, with one request that is not counted.

        Returns:
            The unchanged body.
        """
        return Discovery(self._handle.discover().wait())

    def series(self) -> Table:
        """Request the series that discovery lists, with one request that is not counted.

        Series are found by the shape of the body, which the interface does not show; ``report``
        says where. If none is recognised, the table has the series of this client's pages, with a
        :class:`SitelineWarning`; ``Client(shape=...)`` can state where they are.

        >>> client.series().find("speed", line="L2").to_pandas()["label"].tolist()
        ['M3 / D31 / speed [1/min]', 'M4 / D41 / speed [1/min]']
        """
        body = self._handle.discover().wait()
        return _series.of_client(body, *self._handle.seen(), self._labels)

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
        tz: str | tzinfo | None = None,
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
            end: End of the range, exclusive. By default now minus ``settle_lag``. Like relative
                times, it is rounded down to a bucket and fixed by this call.
            interval: The bucket width: seconds, a ``timedelta`` or ``"1m"``. By default the
                service's. Buckets are its multiples in UTC; a bound inside one is a warning.
            site: The filter ``siteId``: one id, or several. The report and a warning name an id
                that discovery does not list. Each site and line is read by its own chain.
            line: The filter ``lineId``, in the same way. With ``store`` each site and line
                has a feed, and they are read one after the other.
            machine, device, tag: Only series with this id or exact name, or one of several. A
                selection that discovery does not list is a :class:`QueryError` before any page.
                With ``labels=False`` only ids match, unchecked. Pages are always filtered after
                they arrive. With ``filter_names`` of the client the ids are sent too, each in its
                own chain, and only matching pages are paid for. Otherwise a warning and
                ``report.filtered`` give the number of points that were left out.
            series: Only these series: a table of series, a DataFrame or Arrow table with the five
                id columns, or ids of series. If they have one site or line, it is sent.
            filters: Further query parameters by name. A list repeats the parameter.
            tz: The zone of dates, of times without an offset, and of timestamps in frames, files,
                text and plots, such as ``"Europe/Berlin"``. By default the client's. A local time
                that clocks skip or repeat is a :class:`QueryError`.
            labels: The names of series in the column ``label``: ``"machine"``, ``"device"``,
                ``"name"``, ``"line"`` or ``"site"`` (the first part of a label), a mapping of tag
                ids or :class:`SeriesIds` to text, or a table of series. ``False`` for none. By
                default the client's. A client requests names with its first page, and again for a
                new series, at most once an hour; these requests are not counted. Without a
                response, labels are ids, and one warning gives the reason.
            page_size: Items per page. By default 10,000, or the service's own size if it refuses
                that. A refusal costs one more request, and is remembered for 30 days.
            split: Reads adjoining parts of the range at the same time: their number, or the length
                of one as text or a ``timedelta``. Each part costs up to one more page.
            concurrency: Most requests in flight, of different chains. It never changes the number
                of pages. :meth:`Scan.pages` and :meth:`Scan.records` follow one chain at a time.
            store: A :class:`Store`. Settled data of a feed with the same ``site``, ``line``,
                ``filters`` and ``interval`` is read from it. The rest is requested and kept in that
                feed, or in a new one that is named after the parameters. If the feed is in use,
                the read waits until the ``deadline``, or for a minute, and raises
                :class:`StoreBusy`. A part that a sync has skipped is an :class:`UnreadRange`.
            deadline: The longest time of one read, waits and token exchange included.
            max_pages: A read that has more pages raises :class:`PageLimitReached`; ``collect()``
                continues it, and counts from zero. With ``store`` it limits the requested pages.
            progress: ``True`` for a bar, or a callable that gets a :class:`Progress` per page.
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
        # A store keeps all series of a line, so its next read costs nothing.
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
            [] if extra_columns is None else _selection.extra_columns(extra_columns),
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

        A page and its bookmark are stored in one transaction: after a kill, an error or an
        interrupt, the next run continues. At the end of the allowance or of ``max_pages`` it
        returns, not ``complete``.

        Args:
            feeds: One :class:`Feed` or several, planned together.
            store: A :class:`Store`, or your own target: :class:`StoreTarget`.
            until: Limits the run to data before this time. By default now minus the settle lag.
            reread: A range ``(start, end)``, or a list of ranges, to read again. Parts before a
                feed's ``start`` or within its ``settle_lag`` of now are left out.
            wait: How long to wait for another run of a feed (``"5m"``), only for a :class:`Store`.
            deadline: The longest time of the whole run. With 0 it fails before any request.
            max_pages: Most pages to request, of all feeds together, without repeats.
            concurrency: Most pages that are requested and not yet stored, of different feeds. A
                kill costs at most this number of requests.
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
        return wait_for(_sync.syncing(self._handle, feeds, store, options, awaits=False))

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

        ``page`` is a :class:`Page`, or ``None`` if only the state changes. ``state`` maps the
        feed's name to the bytes. If two pages have a point, the one with the higher ``sequence``
        counts, then the later row. Nothing locks the feed.

        Args:
            feeds: One :class:`Feed` or several, planned together.
            states: The bytes that were kept last, by feed name, as secret as a bookmark.
            until, reread, deadline, max_pages, concurrency, progress: As of :meth:`sync`.

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

        The pages of a scan are known if this client has read its query over another range, or if a
        feed of the ``store`` has it. A table that a scan keeps costs nothing.

        Args:
            what: Feeds, with their ``store``; or one :class:`Scan` or several.
            store: The store of the feeds.
            until, reread: As of :meth:`sync`. Only for feeds.

        Raises:
            QueryError: An argument is wrong.
            FeedChanged: The store has a feed with another definition.
        """
        options = {"until": until, "reread": reread}
        return wait_for(_sync.planning(self._handle, what, store, options))
