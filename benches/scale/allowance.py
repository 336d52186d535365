"""How many days a first fill takes with a daily allowance, and whether that is enough after it."""

from __future__ import annotations

from datetime import timedelta

from scale.count import Classified, Reading, midnight
from scale.plant import HISTORY, LINES, NOW, Cut, points, service

MOST_DAYS = 60
"""A first fill that takes longer is given up."""
HOLDS = 3
"""Days after the first fill in which every run must be complete."""


def fill_days(cut: Cut, page_size: int, reading: Reading, allowance: int) -> int | None:
    """Days until everything is read, by a part of the plant with the same part of the allowance.

    ``None`` where it is not read after :data:`MOST_DAYS`, or a later run is not complete.
    """
    series, page = cut.scaled(page_size)
    feeds = max(1, LINES // 100 // cut.lines)
    share = feeds * cut.lines * allowance // LINES
    start, minutes = NOW - timedelta(days=HISTORY + 1), (HISTORY + MOST_DAYS + 2) * 1_440
    frame = points(series, start, minutes, reading.interval)
    with service(frame, allowance=share, interval=reading.interval) as sandbox:
        client = sandbox.client(daily_allowance=share)
        plant = [reading.feed(f"feed {number}", page) for number in range(feeds)]
        target = Classified(planned=False)
        filled = None
        for run in range(MOST_DAYS * reading.runs):
            until = midnight(client) if reading.whole_days else None
            report = client.sync(plant, target, until=until)
            day = run // reading.runs + 1
            if filled is None and report.complete:
                filled = day
            # The day in which the fill ends has what the fill left.
            if filled is not None and day > filled and not report.complete:
                return None
            if filled is not None and day == filled + HOLDS:
                return filled
            sandbox.clock.advance(reading.every)
    return None
