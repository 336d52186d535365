"""What may be read, and a small page of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from siteline._counts import counted
from siteline._doctor.seen import Seen, fail, ok, told, warn
from siteline._escape import escaped
from siteline._times import to_minute
from siteline.errors import ScopeError
from siteline.page import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from siteline._doctor.look import Look
    from siteline.types import ReadReport

__all__: list[str] = []

_SCOPE = "customer.discovery.read"
_MOST = 5
_UNUSUAL = {
    "numbers_as_text": "numbers as text",
    "values_missing": "points without a value",
    "minimum_above_maximum": "points with minimum above maximum",
    "value_outside_bounds": "points with a value outside its bounds",
    "negative_counts": "points with a negative sample count",
    "outside_range": "points outside the range",
}


def discovery(look: Look) -> Seen:
    """Whether the service lists what may be read (§4.2)."""
    listed, error = look.discovery()
    if isinstance(error, ScopeError) and _SCOPE not in look.handle.settings()["scopes"]:
        return warn(told(error), f"The scope {_SCOPE} is not asked for.")
    if error is not None:
        return fail(error)
    assert listed is not None
    assert not isinstance(listed, Page)
    return ok(f"it lists {_some(list(listed)) or 'nothing'}")


def data(look: Look) -> Seen:
    """Whether a page can be read."""
    page, error = look.page()
    start, end = look.hour()
    hour = f"from {to_minute(start)} to {to_minute(end)} UTC"
    if error is not None:
        return fail(error)
    assert isinstance(page, Page)
    if not len(page):
        return warn(f"a page without points {hour}", "Nothing was measured, or nothing is allowed.")
    report = page.report
    return ok(f"{counted(report.points, 'point')} of {report.series:,} series {hour}")


def shape(look: Look) -> Seen:
    """What the page looks like, where the interface leaves it open (§2.3)."""
    page, _ = look.page()
    assert isinstance(page, Page)
    report = page.report
    parts = [_found("array", report.arrays), _found("timestamps", report.timestamp_forms)]
    if report.unknown_members:
        parts.append(f"unknown members, which are left out: {_some(report.unknown_members)}")
    unusual = _unusual(report)
    seen = "; ".join(filter(None, parts)) or "nothing to see"
    return warn(f"{seen}; {unusual}", "Ask whoever runs the service.") if unusual else ok(seen)


def _found(what: str, names: Sequence[str]) -> str:
    return f"{what} {', '.join(names)}, found by its form" if names else ""


def _unusual(report: ReadReport) -> str:
    counts = {what: getattr(report, name) for name, what in _UNUSUAL.items()}
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


def _some(names: Sequence[str]) -> str:
    """Returns the first names from the service, truncated and escaped."""
    shown = [escaped(name[:60]) for name in names[:_MOST]]
    return ", ".join([*shown, *(["…"] if len(names) > _MOST else [])])
