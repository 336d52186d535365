"""The lateness of points: the estimate of their delays, and its verdict."""

import copy
import dataclasses
import pickle
import re
from datetime import timedelta

import pytest
import siteline
from kit.feeds import make_feed
from kit.markup import drawn

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
H, D = 3_600, 86_400


def part(count=0, late=0, quantiles=None, looked=None):
    """A result of the core: a delay for all quantiles, or six delays."""
    if isinstance(quantiles, int):
        quantiles = [quantiles] * 6
    return {"count": count, "late": late, "quantiles": quantiles, "looked": looked, "curve": []}


def lateness_of(points=None, revisions=None, **options):
    members = {"points": points or part(), "revisions": revisions or part(), "settled": 30 * D}
    return siteline.types.Lateness._restore({"feed": make_feed(**options)._state, **members})


def test_quantiles_are_timedeltas():
    delays = lateness_of(part(100, 2, [60, H, 2 * H, 3 * H, 4 * H, D], 2 * D)).points
    assert (delays.count, delays.late) == (100, 2)
    quantiles = [delays.median, delays.p90, delays.p95, delays.p99, delays.longest]
    assert quantiles == [timedelta(minutes=1), HOUR, 2 * HOUR, 3 * HOUR, DAY]
    assert lateness_of().revisions.median is None
    assert lateness_of().looked is None


def test_equal_latenesses_are_equal_and_can_be_pickled():
    one = lateness_of(part(50, 0, 60, D), part(2, 0, H, D))
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
    late = dataclasses.replace(one.points, late=9)
    assert (late.late, late.median, "_" in repr(late)) == (9, one.points.median, False)
    assert len({one, lateness_of(part(50, 0, 60, D), part(2, 0, H, D)), lateness_of()}) == 2


@pytest.mark.parametrize(
    ("points", "revisions", "suggested", "words"),
    [
        (part(), part(), None, "hardly anything was read twice"),
        (
            part(900, 0, H, 2 * D),
            part(),
            2 * HOUR,
            "2 h would have been long enough for 99.9 %; nothing",
        ),
        (
            part(900, 0, 80_000, 3 * D),
            part(),
            DAY,
            "it is long enough for 99.9 %; nothing was read again after 3",
        ),
        (
            part(900, 0, H, 12 * H),
            part(),
            None,
            "not known yet whether it is long enough; nothing was read again after 12 h",
        ),
        (
            part(900, 6, 70 * H, 9 * D),
            part(),
            4 * DAY,
            "6 points arrived or changed after it: 4 d would",
        ),
        (
            part(900, 0, H, 9 * D),
            part(9, 3, 30 * H, 9 * D),
            1.5 * DAY,
            "3 points arrived or changed",
        ),
        (
            part(900, 6, 70 * H, 3 * D),
            part(),
            None,
            "up to the last look: it is too short; nothing",
        ),
    ],
)
def test_a_verdict_claims_only_what_was_looked_at(points, revisions, suggested, words):
    lateness = lateness_of(points, revisions, audit_pages=4)
    assert lateness.suggested == suggested
    for text in (lateness.verdict, str(lateness), drawn(lateness).text):
        assert words in text
        assert ("nothing was read again after" in text) == (lateness.points.count > 9)
    assert "suggested" in repr(lateness)


@pytest.mark.parametrize("quantiles", [H, 80_000])
def test_without_audits_no_verdict_says_that_the_lateness_is_long_enough(quantiles):
    lateness = lateness_of(part(900, 0, quantiles, 2 * D))
    assert lateness.suggested is None
    assert "only audits show points after the lateness (audit_pages=)" in lateness.verdict
    assert "nothing was read again after 2 d" in lateness.verdict
    assert "long enough" not in str(lateness)
    # Points that were seen late need no audit.
    late = lateness_of(part(900, 6, 70 * H, 9 * D))
    assert late.suggested == 4 * DAY


def test_it_prints_a_table():
    text = str(lateness_of(part(50, 1, [60, 60, H, H, H, D], D), part(20, 0, 2 * H, D)))
    assert re.search(r"points +50 +1 +1 min +1 min +1 h +1 h +1 d", text)
    assert re.search(r"revisions +20 +0 +2 h", text)
