"""A file for the textfile collector of Prometheus' node_exporter."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from siteline import _doors
from siteline._refusals import reason
from siteline.cli.exits import Exit
from siteline.cli.output import say

if TYPE_CHECKING:
    from siteline.types import Allowance, RequestEvent, SyncReport

_RUN = "siteline_sync_last_run_timestamp_seconds"
_SUCCESS = "siteline_sync_last_success_timestamp_seconds"
_SETTLED = "siteline_sync_settled_through_timestamp_seconds"
_READ = "siteline_sync_read_through_timestamp_seconds"
_SKIPPED = "siteline_sync_skipped_ranges"
_HELP = {
    _RUN: "When the last run ended, by this machine's clock.",
    _SUCCESS: "When the last complete run ended, by this machine's clock.",
    "siteline_sync_complete": "Whether the last run was complete (1) or not (0).",
    "siteline_sync_exit_status": "The exit status of the last run, before --skip-code.",
    "siteline_sync_requests": "Requests of the last run, repeats included.",
    "siteline_sync_pages": "Pages that the last run read.",
    "siteline_sync_http_requests": "Requests of the last run, by kind and by status or error.",
    "siteline_sync_exchanges": "Access tokens that the last run was issued.",
    "siteline_sync_received_bytes": "Bytes of bodies in the last run, before decompression.",
    "siteline_sync_points": "Points on the pages of the last run, repeats included.",
    "siteline_sync_points_inserted": "Points that were new in the last run.",
    "siteline_sync_points_revised": "Points that had other values in the last run.",
    "siteline_sync_points_unchanged": "Points that the last run read with the same values.",
    "siteline_sync_points_withdrawn": "Points that a later complete read did not contain.",
    _SETTLED: "Everything from the feed's beginning up to this time is settled.",
    _READ: "Everything from the feed's beginning up to this time was read.",
    _SKIPPED: "Ranges that are skipped for a day, because the service did not end their chains.",
    "siteline_allowance_used": "Requests counted today.",
    "siteline_allowance_limit": "Requests allowed a day.",
    "siteline_allowance_left": "Requests left today.",
    "siteline_allowance_resets_at": "When the count starts again, in seconds since 1970.",
}
_BEGIN = f"# HELP {_RUN} "
_KEPT = (_SETTLED, _READ, _SKIPPED)
"""Metrics that a run without this feed does not change."""
_LINE = re.compile(r'(\w+)\{store="((?:[^"\\]|\\.)*)"(?:,feed="((?:[^"\\]|\\.)*)")?\} (\S+)')


@dataclass
class RequestCounts:
    """Counts the requests of a client, as its ``on_request=``."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind and by status; without a reply, by the class of the error."""
    bytes: int = 0
    points: int = 0
    exchanges: int = 0

    def __call__(self, event: RequestEvent) -> None:
        """Counts one request."""
        status = str(event.error) if event.status is None else str(event.status)
        self.requests[event.kind, status] += 1
        self.bytes += event.bytes
        self.points += event.points or 0
        self.exchanges += event.kind == "token" and event.error is None


@dataclass
class RunFacts:
    """The facts of a run at its end. An unknown fact is ``None``."""

    status: int
    report: SyncReport | None = None
    allowance: Allowance | None = None
    names: Sequence[str] | None = None
    """The names of all feeds of the file."""
    requests: RequestCounts | None = None


class _Sample(NamedTuple):
    name: str
    feed: str | None
    """The name of the feed, escaped as in the file."""
    value: str
    labels: str = ""
    """More labels, each after a comma."""


class MetricsFile:
    """The file of metrics of one store. The store's path is a label of each sample."""

    def __init__(self, path: str, store: str) -> None:
        """Write nothing."""
        self._path = path
        self._store = _escaped(os.path.abspath(store))

    def record(self, facts: RunFacts) -> None:
        """Replaces the file. A failure is a warning."""
        try:
            earlier = list(self._earlier())
            text = self._text([*_samples(facts, time.time(), earlier)])
            # node_exporter reads it as another user, and it contains no secret.
            with _doors.whole_file(self._path, mode=0o644, keeps=False) as part:
                part.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            why = reason(error) or type(error).__name__
            say(f"siteline: warning: the metrics were not written to {self._path}: {why}")

    def _earlier(self) -> Iterator[_Sample]:
        if not os.path.lexists(self._path):
            return
        if not os.path.isfile(self._path):
            # A rename would destroy it: /dev/null.
            raise OSError(0, "it is not a regular file")
        with open(self._path, encoding="utf-8", errors="replace") as file:
            if file.read(len(_BEGIN)) not in ("", _BEGIN):
                # A mistyped name must not cost a store.
                raise OSError(0, "it is not a file of metrics of siteline")
            lines = file.read().splitlines()
        for found in filter(None, map(_LINE.fullmatch, lines)):
            if found[2] == self._store:
                yield _Sample(found[1], found[3], found[4])

    def _text(self, samples: Sequence[_Sample]) -> str:
        lines: list[str] = []
        for name, help in _HELP.items():
            of_name = [one for one in samples if one.name == name]
            if of_name:
                lines += [f"# HELP {name} {help}", f"# TYPE {name} gauge"]
            for one in of_name:
                feed = "" if one.feed is None else f',feed="{one.feed}"'
                labels = f'store="{self._store}"{feed}{one.labels}'
                lines.append(f"{name}{{{labels}}} {one.value}")
        return "\n".join([*lines, ""])


def _samples(facts: RunFacts, now: float, earlier: Sequence[_Sample]) -> Iterator[_Sample]:
    is_complete = facts.status == Exit.DONE and facts.report is not None
    yield _Sample(_RUN, None, f"{now:.3f}")
    if is_complete:
        yield _Sample(_SUCCESS, None, f"{now:.3f}")
    else:
        yield from (one for one in earlier if one.name == _SUCCESS)
    yield _Sample("siteline_sync_complete", None, str(int(is_complete)))
    yield _Sample("siteline_sync_exit_status", None, str(int(facts.status)))
    told: set[str] = set()
    if facts.report is not None:
        yield from _report_samples(facts.report)
        told = {_escaped(one.name) for one in facts.report.feeds}
    known = None if facts.names is None else set(map(_escaped, facts.names))
    if facts.requests is not None:
        yield from _request_samples(facts.requests)
    for one in earlier:
        if one.name in _KEPT and one.feed not in told and (known is None or one.feed in known):
            yield one
    if facts.allowance is not None:
        yield from _allowance_samples(facts.allowance)


def _report_samples(report: SyncReport) -> Iterator[_Sample]:
    for name in ("requests", "pages"):
        yield _Sample(f"siteline_sync_{name}", None, str(getattr(report, name)))
    for one in report.feeds:
        feed = _escaped(one.name)
        for name in ("inserted", "revised", "unchanged", "withdrawn"):
            yield _Sample(f"siteline_sync_points_{name}", feed, str(getattr(one, name)))
        for name, at in ((_SETTLED, one.settled_through), (_READ, one.read_through)):
            if at is not None:
                yield _Sample(name, feed, _seconds(at))
        yield _Sample(_SKIPPED, feed, str(len(one.skipped)))


def _request_samples(counts: RequestCounts) -> Iterator[_Sample]:
    for (kind, status), count in sorted(counts.requests.items()):
        labels = f',kind="{kind}",status="{status}"'
        yield _Sample("siteline_sync_http_requests", None, str(count), labels)
    sums = {"exchanges": counts.exchanges, "received_bytes": counts.bytes, "points": counts.points}
    for name, count in sums.items():
        yield _Sample(f"siteline_sync_{name}", None, str(count))


def _allowance_samples(allowance: Allowance) -> Iterator[_Sample]:
    for name in ("used", "limit", "left"):
        if (count := getattr(allowance, name)) is not None:
            yield _Sample(f"siteline_allowance_{name}", None, str(count))
    yield _Sample("siteline_allowance_resets_at", None, _seconds(allowance.resets_at))


def _seconds(at: datetime) -> str:
    return f"{at.timestamp():.3f}".removesuffix(".000")


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    # A path may have bytes that are not UTF-8.
    return escaped.encode("utf-8", "replace").decode()
