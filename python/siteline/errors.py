"""All exceptions of siteline, in one tree, with bases of the standard library in parentheses.

::

    SitelineError
      ConfigError (ValueError)
        CredentialError, QueryError
      TransportError (ConnectionError)
        TransportTimeout (TimeoutError), TlsError, ProxyError, AgentUnavailable, TruncatedBody
      ProtocolError (ValueError)
        BodyTooLarge, CursorLoop, EndlessChain, RedirectRefused
      ServiceError
        AuthenticationError
          ClockSkewError
        ScopeError (PermissionError)
        RequestRejected
          CursorRejected
        RateLimited
          AllowanceExhausted
        ServiceUnavailable
      StoreError
        StoreBusy, StoreFull (OSError), StoreCorrupt, FeedChanged, UnreadRange
      DeadlineExceeded (TimeoutError), PageLimitReached, BookmarkError (ValueError)
      ClosedError (RuntimeError), ForkError (RuntimeError), InternalError (RuntimeError)

No text contains a key, token, assertion, passphrase, cursor or query string. Exceptions can be
pickled, without ``scan``, ``partial`` and ``bookmark``: only a bookmark's pickle has a cursor.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from siteline._escape import escaped, escaped_lines

if TYPE_CHECKING:
    from siteline._records.bookmark import Bookmark
    from siteline._records.sync import SyncReport
    from siteline.table import Table

__all__ = ["AgentUnavailable", "AllowanceExhausted", "Attempt", "AuthenticationError"]
__all__ += ["BodyTooLarge", "BookmarkError", "ClockSkewError", "ClosedError", "ConfigError"]
__all__ += ["CredentialError", "CursorLoop", "CursorRejected", "DeadlineExceeded"]
__all__ += ["EndlessChain", "FeedChanged", "ForkError", "InternalError", "PageLimitReached"]
__all__ += ["ProtocolError", "ProxyError", "QueryError", "RateLimited", "RedirectRefused"]
__all__ += ["RequestRejected", "ScopeError", "ServiceError", "ServiceUnavailable"]
__all__ += ["SitelineError", "SitelineWarning", "StoreBusy", "StoreCorrupt", "StoreError"]
__all__ += ["StoreFull", "TlsError", "TransportError", "TransportTimeout", "TruncatedBody"]
__all__ += ["UnreadRange"]


class SitelineWarning(UserWarning):
    """A working setting that should be changed, such as a key file that others can read.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     scan = client.scan(site="S1", start="2026-11-01", end="2030-01-01")
    >>> seen[0].category is siteline.SitelineWarning, str(seen[0].message)
    (True, 'end=2030-01-01T00:00:00Z is in the future ...')
    """

    def __init__(self, *parts: object) -> None:
        """Escape unprintable characters of the text."""
        super().__init__(*(escaped(one) if type(one) is str else one for one in parts))


class Attempt(NamedTuple):
    """One attempt of a request.

    >>> sandbox.fault(on="data", status=503, times=4)
    >>> try:
    ...     scan.collect()
    ... except siteline.errors.ServiceUnavailable as error:
    ...     print([attempt.outcome for attempt in error.attempts])
    ['503', '503', '503', '503']
    """

    outcome: str
    """A status (``"503"``) or what happened (``"timeout in response"``)."""
    wait: float | None
    """Seconds until the next attempt; ``None`` after the last."""

    def to_dict(self) -> dict[str, str | float | None]:
        """Return the fields as JSON values."""
        return self._asdict()


class SitelineError(Exception):
    """The base class of all exceptions of siteline.

    After a failed read, ``error.scan.collect()`` continues with the pages that were read. In
    another process ``scan.resume(error.bookmark, onto=error.partial)`` does so.

    >>> sandbox.fault(on="data", status=503, skip=1, times=4)      # the second page fails
    >>> try:
    ...     table = scan.collect()
    ... except siteline.SitelineError as error:
    ...     print(error.kept)
    ...     table = error.scan.collect()
    1 page (30 points) is kept: error.scan.collect() continues after it.
    >>> table
    <Table 72 points, 12 series, 3 pages>
    """

    hint: str | None = None
    """What to do now."""
    retryable: bool = False
    """Whether the same call may succeed later with nothing changed."""
    attempts: tuple[Attempt, ...] = ()
    """The attempts made, in order."""
    elapsed: float | None = None
    """Seconds from the first attempt to the failure."""
    request_id: str | None = None
    """The service's identifier of the request, if its reply had one."""
    bookmark: Bookmark | None = None
    """The position from which a failed read continues."""
    partial: Table | None = None
    """The table of the pages that were read."""
    scan: Any = None
    """The scan that failed: its ``collect()`` continues."""
    report: SyncReport | None = None
    """What a sync had read and stored."""
    kept: str | None = None
    """The number of kept pages and points, and how to continue."""
    _pickled_kept: str | None = None

    def __init__(self, message: str = "", /, **context: Any) -> None:
        """Store the message, and every keyword as an attribute."""
        super().__init__(escaped(message))
        for name, value in context.items():
            # siteline writes the hint itself, and it may have several lines.
            safe = escaped_lines if name == "hint" else escaped
            setattr(self, name, safe(value) if type(value) is str else value)

    @property
    def message(self) -> str:
        """The request and its result."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        """Return the message, what was kept, and the hint, in lines."""
        return "\n".join(filter(None, (self.message, self.kept, self.hint)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message and the attributes, without scans, tables and cursors."""
        left_out = ("bookmark", "partial", "report", "scan", "_pickled_kept")
        state = {name: value for name, value in self.__dict__.items() if name not in left_out}
        if self._pickled_kept:
            state["kept"] = self._pickled_kept
        return (type(self), self.args, state)


class ConfigError(SitelineError, ValueError):
    """A setting is wrong: correct it. No request was made.

    >>> sandbox.client(http=siteline.types.Http(tries=0))
    Traceback (most recent call last):
        ...
    siteline.errors.ConfigError: tries=0 is not a whole number of 1 or more.
    """


class CredentialError(ConfigError):
    """The private key, its file, its passphrase or the signer is wrong. No request was made.

    >>> siteline.Credential("subject", "missing.pem")
    Traceback (most recent call last):
        ...
    siteline.errors.CredentialError: The private key file "missing.pem" does not exist....
    """


class QueryError(ConfigError):
    """The query is wrong: bounds, interval, page size, filters. No request was made.

    >>> client.scan(site="S1", start="2026-11-01T00:00")
    Traceback (most recent call last):
        ...
    siteline.errors.QueryError: start="2026-11-01T00:00" has no time zone.
    ...
    """


class TransportError(SitelineError, ConnectionError):
    """The connection failed at every attempt.

    An attempt that sent any byte of a request counts against the allowance.

    >>> sandbox.close()
    >>> sandbox.client(tries=1).discover()
    Traceback (most recent call last):
        ...
    siteline.errors.TransportError: no connection to 127.0.0.1:...: connection refused
    check the host and port in base_url=, the network, and that the service is running
    """


class TransportTimeout(TransportError, TimeoutError):
    """Every attempt exceeded a time limit.

    >>> sandbox.fault(on="data", hang=True)
    >>> impatient = sandbox.client(response_timeout=0.01, tries=1)
    >>> try:
    ...     impatient.scan(site="S1", start="2026-11-01").collect()
    ... except siteline.errors.TransportTimeout as error:
    ...     print(error.phase)
    response
    """

    phase: str | None = None
    """``"connect"``, ``"response"``, ``"body"`` or ``"page"`` (all attempts together)."""


class TlsError(TransportError):
    """The TLS handshake failed, and was not retried. The hint names the settings to look at."""


class ProxyError(TransportError):
    """The proxy refused the connection or failed."""


class AgentUnavailable(TransportError):
    """The agent of ``SITELINE_AGENT`` or ``agent=`` does not answer; no request was sent.

    It has the key and the count, so nothing continues without it. The client retries for a moment.

    >>> address = f"unix:/nowhere#{client.base_url}#subject"
    >>> lost = siteline.Client(client.base_url, agent=address)
    >>> try:
    ...     lost.discover()
    ... except siteline.errors.AgentUnavailable as error:
    ...     print(error.hint)
    The agent holds the key and counts the requests. Start it again ...
    """


class TruncatedBody(TransportError):
    """The connection closed before the end of the reply, at every attempt."""


class ProtocolError(SitelineError, ValueError):
    """The reply does not conform to the interface. It was not used, but its request counts.

    >>> sandbox.fault(on="data", drop=["nextCursor"])
    >>> try:
    ...     scan.collect()
    ... except siteline.errors.ProtocolError as error:
    ...     print(error.path)
    $.nextCursor
    """

    path: str | None = None
    """The place in the JSON body, as ``$.series[3].points[0].value``."""


class BodyTooLarge(ProtocolError):
    """The decoded reply is longer than ``max_body_bytes``: ask for smaller pages.

    >>> small = sandbox.client(max_body_bytes=1_000)
    >>> small.scan(site="S1", start="2026-11-01", interval="1h").collect()
    Traceback (most recent call last):
        ...
    siteline.errors.BodyTooLarge: the body of the reply is larger than 1000 bytes
    ...
    """


class CursorLoop(ProtocolError):
    """The service repeated a cursor, so the chain would never end.

    >>> sandbox.fault(on="data", repeat_cursor=True, skip=1)
    >>> scan.collect()
    Traceback (most recent call last):
        ...
    siteline.errors.CursorLoop: The service sent cursor#... again after 1 page...
    """


class EndlessChain(ProtocolError):
    """The service sent ever new cursors without a new point.

    The chain has ten times the expected pages (at least 100, or 1,024 without an estimate). The
    last tenth of them, at least 100, contained no new point of the range. ``max_pages=`` replaces
    this rule. A sync skips the range for a day.

    >>> sandbox.fault(on="data", times=2_000, skip=1, empty_page=True)
    >>> scan.collect()
    Traceback (most recent call last):
        ...
    siteline.errors.EndlessChain: The chain does not end: ...
    """


class RedirectRefused(ProtocolError):
    """The service replied with a redirect, which is never followed: correct ``base_url``.

    >>> sandbox.fault(on="data", status=302, headers={"Location": "https://elsewhere.example.com"})
    >>> scan.collect()
    Traceback (most recent call last):
        ...
    siteline.errors.RedirectRefused: the service replied with 302, a redirect to https://elsewhere...
    """


class ServiceError(SitelineError):
    """The service answered with an error status.

    >>> try:
    ...     client.scan(site="S1", start=None, filters={"colour": "red"}).collect()
    ... except siteline.errors.ServiceError as error:
    ...     print(error.status, error.code, error.detail)
    400 invalid_request unknown parameter "colour"
    """

    status: int | None = None
    """The HTTP status of the reply."""
    code: str | None = None
    """The member ``error`` of the reply, such as ``invalid_client``."""
    detail: str | None = None
    """The service's explanation, cut and escaped."""


class AuthenticationError(ServiceError):
    """The credential, the assertion or the access token was refused.

    >>> sandbox.revoke(client.subject)
    >>> try:
    ...     client.discover()
    ... except siteline.errors.AuthenticationError as error:
    ...     print(error.hint.split(":")[0])
    The service does not report which check failed
    """


class ClockSkewError(AuthenticationError):
    """The assertion was refused, and the clocks differ: set this machine's clock."""

    skew_seconds: float | None = None
    """Service clock minus this machine's clock, in seconds."""


class ScopeError(ServiceError, PermissionError):
    """A scope was refused or not granted: ask an administrator for it, or do not request it.

    >>> sandbox.fault(on="token", grant=["customer.discovery.read"])
    >>> try:
    ...     scan.collect()
    ... except siteline.errors.ScopeError as error:
    ...     print(error.missing)
    ('customer.data.read',)
    """

    missing: tuple[str, ...] = ()
    """The scopes that were requested and not granted."""


class RequestRejected(ServiceError):
    """The service refused this request, and would refuse it again."""


class CursorRejected(RequestRejected):
    """The service refused a cursor: read the range again from the start.

    >>> sandbox.fault(on="data", forget_cursors=True, nth=2)
    >>> try:
    ...     table = scan.collect()
    ... except siteline.errors.CursorRejected:
    ...     table = scan.collect()                                  # again, from the start
    >>> table.report.pages
    3
    """


class RateLimited(ServiceError):
    """Too many requests. Nothing was read; call again at ``retry_at``.

    >>> sandbox.fault(on="data", status=429, retry_after=600)
    >>> try:
    ...     scan.collect()
    ... except siteline.errors.RateLimited as error:
    ...     print(error.retry_at)
    2026-11-20 00:10:00+00:00
    """

    retry_at: datetime | None = None
    """When the service accepts requests again (UTC)."""


class AllowanceExhausted(RateLimited):
    """The daily allowance is used up, as the service or the ledger says.

    >>> frugal = sandbox.client(daily_allowance=2)
    >>> scan = frugal.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
    ...                    interval="1h", page_size=30)
    >>> try:
    ...     scan.collect()
    ... except siteline.errors.AllowanceExhausted as error:
    ...     print(error.retry_at, error.bookmark, error.partial)
    2026-11-21 00:00:00+00:00 <Bookmark after 2 pages> <Table 60 points, 10 series, 2 pages>
    """


class ServiceUnavailable(ServiceError):
    """The service failed at every attempt. Each one counts against the allowance."""


class DeadlineExceeded(SitelineError, TimeoutError):
    """The deadline of the call passed."""

    hint: str | None = "Give deadline= more time."
    """What to do now."""


class PageLimitReached(SitelineError):
    """The read has more pages than ``max_pages``. Its pages are kept.

    >>> try:
    ...     client.read(site="S1", start="2026-11-01", end="2026-11-02", interval="1m", max_pages=2)
    ... except siteline.errors.PageLimitReached as error:
    ...     print(error.partial)
    <Table 2000 points, 2 series, 2 pages>
    """


class StoreError(SitelineError):
    """The store could not be opened, read or written, or has no such feed.

    A sync opens its store before its first request. Applied pages stay.

    >>> siteline.Store("plant.siteline").coverage("line-9")
    Traceback (most recent call last):
        ...
    siteline.errors.StoreError: the store ...plant.siteline has no feed "line-9"
    It has no feeds yet: client.sync(feed, store) adds one.
    """


class StoreBusy(StoreError):
    """Another sync, of any process, has locked the feed. No request was made: call again later."""


class StoreFull(StoreError, OSError):
    """No space is left for the store. Applied pages stay: free some space, and sync again."""


class StoreCorrupt(StoreError):
    """The store's file is damaged. None of its data is returned.

    Restore a copy of :meth:`Store.backup` with ``siteline store restore``, or use a new store.
    """


class FeedChanged(StoreError):
    """The store has another definition of a feed with this name. No request was made.

    Choose another name for the new feed, or use :meth:`Store.redefine`.
    """


class UnreadRange(StoreError):
    """A part of the range was never read from the service, so points would be missing.

    :meth:`Client.sync` reads such parts; ``unread="warn"`` omits them.

    >>> store = siteline.Store("plant.siteline")
    >>> feed = siteline.Feed("plant", site="S1", interval="1h", start="2026-11-18T00:00Z")
    >>> report = client.sync(feed, store)
    >>> try:
    ...     frame = store.read(feed, "2026-11-17T00:00Z", "2026-11-19T00:00Z").to_pandas()
    ... except siteline.errors.UnreadRange as error:
    ...     print(*(start.isoformat() for start, end in error.spans))
    2026-11-17T00:00:00+00:00
    """

    spans: tuple[tuple[datetime, datetime], ...] = ()
    """The unread parts: (start, end) pairs in UTC."""


class BookmarkError(SitelineError, ValueError):
    """The bookmark was edited, or is of another query, host or subject.

    >>> siteline.types.Bookmark.from_bytes(b"edited")
    Traceback (most recent call last):
        ...
    siteline.errors.BookmarkError: This is not a siteline bookmark.
    """


class ClosedError(SitelineError, RuntimeError):
    """The client, store, sandbox or event loop was closed.

    >>> client.close()
    >>> client.discover()
    Traceback (most recent call last):
        ...
    siteline.errors.ClosedError: the client is closed
    What was closed stays closed: make a new one...
    """

    hint: str | None = (
        "What was closed stays closed: make a new one. The end of a `with` block closes it: use it "
        "inside."
    )
    """What to do now."""


class ForkError(SitelineError, RuntimeError):
    """An iterator that was open at a fork was used in the child: make a new one there."""


class InternalError(SitelineError, RuntimeError):
    """A bug in siteline: please report it. The client can still be used."""
