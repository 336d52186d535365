"""`siteline.Feed`: its start, its equality and its pickles."""

import copy
import dataclasses
import pickle
import warnings
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
import siteline
from kit.feeds import make_feed

START = datetime(2026, 11, 15, tzinfo=UTC)


class Plant(siteline.Feed):
    """A feed of a user's own class."""


@dataclasses.dataclass(frozen=True)
class Built(siteline.Feed):
    """A feed with a field of a user's own."""

    owner: str = ""


@pytest.mark.parametrize(
    "given",
    [
        "2026-11-15",
        "2026-11-15T00:00",
        "2026-11-15T01:00+01:00",
        date(2026, 11, 15),
        np.datetime64("2026-11-15"),
        np.datetime64("2026-11-15T00:00", "ns"),
        datetime(2026, 11, 15),
        START.astimezone(timezone(timedelta(hours=5))),
    ],
)
def test_a_start_is_an_instant_in_utc(given):
    feed = make_feed(start=given)
    assert feed.start == START
    assert feed.start.tzinfo is UTC
    assert feed == make_feed(start=START)


@pytest.mark.parametrize(
    "given",
    [np.timedelta64(1, "D"), np.timedelta64(86_400, "s"), pd.offsets.Day(), np.int64(86_400)],
)
def test_a_duration_may_be_of_numpy_or_pandas(given):
    assert make_feed(lateness=given).lateness == timedelta(days=1)


@pytest.mark.parametrize(
    "given",
    [np.timedelta64(1, "M"), np.timedelta64(60), np.timedelta64("NaT", "s"), pd.offsets.MonthEnd(),
     np.array([60, 60])],
)  # fmt: skip
def test_a_duration_without_a_fixed_length_is_refused(given):
    with pytest.raises(siteline.errors.QueryError, match="lateness="):
        make_feed(lateness=given)


def test_a_relative_start_is_fixed_once():
    before = datetime.now(UTC)
    feed = make_feed(start="-7d", interval="1h")
    after = datetime.now(UTC)
    assert before - timedelta(days=7, hours=1) < feed.start <= after - timedelta(days=7)
    assert (feed.start.minute, feed.start.second, feed.start.microsecond) == (0, 0, 0)
    assert pickle.loads(pickle.dumps(feed)).start == feed.start


def test_a_feed_is_compared_and_copied_by_value():
    feed, other = make_feed(filters={"b": ["2", "1"], "a": 3}), make_feed(filters={"a": "3"})
    same = make_feed(filters={"a": "3", "b": ("2", "1")})
    assert feed == same
    assert hash(feed) == hash(same)
    assert feed not in (other, "line-2")
    assert copy.copy(feed) == feed == copy.deepcopy(feed)
    assert list(feed.filters) == ["a", "b"]
    for change in (
        lambda: feed.filters.update(a="4"),
        lambda: feed.filters.pop("a"),
        lambda: feed.filters.setdefault("c", ()),
        lambda: feed.filters.__setitem__("a", ("4",)),
        lambda: feed.filters.clear(),
    ):
        with pytest.raises(TypeError, match="filters cannot be changed"):
            change()
    read = pickle.loads(pickle.dumps(feed)).filters
    assert read == feed.filters == {"a": ("3",), "b": ("2", "1")}
    assert (type(read), repr(read)) == (type(feed.filters), repr(dict(feed.filters)))
    assert dataclasses.asdict(feed)["filters"] == copy.deepcopy(read) == read


def test_replace_changes_one_part_of_a_feed():
    filters = {"b": ["2", "1"], "a": 3}
    feed = make_feed(filters=filters, interval="1h", page_size=5, lateness="12h", audit_pages=1)
    assert dataclasses.replace(feed) == feed
    changed = dataclasses.replace(feed, overlap="2d")
    assert changed.overlap == timedelta(days=2)
    assert changed != feed
    assert dataclasses.replace(changed, overlap=feed.overlap) == feed
    members = dataclasses.asdict(feed)
    assert not [name for name in members if name.startswith("_")]
    assert siteline.Feed(**members) == feed


def test_a_subclass_may_be_a_dataclass():
    made = Built(name="plant", start="2026-11-15", lateness="12h", owner="Ada")
    assert made == siteline.Feed("plant", start="2026-11-15", lateness="12h")
    assert made.lateness == timedelta(hours=12)
    again = pickle.loads(pickle.dumps(dataclasses.replace(made, site="S1")))
    assert (again.owner, again.site) == ("Ada", "S1")


def test_a_feed_matches_by_its_parts():
    match make_feed(site="S1"):
        case siteline.Feed(name, site="S1", interval=interval):
            assert (name, interval) == ("line-2", make_feed().interval)
        case _:
            pytest.fail("no match")


def test_the_class_of_a_user_does_not_count():
    parts = {"start": "2026-11-15", "filters": {"a": "3"}}
    feed, own = siteline.Feed("plant", **parts), Plant("plant", **parts)
    assert feed == own
    assert own == feed
    assert len({feed, own}) == 1
    assert own.to_dict() == feed.to_dict()
    assert own.to_dict()["filters"] == {"a": ["3"]}


def test_a_pickle_keeps_the_class_without_a_warning():
    with pytest.warns(siteline.SitelineWarning, match="start="):
        feed = Plant("plant", start="2026-11-15T00:30", interval="1h", audit_pages=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(pickle.dumps(feed))
    assert type(again) is Plant
    assert again == feed
    assert (again.audit_pages, again.interval) == (2, timedelta(hours=1))
