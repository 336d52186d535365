"""What a page costs more where its request is told: to a callable, and to OpenTelemetry."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from speed.outcome import Figures, timed
from speed.service import ours

PAGES = 500
"""Pages of ``tiny500``, of ten points: what a read costs itself hides nothing."""
RUNS = 41
"""Reads of each kind, in turn."""


def on_request() -> Figures:
    """A callable that keeps the notes."""
    notes: list[Any] = []
    client, scan = ours(on_request=notes.append)
    figures = _compared(scan)
    if len(notes) < PAGES * RUNS:
        raise RuntimeError(f"{len(notes)} requests were told")
    client.close()
    return figures


def otel() -> Figures:
    """Spans and counts of the SDK, without an exporter."""
    import siteline.otel

    tracers, meters = _providers()
    client, scan = ours()
    siteline.otel.instrument(client, tracer_provider=tracers, meter_provider=meters)
    return _compared(scan)


def sdk() -> Figures:
    """The least that OpenTelemetry's conventions ask for: a constant span, and one duration."""
    from opentelemetry.trace import SpanKind

    tracers, meters = _providers()
    tracer = tracers.get_tracer("speed")
    duration = meters.get_meter("speed").create_histogram("http.client.request.duration", "s")
    of_duration = {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "server.address": "127.0.0.1",
        "server.port": 80,
    }
    of_span = {**of_duration, "url.full": "http://127.0.0.1/api/customer/v1/data"}

    def record(_: Any) -> None:
        tracer.start_span("GET", kind=SpanKind.CLIENT, attributes=of_span, start_time=1).end(2)
        duration.record(0.01, of_duration)

    _, scan = ours(on_request=record)
    return _compared(scan)


def _providers() -> tuple[Any, Any]:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider

    return TracerProvider(), MeterProvider([InMemoryMetricReader()])


def _compared(told: Callable[[str], Any]) -> Figures:
    """Microseconds of processor time that a page costs more than by a client that tells nobody."""
    _, untold = ours()
    more = []
    for _ in range(RUNS):
        on, off = (timed(scan("tiny500").to_pandas)[1]["cpu"] for scan in (told, untold))
        more.append(on - off)
    return {"microseconds": statistics.median(more) / PAGES * 1e6}
