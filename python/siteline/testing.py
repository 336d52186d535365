"""For tests of your own code: two pytest fixtures, and the classes around
:class:`siteline.Sandbox`.

If siteline is installed, pytest loads the fixtures without an import (entry point ``pytest11``)::

    def test_my_report(siteline_client):
        scan = siteline_client.scan(site="S1", line="L2", interval="1h",
                                    start="2026-11-01T00:00Z", end="2026-11-02T00:00Z")
        assert my_report(scan.to_pandas()).shifts == 3

    @pytest.mark.siteline_sandbox(seed=3, daily_allowance=2)
    def test_my_report_stops_when_the_allowance_is_spent(siteline_sandbox, siteline_client):
        ...
        assert siteline_sandbox.stats.data_requests == 2

The mark ``siteline_sandbox`` accepts the keywords of :class:`siteline.Sandbox`. Each test has its
own sandbox. A run without these fixtures does not load siteline.
"""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from siteline._core import ClockHandle
from siteline._handles import OfThisProcess
from siteline._keywords import strict
from siteline._records.record import FrozenRecord
from siteline._times import iso

if TYPE_CHECKING:
    from _siteline_pytest import siteline_client, siteline_sandbox

    from siteline._core import _Duration, _Instant

__all__ = [
    "NOW",
    "Clock",
    "SandboxRequest",
    "SandboxStats",
    "Variant",
    "siteline_client",
    "siteline_sandbox",
]

NOW = "2026-11-20T00:00:00Z"
"""The time of ``siteline_sandbox`` at the start of a test, so that every run is the same."""


class Clock(OfThisProcess):
    """A clock that a test moves instead of waiting.

    A sandbox and its clients share one clock: ``sandbox.clock.advance("1d")`` moves them together.
    A pause before a retry moves the clock too, and takes no time.

    Args:
        start: The time until the clock is moved. Without it, the clock runs like the machine's.

    >>> from siteline.testing import Clock
    >>> clock = Clock("2026-11-08T00:00:00Z")
    >>> clock.advance("1d")
    >>> clock.now().isoformat()
    '2026-11-09T00:00:00+00:00'
    """

    _instead = "the clock belongs to this process"

    def __init__(self, start: "_Instant | None" = None) -> None:
        """Create a clock."""
        self._handle = ClockHandle(start)

    def now(self) -> datetime:
        """Return the time in UTC."""
        return self._handle.now()

    def advance(self, by: "_Duration") -> None:
        """Move the clock forward ``by`` a duration. Timers that wait for this time end."""
        self._handle.advance(by)

    def step(self, by: "_Duration") -> None:
        """Set the clock forward or back, as an administrator does. No time passes.

        Args:
            by: A duration. A negative number or ``timedelta`` sets the clock back.
        """
        self._handle.step(by)

    def machine(self, wall: "_Instant") -> "Clock":
        """Return the clock of a machine whose time is ``wall`` now.

        Time passes equally on both clocks; each has its own :meth:`step`.

        >>> from siteline.testing import Clock
        >>> clock = Clock("2026-11-08T00:00:00Z")
        >>> wrong = clock.machine("2000-01-01")
        >>> clock.advance("1d")
        >>> wrong.now().isoformat()
        '2000-01-02T00:00:00+00:00'
        """
        return Clock._over(self._handle.machine(wall))

    def _text(self) -> str:
        return f"<Clock {iso(self.now())}>"


@strict
@dataclass(frozen=True, kw_only=True, repr=False)
class Variant:
    """Limits and formats of a :class:`siteline.Sandbox` that the interface does not specify.

    The sandbox raises a :class:`ConfigError` for a wrong value.

    >>> from siteline.testing import Variant
    >>> variant = Variant(array="data", timestamps="epoch_ms", page_size=100)
    >>> with siteline.Sandbox(variant=variant) as sandbox:
    ...     table = sandbox.client().scan(site="S1", start="-1h", interval="1m").collect()
    ...     table.report.arrays
    ('data',)
    """

    page_size: int = 1_000
    """Items of a page if a request has no ``pageSize``; at most ``max_page_size``."""
    max_page_size: int = 10_000
    """Largest ``pageSize``."""
    interval: "_Duration" = "1m"
    """Bucket width if a request has none. Loaded data has its own."""
    max_interval: "_Duration" = "1d"
    """Largest bucket width."""
    max_range: "_Duration" = "366d"
    """Longest time range of a request."""
    array: str = "series"
    """Name of the top-level array."""
    timestamps: Literal["iso", "iso_offset", "iso_fraction", "epoch_s", "epoch_ms"] = "iso"
    """Format of timestamps."""
    order: Literal["series", "time"] = "series"
    """Order of points: by series and then time, or by time."""
    page_counts: Literal["points", "envelopes"] = "points"
    """What ``pageSize`` counts: points, or envelopes of up to ``envelope_points`` buckets."""
    envelope_points: int = 60
    """Most buckets of an envelope."""
    end_inclusive: bool = False
    """Whether a bucket that begins at ``to`` belongs to the range."""
    invalid_client_status: int = 401
    """Status of ``invalid_client``."""
    unavailable_status: int = 503
    """Status of ``temporarily_unavailable``."""
    error_body: Literal["oauth", "problem"] = "oauth"
    """Format of errors: OAuth, or ``application/problem+json``."""
    certificate_refusal: Literal["page", "alert"] = "page"
    """How a certificate is refused: with status 400 like nginx, or in the TLS handshake."""
    extra_members: bool = False
    """Adds members that the interface does not name."""
    integer_ids: bool = False
    """Writes machine, device and tag ids as numbers."""
    omit_nulls: bool = False
    """Omits null members of points."""
    omit_last_cursor: bool = False
    """Omits ``nextCursor`` on the last page instead of writing null."""
    spaced: bool = False
    """Writes JSON with spaces and line breaks."""

    def __repr__(self) -> str:
        """Show the fields that differ from their defaults."""
        usual = {one.name: one.default for one in fields(self)}
        changed = (f"{name}={one!r}" for name, one in vars(self).items() if one != usual[name])
        return f"Variant({', '.join(changed)})"


@dataclass(frozen=True)
class SandboxRequest(FrozenRecord):
    """One request to a :class:`siteline.Sandbox`, in :attr:`SandboxStats.log`."""

    at: datetime
    """When the reply was sent, by the clock of the sandbox."""
    method: str
    """The HTTP method."""
    path: str
    """The path."""
    query: str
    """The query string. Short hashes replace cursors and unknown parameters."""
    status: int
    """The HTTP status; 0 without a complete reply."""


@dataclass(frozen=True)
class SandboxStats(FrozenRecord):
    """Counts and logs of a sandbox since its start, in :attr:`siteline.Sandbox.stats`.

    >>> _ = scan.collect()
    >>> sandbox.stats.data_requests, sandbox.stats.requests["data"], sandbox.stats.refusals
    (3, {200: 3}, ())
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
    """Data requests by ISO date of the sandbox's clock."""
    points_sent: int
    """Points in data replies."""
    requests: dict[str, dict[int, int]]
    """Requests by endpoint (``"token"``, ``"discovery"``, ``"data"``, ``"other"``) and HTTP status.

    Status 0 is a request without a complete reply.
    """
    jtis: tuple[str, ...]
    """The ``jti`` of each assertion, in order."""
    refusals: tuple[str, ...]
    """The reasons of the last 10,000 refusals, which replies do not contain."""
    user_agents: tuple[str, ...]
    """The ``User-Agent`` headers, sorted."""
    log: tuple[SandboxRequest, ...]
    """The last 10,000 requests, in order."""


def pytest_configure(config: Any) -> None:
    """Register the mark, for ``pytest -p siteline.testing``."""
    import _siteline_pytest

    _siteline_pytest.pytest_configure(config)


# The fixtures import pytest, which the rest of this module does not need.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in ("siteline_client", "siteline_sandbox"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        import _siteline_pytest

        return getattr(_siteline_pytest, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
