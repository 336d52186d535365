"""`machine=`, `device=`, `tag=` and `series=` of a store's points: some series of a feed."""

import pickle

import pandas as pd
import pytest
import siteline
from kit.feeds import make_feed
from kit.ranges import NOW

DAY = ("2026-11-16T00:00Z", "2026-11-17T00:00Z")
IDS = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store that was synced twice."""
    path = tmp_path_factory.mktemp("series") / "plant.siteline"
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(path, labels=False) as store:
        sandbox.client().sync(make_feed(), store)
        sandbox.clock.advance("6h")
        sandbox.client().sync(make_feed(), store)
        yield store


@pytest.fixture(scope="module")
def frame(store):
    return store.read("line-2").to_pandas()


def same(found: pd.DataFrame, expected: pd.DataFrame) -> bool:
    return len(found) > 0 and found.equals(expected.reset_index(drop=True))


def test_an_id_or_several_pick_the_series_that_have_them(store, frame):
    tags = sorted(frame["tag_guid"].dropna().unique())[:2]
    machine = frame["machine_id"].iloc[-1]
    picked = store.read("line-2", tag=tags[0])
    assert same(picked.to_pandas(), frame[frame["tag_guid"] == tags[0]])
    assert len(picked) == len(picked.to_pandas()) < len(store.read("line-2")) == len(frame)
    both = store.read("line-2", tag=tags).to_pandas()
    assert same(both, frame[frame["tag_guid"].isin(tags)])
    one = store.read("line-2", tag=(tag for tag in tags), machine=machine).to_pandas()
    assert one.equals(
        frame[frame["tag_guid"].isin(tags) & (frame["machine_id"] == machine)].reset_index(
            drop=True
        )
    )
    device = frame["device_id"].dropna().iloc[0]
    assert same(
        store.read("line-2", device=[device]).to_pandas(), frame[frame["device_id"] == device]
    )


def test_series_are_picked_by_the_ids_that_frames_have(store, frame):
    series = list(frame[IDS].drop_duplicates().itertuples(index=False))
    for one in (series[0], tuple(series[0]), list(series[0])):
        picked = store.read("line-2", series=one).to_pandas()
        assert same(picked, frame[(frame[IDS].fillna("") == list(series[0])).all(axis=1)])
    assert same(store.read("line-2", series=series).to_pandas(), frame)
    both = store.read("line-2", series=series[:2]).to_pandas()
    assert list(both[IDS].drop_duplicates().itertuples(index=False)) == series[:2]


def test_changes_and_earlier_points_are_picked_alike(store, frame):
    tag = frame["tag_guid"].dropna().iloc[0]

    def as_of(feed, sequence, **options):
        return store.read(feed, as_of=sequence, **options)

    for read in (store.changes, as_of):
        for sequence in (0, 1, store.read("line-2").to_pandas().attrs["siteline"]["sequence"]):
            every = read("line-2", sequence, unread="keep").to_pandas()
            picked = read("line-2", sequence, unread="keep", tag=tag)
            assert picked.to_pandas().equals(every[every["tag_guid"] == tag].reset_index(drop=True))
            assert len(picked) == (every["tag_guid"] == tag).sum()


def test_an_unknown_id_is_an_error(store, frame):
    tag = frame["tag_guid"].dropna().iloc[0]
    series = [*frame[IDS].iloc[0]]
    for options, what in [
        ({"tag": "sped"}, 'no tag "sped"'),
        ({"tag": [tag, "sped"]}, 'no tag "sped"'),
        ({"machine": "M0"}, 'no machine "M0"'),
        ({"device": ""}, 'no device ""'),
        ({"series": (*series[:4], None)}, "no series (S1, L2"),
    ]:
        with pytest.raises(siteline.errors.QueryError, match="line-2") as caught:
            store.read("line-2", **options)
        assert what in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"tag": 7.5},
        {"machine": [None]},
        {"machine": []},
        {"series": []},
        {"device": b"D1"},
        {"series": "S1"},
        {"series": ("S1", "L2")},
        {"series": [("S1", "L2", "M1", "D1", 7.5)]},
        {"series": 7},
        {"series": ["S1", ("S1",)]},
    ],
)
def test_what_names_no_series_is_refused_at_once(store, options):
    for read in (store.read, lambda feed, **o: store.changes(feed, 0, **o)):
        with pytest.raises(siteline.errors.QueryError, match=f"{next(iter(options))}= is"):
            read("line-2", **options)


def test_what_was_picked_is_said_and_pickled(store, frame):
    series = tuple(frame[IDS].iloc[0])
    tags = frame["tag_guid"].dropna().unique()[:2].tolist()
    points = store.read("line-2", *DAY, machine=series[2], tag=tags, series=series)
    assert ', machine "' in repr(points)
    assert ", 2 tags, 1 of the series" in repr(points)
    points = store.read("line-2", *DAY, machine=series[2], series=series)
    again = pickle.loads(pickle.dumps(points))
    assert repr(again) == repr(points)
    frame = again.to_pandas()
    assert [tuple(row.values())[:5] for row in again.series.records()] == [series]
    assert len(frame) == len(points) > 0
