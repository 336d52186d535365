"""What a page costs more where its request is told: to a callable, and to OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from speed.outcome import Figures, timed
from speed.service import ours

PAGES = 1_000
"""Pages of ``small``."""
RUNS = 5
"""Reads of each kind, one after the other; the fastest count."""


def on_request() -> Figures:
    """A callable that keeps the notes."""
    notes: list[Any] = []
    client, scan = ours(on_request=notes.append)
    figures = _compared(scan)
    if len(notes) < PAGES:
        raise RuntimeError(f"{len(notes)} requests were told")
    client.close()
    return figures


def otel() -> Figures:
    """Spans and counts of the SDK, without an exporter."""
    import siteline.otel
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider

    client, scan = ours()
    siteline.otel.instrument(
        client,
        tracer_provider=TracerProvider(),
        meter_provider=MeterProvider([InMemoryMetricReader()]),
    )
    return _compared(scan)


def _compared(told: Callable[[str], Any]) -> Figures:
    """Microseconds of processor time that a page costs more than by a client that tells nobody."""
    _, untold = ours()
    busy: dict[Callable[[str], Any], list[float]] = {told: [], untold: []}
    for _ in range(RUNS):
        for scan, seconds in busy.items():
            _, figures = timed(scan("small").to_pandas)
            seconds.append(figures["cpu"])
    on, off = map(min, busy.values())
    return {"microseconds": (on - off) / PAGES * 1e6}
