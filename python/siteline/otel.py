"""Traces and counts the requests of clients with OpenTelemetry: ``pip install siteline[otel]``.

>>> import siteline.otel
>>> siteline.otel.instrument()      # all clients of this process, made before or later
>>> siteline.otel.uninstrument()

Each attempt becomes a client span by OpenTelemetry's conventions for HTTP. Its parent is the span
that was current at the call. The span is created after the attempt has ended, so the header
``traceparent`` names the caller's span, and the service's spans are siblings of the attempt's span.
Attributes contain no query, and so no cursor. Token requests are traced too.
"""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from siteline import __version__, _doors
from siteline._keywords import strict
from siteline.client import Client

try:
    from opentelemetry import metrics, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as _missing:
    raise ImportError(
        "siteline.otel needs the package opentelemetry-api: pip install siteline[otel]",
        name="opentelemetry",
    ) from _missing

if TYPE_CHECKING:
    from siteline.aio import AsyncClient
    from siteline.types import RequestEvent

    _Attributes: TypeAlias = dict[str, str | int]
    _Counted: TypeAlias = Callable[["_Tally"], tuple[_Attributes, int | None]]
    _Observations: TypeAlias = list[metrics.Observation]

__all__ = ["instrument", "uninstrument"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# The buckets of OpenTelemetry's conventions for HTTP.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_PROPAGATOR = TraceContextTextMapPropagator()


@strict
def instrument(
    client: Client | AsyncClient | None = None,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> None:
    """Trace and count the requests of a client, or of all clients of this process.

    A client with its own instrumentation is excluded from the instrumentation of all clients. A
    second call replaces the first.

    Args:
        client: The client. ``None`` is for all clients of this process, made before or later.
        tracer_provider: The provider for spans. By default the global one.
        meter_provider: The provider for metrics. By default the global one.

    Spans have the attributes of the conventions for HTTP, and ``siteline.request.kind``,
    ``siteline.feed``, ``siteline.points``, ``siteline.retry.reason`` and ``siteline.retry.wait``.

    | metric | counts |
    |---|---|
    | ``http.client.request.duration`` | seconds of each attempt, by the conventions |
    | ``siteline.requests`` | attempts, by ``siteline.request.kind`` and status |
    | ``siteline.exchanges`` | access tokens that were issued |
    | ``siteline.pages`` | pages, by ``siteline.feed`` if a sync read them |
    | ``siteline.points`` | points on them, repeats included |
    | ``siteline.points.revised`` | points that a sync revised, by feed |
    | ``siteline.received`` | bytes of bodies, before decompression |
    | ``siteline.allowance.left`` | requests left today, if a limit is known |
    """
    _doors.instrument(client, _Instrument(tracer_provider, meter_provider))


@strict
def uninstrument(client: Client | AsyncClient | None = None) -> None:
    """End the instrumentation of :func:`instrument` with the same argument.

    Args:
        client: The client, or ``None`` for all clients.
    """
    _doors.instrument(client, None)


def _trace_headers() -> Mapping[str, str]:
    """Return the headers of a request that this thread makes now."""
    headers: dict[str, str] = {}
    _PROPAGATOR.inject(headers)
    return headers


class _Instrument:
    __slots__ = ("_meters", "_tracer", "revised")

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None,
        meter_provider: metrics.MeterProvider | None,
    ) -> None:
        self._tracer = trace.get_tracer("siteline", __version__, tracer_provider)
        self._meters = _meters_of(meter_provider or metrics.get_meter_provider())
        self.revised = self._meters.revise

    def request(self, note: RequestEvent) -> None:
        """Record a request, in the context of the call that sent it."""
        tally = self._meters.count(note)
        attributes: dict[str, Any] = {**tally.of_span, "http.response.body.size": note.bytes}
        if note.attempt > 1:
            attributes["http.request.resend_count"] = note.attempt - 1
            attributes["siteline.retry.reason"] = note.reason or ""
            attributes["siteline.retry.wait"] = note.waited
        if note.points is not None:
            attributes["siteline.points"] = note.points
        start = (note.started - _EPOCH) // _MICROSECOND * 1_000
        span = self._tracer.start_span(
            tally.name, kind=trace.SpanKind.CLIENT, attributes=attributes, start_time=start
        )
        if tally.error is not None:
            span.set_status(trace.StatusCode.ERROR)
        span.end(start + round(note.duration * 1e9))


class _Tally:
    """The counts and attributes of requests that differ only in time and size."""

    __slots__ = (
        *("address", "error", "kind", "name", "of_duration", "of_feed", "of_kind", "of_outcome"),
        *("of_span", "pages", "points", "received", "requests"),
    )

    def __init__(self, note: RequestEvent) -> None:
        url = urlsplit(note.url)
        self.kind, self.address = note.kind, url.hostname or ""
        self.name = f"{note.method} {url.path}"
        # A status is more precise than the class of its error.
        by_status = note.status is not None and note.status >= 400
        self.error = str(note.status) if by_status else note.error
        outcome = {"http.response.status_code": note.status, "error.type": self.error}
        port = url.port or (443 if url.scheme == "https" else 80)
        server: _Attributes = {"server.address": self.address, "server.port": port}
        self.of_duration = _known({"http.request.method": note.method, **server, **outcome})
        self.of_kind: _Attributes = {"siteline.request.kind": note.kind}
        self.of_feed = _known({"siteline.feed": note.feed})
        self.of_outcome = {**self.of_kind, **_known(outcome)}
        self.of_span = {**self.of_duration, "url.full": note.url, **self.of_kind, **self.of_feed}
        self.requests = self.received = self.pages = self.points = 0


def _known(attributes: dict[str, str | int | None]) -> _Attributes:
    return {name: value for name, value in attributes.items() if value is not None}


# For each metric the unit, the description, and the attributes and count of a tally.
_COUNTED: dict[str, tuple[str, str, _Counted]] = {
    "siteline.requests": (
        "{request}",
        "Attempts, repeats included.",
        lambda tally: (tally.of_outcome, tally.requests),
    ),
    "siteline.exchanges": (
        "{exchange}",
        "Access tokens issued.",
        lambda tally: ({}, tally.requests if tally.kind == "token" and not tally.error else None),
    ),
    "siteline.pages": ("{page}", "Pages read.", lambda tally: (tally.of_feed, tally.pages or None)),
    "siteline.points": (
        "{point}",
        "Points on pages, repeats included.",
        lambda tally: (tally.of_feed, tally.points if tally.pages else None),
    ),
    "siteline.received": (
        "By",
        "Bytes of bodies, before decompression.",
        lambda tally: (tally.of_kind, tally.received),
    ),
}


class _Meters:
    """The metrics. An export reads the counts."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[tuple[str, str, int | None, str | None, str | None], _Tally] = {}
        self._revised: defaultdict[str, int] = defaultdict(int)
        self._left: dict[str, int] = {}
        self._duration = meter.create_histogram(
            "http.client.request.duration",
            "s",
            "Duration of HTTP client requests.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        for name, (unit, description, counted) in _COUNTED.items():
            observe = partial(self._observed, counted)
            meter.create_observable_counter(name, [observe], unit, description)
        meter.create_observable_counter(
            "siteline.points.revised",
            [partial(self._observed_of, "siteline.feed", self._revised)],
            "{point}",
            "Points that a sync revised.",
        )
        meter.create_observable_gauge(
            "siteline.allowance.left",
            [partial(self._observed_of, "server.address", self._left)],
            "{request}",
            "Requests left today.",
        )

    def count(self, note: RequestEvent) -> _Tally:
        same = (note.kind, note.url, note.status, note.error, note.feed)
        tally = self._tallies.get(same)
        if tally is None:
            tally = _Tally(note)
        with self._lock:
            # Another thread may have created it.
            tally = self._tallies.setdefault(same, tally)
            tally.requests += 1
            tally.received += note.bytes
            if note.points is not None:
                tally.pages += 1
                tally.points += note.points
            if note.allowance_left is not None:
                self._left[tally.address] = note.allowance_left
        self._duration.record(note.duration, tally.of_duration)
        return tally

    def revise(self, feeds: Sequence[tuple[str, int]]) -> None:
        with self._lock:
            for feed, points in feeds:
                self._revised[feed] += points

    def _observed(self, counted: _Counted, _: metrics.CallbackOptions) -> _Observations:
        with self._lock:
            all_counts = [counted(tally) for tally in self._tallies.values()]
        sums: defaultdict[tuple[tuple[str, Any], ...], int] = defaultdict(int)
        for attributes, count in all_counts:
            if count is not None:
                sums[tuple(attributes.items())] += count
        return [metrics.Observation(count, dict(attributes)) for attributes, count in sums.items()]

    def _observed_of(
        self, name: str, counts: dict[str, int], _: metrics.CallbackOptions
    ) -> _Observations:
        with self._lock:
            known = list(counts.items())
        return [metrics.Observation(count, {name: of}) for of, count in known]


# One per provider, because a second one would register the same metric names.
_meters: weakref.WeakKeyDictionary[metrics.MeterProvider, _Meters] = weakref.WeakKeyDictionary()


def _meters_of(provider: metrics.MeterProvider) -> _Meters:
    known = _meters.get(provider)
    if known is None:
        meter = metrics.get_meter("siteline", __version__, provider)
        known = _meters[provider] = _Meters(meter)
    return known
