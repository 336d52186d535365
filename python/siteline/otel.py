"""Traces and counts the requests of clients with OpenTelemetry: ``pip install siteline[otel]``.

>>> import siteline.otel
>>> siteline.otel.instrument()      # all clients of this process, made before or later
>>> siteline.otel.uninstrument()

Each attempt becomes a client span by OpenTelemetry's conventions for HTTP, with the times at which
it began and ended, under the span that was current when its call was made. Spans are made with the
page, on the thread that waits for it: an attempt has no span of its own while it is under way. So
the header ``traceparent`` that it sends names the caller's span, and what the service records
stands beside the attempt, both below that span. No attribute has a query, and with it no cursor.

Token requests are traced likewise. The header names a trace and a span, and nothing else.
"""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from siteline import _siteline
from siteline._siteline import Client

try:
    from opentelemetry import metrics, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as _missing:
    raise ImportError(
        "siteline.otel needs the package opentelemetry-api: pip install siteline[otel]",
        name="opentelemetry",
    ) from _missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from siteline.aio import AsyncClient
    from siteline.notes import RequestNote

__all__ = ["instrument", "uninstrument"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Those of OpenTelemetry's conventions for HTTP.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_COUNTED = {
    "siteline.requests": ("{request}", "Attempts, repeats included."),
    "siteline.exchanges": ("{exchange}", "Access tokens issued."),
    "siteline.pages": ("{page}", "Pages read."),
    "siteline.points": ("{point}", "Points on them, repeats included."),
    "siteline.points.revised": ("{point}", "Points to which a sync gave other values."),
    "siteline.received": ("By", "Bytes of bodies, as they came."),
}
_Counts: TypeAlias = dict[tuple[tuple[str, str | int | None], ...], int]
_PROPAGATOR = TraceContextTextMapPropagator()


def instrument(
    client: Client | AsyncClient | None = None,
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> None:
    """Trace and count the requests of a client; without one, of all clients of this process.

    A client that has its own instrumentation is not told to that of all. The providers are those
    that are given, else the global ones. Called again, it replaces what was there.

    Spans have the attributes of the conventions for HTTP, and ``siteline.request.kind``,
    ``siteline.feed``, ``siteline.points``, ``siteline.retry.reason`` and ``siteline.retry.wait``.

    | metric | counts |
    |---|---|
    | ``http.client.request.duration`` | seconds of each attempt, by the conventions |
    | ``siteline.requests`` | attempts, by ``siteline.request.kind`` and status |
    | ``siteline.exchanges`` | access tokens that were issued |
    | ``siteline.pages`` | pages, by ``siteline.feed`` where a sync read them |
    | ``siteline.points`` | points on them, repeats included |
    | ``siteline.points.revised`` | points to which a sync gave other values, by feed |
    | ``siteline.received`` | bytes of bodies, as they came |
    | ``siteline.allowance.left`` | requests left today, where a limit is known |
    """
    made = _Instrument(tracer_provider, meter_provider)
    if client is None:
        _siteline._instrument(made)
    else:
        _core(client)._instrument(made)


def uninstrument(client: Client | AsyncClient | None = None) -> None:
    """End what :func:`instrument` with the same argument began."""
    if client is None:
        _siteline._instrument(None)
    else:
        _core(client)._instrument(None)


def _core(client: Client | AsyncClient) -> Client:
    return client if isinstance(client, Client) else client._client


def _trace_headers() -> Mapping[str, str]:
    """Return the headers of a request that this thread makes now."""
    headers: dict[str, str] = {}
    _PROPAGATOR.inject(headers)
    return headers


class _Instrument:
    """What the core tells of requests."""

    __slots__ = ("_meters", "_places", "_tracer")

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None,
        meter_provider: metrics.MeterProvider | None,
    ) -> None:
        version = _siteline.__version__
        self._tracer = trace.get_tracer("siteline", version, tracer_provider)
        self._meters = _meters_of(meter_provider or metrics.get_meter_provider())
        # What follows from an address, which a client has three of.
        self._places: dict[str, _Place] = {}

    def request(self, note: RequestNote) -> None:
        """Record one request, in the context of the call that sent it."""
        place = self._places.get(note.url)
        if place is None:
            place = self._places[note.url] = _Place(note)
        error = _error_type(note)
        self._span(note, place, error)
        self._meters.request(note, place, error)

    def revised(self, feeds: Sequence[tuple[str, int]]) -> None:
        """Record how many points of each feed a sync has revised."""
        self._meters.revise(feeds)

    def _span(self, note: RequestNote, place: _Place, error: str | None) -> None:
        start = (note.started - _EPOCH) // _MICROSECOND * 1_000
        attributes = {**place.span, "http.response.body.size": note.bytes}
        if note.status is not None:
            attributes["http.response.status_code"] = note.status
        if error is not None:
            attributes["error.type"] = error
        if note.attempt > 1:
            attributes["http.request.resend_count"] = note.attempt - 1
            attributes["siteline.retry.reason"] = note.reason or ""
            attributes["siteline.retry.wait"] = note.waited
        if note.feed is not None:
            attributes["siteline.feed"] = note.feed
        if note.points is not None:
            attributes["siteline.points"] = note.points
        span = self._tracer.start_span(
            place.name, kind=trace.SpanKind.CLIENT, attributes=attributes, start_time=start
        )
        if error is not None:
            span.set_status(trace.StatusCode.ERROR)
        span.end(start + round(note.duration * 1e9))


class _Place:
    """What the conventions say of an address."""

    __slots__ = ("common", "name", "span")

    def __init__(self, note: RequestNote) -> None:
        address = urlsplit(note.url)
        port = address.port or (443 if address.scheme == "https" else 80)
        self.name = f"{note.method} {address.path}"
        self.common: dict[str, Any] = {
            "http.request.method": note.method,
            "server.address": address.hostname or "",
            "server.port": port,
        }
        self.span = {
            **self.common,
            "url.full": note.url,
            "siteline.request.kind": note.kind,
        }


class _Meters:
    """The metrics. Counts are kept here, and read when they are exported."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, _Counts] = {name: defaultdict(int) for name in _COUNTED}
        self._left: _Counts = {}
        self._duration = meter.create_histogram(
            "http.client.request.duration",
            "s",
            "Duration of HTTP client requests.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        for name, (unit, description) in _COUNTED.items():
            observe = partial(self._observed, self._counts[name])
            meter.create_observable_counter(name, [observe], unit, description)
        meter.create_observable_gauge(
            "siteline.allowance.left",
            [partial(self._observed, self._left)],
            "{request}",
            "Requests left today.",
        )

    def request(self, note: RequestNote, place: _Place, error: str | None) -> None:
        """Count one request."""
        attributes = place.common
        if note.status is not None:
            attributes = {**attributes, "http.response.status_code": note.status}
        if error is not None:
            attributes = {**attributes, "error.type": error}
        self._duration.record(note.duration, attributes)
        of_kind = (("siteline.request.kind", note.kind),)
        of_status = (("http.response.status_code", note.status), ("error.type", error))
        counts = self._counts
        with self._lock:
            counts["siteline.requests"][*of_kind, *of_status] += 1
            counts["siteline.received"][of_kind] += note.bytes
            if note.kind == "token" and error is None:
                counts["siteline.exchanges"][()] += 1
            if note.points is not None:
                of_feed = (("siteline.feed", note.feed),)
                counts["siteline.pages"][of_feed] += 1
                counts["siteline.points"][of_feed] += note.points
            if note.allowance_left is not None:
                self._left[(("server.address", place.common["server.address"]),)] = (
                    note.allowance_left
                )

    def revise(self, feeds: Sequence[tuple[str, int]]) -> None:
        """Count revised points."""
        with self._lock:
            for feed, points in feeds:
                self._counts["siteline.points.revised"][(("siteline.feed", feed),)] += points

    def _observed(self, counts: _Counts, _: metrics.CallbackOptions) -> list[metrics.Observation]:
        with self._lock:
            known = list(counts.items())
        return [
            metrics.Observation(
                count, {name: value for name, value in attributes if value is not None}
            )
            for attributes, count in known
        ]


# One for each provider: a second one would count under the same names.
_meters: weakref.WeakKeyDictionary[metrics.MeterProvider, _Meters] = weakref.WeakKeyDictionary()


def _meters_of(provider: metrics.MeterProvider) -> _Meters:
    known = _meters.get(provider)
    if known is None:
        meter = metrics.get_meter("siteline", _siteline.__version__, provider)
        known = _meters[provider] = _Meters(meter)
    return known


def _error_type(note: RequestNote) -> str | None:
    """Return ``error.type``: a status says more than the class of the error that it became."""
    if note.status is not None and note.status >= 400:
        return str(note.status)
    return note.error
