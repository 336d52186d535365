"""The keys of the dicts that siteline returns.

Each is a plain ``dict`` at run time; the classes here declare the keys and the types of their
values for type checkers.
"""

# Without `from __future__ import annotations`: Python needs the annotations as objects to find at
# run time which keys are optional.
from datetime import datetime
from typing import Literal, TypedDict

__all__ = [
    "AgentAllowanceDict",
    "AgentStateDict",
    "AllowanceDict",
    "CatalogueReport",
    "CheckDict",
    "DiagnosisDict",
    "FeedReportDict",
    "PublicJwk",
    "SandboxRequest",
    "SandboxStats",
    "ScanReport",
    "SetAsideDict",
    "SyncReportDict",
    "TaskDict",
]


class ScanReport(TypedDict):
    """:attr:`Scan.report`: what in a query may mean something else than it seems.

    - ``bounds_off_grid``: ``"start"``, ``"end"``: the bounds that lie within a bucket, so that the
      buckets given do not begin or end there. The grid is the multiples of the interval in UTC
    - ``not_listed``: ids of the query that the service does not list, such as ``'line "L9"'``, by
      the newest ``discover()`` of the client; empty before it, and where its body, which the
      interface does not show (§4.2), has no ids that siteline recognises

    >>> scan.report["bounds_off_grid"]
    []
    >>> resources = client.discover()
    >>> client.scan(site="S1", line="L9", start="2026-11-01", interval="1h").report["not_listed"]
    ['line "L9"']
    """

    bounds_off_grid: list[Literal["start", "end"]]
    """The bounds that lie within a bucket."""
    not_listed: list[str]
    """Ids of the query that the service does not list."""


class PublicJwk(TypedDict):
    """A public key as a JSON Web Key, for enrollment (§2.1). It is not secret.

    - ``kty``, ``alg``, ``use``: ``"RSA"``, ``"RS256"``, ``"sig"``
    - ``n``, ``e``: modulus and exponent, unsigned, big-endian, base64url
    - ``kid``: the RFC 7638 thumbprint of the key

    >>> jwk: siteline.PublicJwk = siteline.PrivateKey.generate(2048).public_jwk
    >>> jwk["kty"], jwk["alg"], jwk["use"], jwk["e"]
    ('RSA', 'RS256', 'sig', 'AQAB')
    """

    kty: str
    """The key's type: ``"RSA"``."""
    n: str
    """The modulus: unsigned, big-endian, base64url."""
    e: str
    """The public exponent: unsigned, big-endian, base64url."""
    kid: str
    """The RFC 7638 thumbprint: SHA-256, base64url."""
    alg: str
    """The signature algorithm: ``"RS256"``."""
    use: str
    """The use of the key: ``"sig"``."""


class AllowanceDict(TypedDict):
    """The daily allowance in :meth:`SyncReport.to_dict`: the members of :class:`Allowance`.

    - ``used``, ``limit``, ``left``: requests of the day; ``limit`` and ``left`` are ``None`` where
      no limit is known (§8)
    - ``resets_at``: when the count is reset, ISO 8601 text in UTC

    >>> feed = siteline.Feed("line-2", site="S1", interval="1h", since="2026-11-19T00:00Z")
    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> allowance: siteline.AllowanceDict = report.to_dict()["allowance"]
    >>> allowance["limit"], allowance["resets_at"]
    (None, '2026-11-21T00:00:00Z')
    """

    used: int
    """Requests counted today."""
    limit: int | None
    """Requests a day; ``None`` where no limit is known."""
    left: int | None
    """Requests left today; ``None`` where no limit is known."""
    resets_at: str
    """When the count is reset: ISO 8601 text in UTC."""


class AgentAllowanceDict(AllowanceDict):
    """The daily allowance in :class:`AgentStateDict`, with the token requests (§5.4).

    >>> with siteline.Agent(client) as agent:
    ...     allowance: siteline.AgentAllowanceDict = agent.state["allowance"]
    ...     allowance["token_requests"]
    0
    """

    token_requests: int
    """Token requests of the day."""
    token_requests_this_hour: int
    """Token requests of the hour."""


class AgentStateDict(TypedDict):
    """What an :class:`Agent` tells of itself, in :attr:`Agent.state`.

    - ``base_url``, ``subject``, ``scopes``: what its tokens are for
    - ``allowance``: as it counts, the pages that it granted included
    - ``lent``: pages that were granted, and of which it has not heard what became of them
    - ``leases``: how often pages or a token were granted
    - ``version``: that of siteline

    >>> with siteline.Agent(client) as agent:
    ...     state: siteline.AgentStateDict = agent.state
    ...     state["lent"], state["allowance"]["used"]
    (0, 0)
    """

    base_url: str
    """The address of the service."""
    subject: str
    """The subject of the credential."""
    scopes: str
    """The scopes that may be asked for, separated by spaces."""
    allowance: AgentAllowanceDict
    """The count, the pages that were granted included."""
    lent: int
    """Pages that were granted and not reported yet."""
    leases: int
    """Leases that were granted since the start."""
    version: str
    """The version of siteline."""


class TaskDict(TypedDict):
    """A :class:`Task` in :meth:`SyncReport.to_dict`: its fields, times as ISO 8601 text in UTC.

    >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", page_size=50,
    ...                      since="2026-11-15T00:00Z")
    >>> frugal = sandbox.client(daily_allowance=2)
    >>> report = frugal.sync(feed, siteline.Store("plant.siteline"))
    >>> task: siteline.TaskDict = report.to_dict()["todo"][0]
    >>> task["feed"], task["why"]
    ('line-2', 'resume')
    """

    feed: str
    """The feed's name."""
    why: Literal["resume", "reread", "edge", "settle", "audit", "fill"]
    """Why it is read: see :class:`Task`."""
    start: str
    """The start of the range."""
    end: str
    """The end of the range."""
    pages: int | None
    """Expected pages; ``None`` where there is no estimate."""


class SetAsideDict(TypedDict):
    """A :class:`SetAside` in :meth:`SyncReport.to_dict`: its fields, times as ISO 8601 text.

    >>> feed = siteline.Feed("line-2", site="S1", interval="1h", since="2026-11-19T00:00Z")
    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> aside: list[siteline.SetAsideDict] = report.to_dict()["feeds"][0]["set_aside"]
    >>> aside
    []
    """

    start: str
    """The start, inclusive."""
    end: str
    """The end, exclusive."""
    until: str
    """When a sync tries it again by itself."""
    error: str
    """The class of the error that ended its last chain."""
    pages: int
    """The pages of that chain."""


class FeedReportDict(TypedDict):
    """A :class:`FeedReport` in :meth:`SyncReport.to_dict`: its fields, times as ISO 8601 text.

    >>> feed = siteline.Feed("line-2", site="S1", interval="1h", since="2026-11-19T00:00Z")
    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> done: siteline.FeedReportDict = report.to_dict()["feeds"][0]
    >>> done["name"], done["inserted"] > 0, done["read_through"]
    ('line-2', True, '2026-11-19T23:00:00Z')
    """

    name: str
    """The feed's name."""
    chains: int
    """Chains read to their end."""
    pages: int
    """Pages read."""
    inserted: int
    """Points that were new."""
    revised: int
    """Points that had other values, or were flagged."""
    unchanged: int
    """Points that had the same values."""
    flagged: int
    """Points that a complete read of their range no longer brought."""
    sequence: int
    """The number of the newest page."""
    settled_through: str | None
    """Everything from the feed's beginning up to this time is settled."""
    read_through: str | None
    """Everything from the feed's beginning up to this time was read."""
    newest: str | None
    """The newest instant that was read."""
    late: int
    """Points that audits found to come or change after the lateness."""
    set_aside: list[SetAsideDict]
    """Ranges that are not read for a day."""


class SyncReportDict(TypedDict):
    """:meth:`SyncReport.to_dict`: data for ``json.dumps``, with times as ISO 8601 text in UTC.

    Its keys are the members of :class:`SyncReport`; ``feeds`` is a list in the order given;
    ``todo`` and ``allowance`` are plain data too.

    >>> feed = siteline.Feed("line-2", site="S1", interval="1h", since="2026-11-19T00:00Z")
    >>> report = client.sync(feed, siteline.Store("plant.siteline"))
    >>> line: siteline.SyncReportDict = report.to_dict()
    >>> line["complete"], line["todo"], json.loads(json.dumps(line)) == line
    (True, [], True)
    """

    now: str
    """The time that the sync was planned for."""
    complete: bool
    """Whether everything planned has been read."""
    ended_by: Literal["allowance", "max_pages", "set_aside"] | None
    """Why something is left to read."""
    resumes_at: str | None
    """When to sync again, where the allowance ended the sync or ranges are set aside."""
    pages: int
    """Pages read."""
    inserted: int
    """Points that were new."""
    revised: int
    """Points that had other values, or were flagged."""
    unchanged: int
    """Points that had the same values."""
    flagged: int
    """Points that a complete read of their range no longer brought."""
    requests: int
    """Requests made, repeats included."""
    settled_through: str | None
    """All feeds are settled from their beginning up to this time."""
    read_through: str | None
    """All feeds have been read up to this time."""
    feeds: list[FeedReportDict]
    """What was done for each feed, in the order given."""
    todo: list[TaskDict]
    """What is left to read."""
    allowance: AllowanceDict
    """The daily allowance at the end."""


class SandboxRequest(TypedDict):
    """One request in ``sandbox.stats["log"]``, without tokens and cursors.

    - ``at``: when it was answered, by the sandbox's clock, an aware ``datetime`` in UTC
    - ``method``, ``path``, ``query``: as sent; in the query a cursor is replaced by a hash
    - ``status``: the HTTP status of the reply; 0 without a complete reply

    >>> _ = scan.collect()
    >>> request: siteline.SandboxRequest = sandbox.stats["log"][-1]
    >>> request["method"], request["path"], request["status"]
    ('GET', '/api/customer/v1/data', 200)
    """

    at: datetime
    """When it was answered, by the sandbox's clock (UTC)."""
    method: str
    """The HTTP method."""
    path: str
    """The path."""
    query: str
    """The query as sent, with a hash instead of a cursor."""
    status: int
    """The HTTP status; 0 without a complete reply."""


class SandboxStats(TypedDict):
    """:attr:`Sandbox.stats`: counts and logs of a sandbox since its start, over all clients.

    - ``token_requests``, ``tokens_issued``, ``discovery_requests``, ``data_requests``: counts,
      refused requests included
    - ``data_requests_by_day``: ISO date of the sandbox's clock to count
    - ``points_sent``: points in data replies
    - ``requests``: endpoint (``"token"``, ``"discovery"``, ``"data"``, and ``"other"`` for other
      paths) to HTTP status to count; status 0 is a request without a complete reply
    - ``jtis``: the ``jti`` of each assertion, in order
    - ``refusals``: why requests were refused, which the replies do not say; the last 10,000
    - ``user_agents``: the ``User-Agent`` headers, sorted
    - ``log``: a :class:`SandboxRequest` for each request, in order; the last 10,000

    >>> _ = scan.collect()
    >>> stats: siteline.SandboxStats = sandbox.stats
    >>> stats["data_requests"], stats["requests"]["data"], stats["refusals"]
    (3, {200: 3}, [])
    """

    token_requests: int
    """Requests to the token endpoint."""
    tokens_issued: int
    """Tokens issued."""
    discovery_requests: int
    """Requests to the discovery endpoint."""
    data_requests: int
    """Requests to the data endpoint."""
    data_requests_by_day: dict[str, int]
    """ISO date of the sandbox's clock to data requests."""
    points_sent: int
    """Points in data replies."""
    requests: dict[str, dict[int, int]]
    """Endpoint to HTTP status to count."""
    jtis: list[str]
    """The ``jti`` of each assertion, in order."""
    refusals: list[str]
    """Why requests were refused, in order."""
    user_agents: list[str]
    """The ``User-Agent`` headers, sorted."""
    log: list[SandboxRequest]
    """The requests, in order."""


class CheckDict(TypedDict):
    """A :class:`Check` of :meth:`Diagnosis.to_dict`.

    The attributes of the check, by their names.

    >>> check: siteline.CheckDict = siteline.doctor(client, offline=True).to_dict()["checks"][0]
    >>> check["id"], check["status"], check["do"]
    ('settings', 'ok', None)
    """

    id: str
    """Its name, which stays."""
    title: str
    """The same in words."""
    status: Literal["ok", "warn", "fail", "skipped"]
    """How it ended."""
    seen: str
    """What was seen, or why it was skipped."""
    do: str | None
    """What to do."""
    error: str | None
    """The class of the exception that a client raises for it, where it failed."""


class DiagnosisDict(TypedDict):
    """:meth:`Diagnosis.to_dict`: plain values.

    The attributes of the diagnosis, by their names; ``first_fail`` is the ``id`` of that check.

    >>> told: siteline.DiagnosisDict = siteline.doctor(client, offline=True).to_dict()
    >>> told["ok"], told["first_fail"], told["sends"]
    (True, None, 'nothing: it is offline')
    """

    ok: bool
    """Whether no check failed."""
    first_fail: str | None
    """The ``id`` of the first check that failed."""
    base_url: str | None
    """The address of the service."""
    subject: str | None
    """The subject of the credential."""
    sends: str
    """What it may send."""
    checks: list[CheckDict]
    """The checks, in the order of cause."""


class CatalogueReport(TypedDict):
    """What was found where in a discovery body: ``catalogue.report``.

    Paths are such as ``sites[].lines[].lineId``: ``[]`` stands for the items of a list, ``{}`` for
    the values of a mapping, whose names are ids.

    >>> report: siteline.CatalogueReport = client.series().report
    >>> report["listed"], report["series"], report["not_recognised"]
    (18, ['sites[].lines[].machines[].devices[].tags[]'], ['subject'])
    """

    listed: int
    """Series that discovery lists."""
    seen: int
    """Series that only data had."""
    seen_is_complete: bool
    """Whether the client remembers all series of its pages: at most 1,048,576."""
    repeated: int
    """Series that discovery lists again; the first one stands."""
    not_ended: bool
    """Whether the body has a cursor, so that it may be a part."""
    series: list[str]
    """Where the series are."""
    ids: dict[str, list[str]]
    """Where each of the five ids is, by the names of the columns."""
    names: list[str]
    """Where names are."""
    units: list[str]
    """Where units are."""
    not_recognised: list[str]
    """Members that are not in the catalogue."""
