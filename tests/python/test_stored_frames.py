"""Frames of a store's points equal its Arrow stream and take little more memory than a frame."""

import gc

import numpy as np
import pandas as pd
import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pytest
import siteline
from kit import systems
from kit.interpreter import run_script

SERIES, MINUTES = 30, 2_400
START = pd.Timestamp("2026-11-10T00:00Z")
END = START + pd.Timedelta(minutes=MINUTES)
GONE = ["2026-11-11T05:00Z", "2026-11-11T05:01Z"]
FEED = siteline.Feed(
    "plant", interval="1m", start=START, page_size=10_000, window="6h", lateness="6h"
)


def plant(minutes=MINUTES):
    """Points. Some have no value, no count or no machine."""
    rows = SERIES * minutes
    number = np.repeat(np.arange(SERIES), minutes)
    times = START + pd.to_timedelta(np.tile(np.arange(minutes), SERIES), unit="min")
    value = np.random.default_rng(3).normal(50, 9, rows)
    frame = pd.DataFrame({"timestamp": times, "value": np.where(value > 70, np.nan, value)})
    frame["minimum"], frame["maximum"] = frame["value"] - 1, frame["value"] + 1
    frame["sample_count"] = pd.array(number + 1, dtype="Int64")
    frame.loc[number == 3, "sample_count"] = pd.NA
    frame["machine_id"] = np.where(number % 4 == 1, None, [f"M{n // 4}" for n in number])
    frame["tag_guid"] = [f"tag-{n:02d}" for n in number]
    return frame


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """A store that was synced, then once more after points were revised, withdrawn and added."""
    path = tmp_path_factory.mktemp("frames") / "plant.siteline"
    with siteline.Sandbox(now=END.isoformat()) as sandbox, siteline.Store(path) as store:
        points = plant()
        sandbox.load(points, bucket="1m")
        client = sandbox.client()
        first = client.sync(FEED, store)
        for time in GONE:
            sandbox.withdraw(time, machine="M1", tag="tag-06")
        revised = points[points["timestamp"] < START + pd.Timedelta("3h")].iloc[::7].copy()
        sandbox.load(revised.assign(value=revised["value"] + 1), bucket="1m")
        sandbox.clock.advance("1h")
        second = client.sync(FEED, store, reread=(START, END))
        assert second.revised > 100
        assert second.withdrawn == len(GONE)
        yield store, first, second


WAYS = {
    "all points": lambda store, _: store.read(FEED),
    "a range": lambda store, _: store.read(FEED, "2026-11-10T05:00Z", "2026-11-11T07:11Z"),
    "settled points": lambda store, _: store.read(FEED, final=True),
    "some series": lambda store, _: store.read(FEED, tag=["tag-29", "tag-05", "tag-06"]),
    "a machine": lambda store, _: store.read(FEED, machine="M1"),
    "without withdrawn": lambda store, _: store.read(FEED, withdrawn="drop"),
    "withdrawn points": lambda store, _: store.read(FEED, withdrawn="only"),
    "earlier points": lambda store, first: store.read(FEED, as_of=first),
    "earlier withdrawn points": lambda store, first: store.read(
        FEED, withdrawn="only", as_of=first
    ),
    "changes": lambda store, first: store.changes(FEED, since=first),
    "all changes": lambda store, _: store.changes(FEED, since=0),
    "no points": lambda store, _: store.read(FEED, withdrawn="only", tag="tag-29"),
    "no changes": lambda store, _: store.changes(FEED, since=store.read(FEED).report.sequence),
}


NOTHING = {"no points", "no changes", "earlier withdrawn points"}


@pytest.mark.parametrize("way", WAYS)
def test_frames_and_the_ipc_stream_have_the_points_of_the_arrow_stream(read, way):
    store, first, _ = read
    points = WAYS[way](store, first)
    table = points.to_arrow()
    assert (len(points) == 0) == (way in NOTHING)
    for ids in ("category", "str"):
        frame = points.to_pandas(ids=ids)
        assert list(frame.columns) == table.column_names
        assert len(frame) == len(points) == table.num_rows
        for name in table.column_names:
            expected = table[name].combine_chunks()
            if pa.types.is_dictionary(expected.type):
                is_category = ids == "category" or name == "label"
                text = "category" if is_category else pd.Series([], dtype="str").dtype
                assert frame[name].dtype == text
                expected, given = expected.cast(pa.string()), frame[name].astype(object)
            else:
                given = frame[name]
            assert pa.array(given, expected.type, from_pandas=True).equals(expected), name
    parts = list(points._ipc())
    streamed = pa.ipc.open_stream(b"".join(parts)).read_all()
    assert streamed.schema.equals(table.schema, check_metadata=True)
    assert b"siteline" in streamed.schema.metadata
    assert streamed.equals(table)
    assert (len(parts) == 1) == (way in NOTHING)
    frame = pl.read_ipc_stream(b"".join(parts))
    assert frame.with_columns(cs.categorical().cast(pl.String)).equals(points.to_polars())


def test_frames_share_nothing_that_one_of_them_may_write_to(read):
    store, first, _ = read
    points = store.changes(FEED, since=first)
    frame, other = (points.to_pandas(ids="category") for _ in range(2))
    part, before = frame.head(9), other.copy(deep=True)
    for name, new in (("value", 7.5), ("sample_count", 7), ("timestamp", START)):
        frame.loc[frame.index[1], name] = new
        assert frame[name].iloc[1] == new
    frame.loc[frame.index[1], "change"] = "returned"
    assert other.equals(before)
    # Under pandas 2 a part of a frame is a view of it.
    if pd.__version__ >= "3":
        assert part.equals(before.head(9))
    assert points.to_pandas(ids="category").equals(before)


def test_a_frame_outlives_its_store(read, tmp_path):
    store, _, _ = read
    target = tmp_path / "copy.siteline"
    store.backup(target)
    with siteline.Store(target) as copied:
        frame = copied.read(FEED).to_pandas(ids="category")
    target.unlink()
    del copied
    gc.collect()
    assert frame.equals(store.read(FEED).to_pandas(ids="category"))


CHILD = """
import gc, os, re, siteline
def kilobytes(what):
    with open("/proc/self/status") as status:
        return int(re.search(what + r":\\s+(\\d+)", status.read())[1])
store = siteline.Store(os.environ["STORE"])
# Imports pandas, and does once what is done once.
store.read("plant", "2026-11-11", "2026-11-12").to_pandas(ids="category")
points = eval(os.environ["POINTS"])
gc.collect()
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
start = kilobytes("VmRSS")
frame = points.to_pandas(ids="category")
print(1024 * (kilobytes("VmHWM") - start) / frame.memory_usage(index=False).sum())
"""


@systems.PROC
@pytest.mark.campaign
@pytest.mark.parametrize("points", ["store.read('plant')", "store.changes('plant', since=0)"])
def test_a_frame_takes_little_more_memory_than_itself_while_it_is_made(tmp_path, points):
    path, end = tmp_path / "plant.siteline", START + pd.Timedelta(days=7)
    with siteline.Sandbox(now=end.isoformat()) as sandbox, siteline.Store(path) as store:
        sandbox.load(plant(7 * 1_440), bucket="1m")
        sandbox.client().sync(FEED, store)
    peak = float(run_script(CHILD, environment={"STORE": str(path), "POINTS": points}))
    # Batches that are concatenated take three.
    assert 0.5 < peak < 2
