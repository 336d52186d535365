"""Frames share the table's memory and never write to it. Records are independent."""

import contextlib
import gc
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import siteline
from kit.ranges import HOURLY

pytestmark = pytest.mark.sandbox(seed=3)

QUERY = {**HOURLY, "end": "2026-11-01T06:00Z"}
NUMBERS = ["value", "minimum", "maximum"]
LATER = pd.Timestamp("2030-01-01", tz="UTC")
SHARES = int(pd.__version__.split(".")[0]) >= 3


@pytest.fixture
def table(shared_sandbox):
    return shared_sandbox.client(labels=False).scan(**QUERY).collect()


def put(place, value):
    """Writes to the first element of an array, unless it is read-only."""
    with contextlib.suppress(ValueError):
        place[0] = value


def unlock(array):
    """Makes an array writable, unless NumPy refuses that."""
    with contextlib.suppress(ValueError):
        array.setflags(write=True)
    put(array, 1e9)


WRITES = {
    "loc": lambda frame: frame.loc.__setitem__((0, "value"), 1e9),
    "loc of all": lambda frame: frame.loc.__setitem__((slice(None), "minimum"), 1e9),
    "iloc": lambda frame: frame.iloc.__setitem__((0, 6), 1e9),
    "at": lambda frame: frame.at.__setitem__((0, "maximum"), 1e9),
    "a time": lambda frame: frame.loc.__setitem__((0, "timestamp"), LATER),
    "a count": lambda frame: frame.loc.__setitem__((0, "sample_count"), 10**9),
    "no count": lambda frame: frame.loc.__setitem__((0, "sample_count"), pd.NA),
    "an id": lambda frame: frame.loc.__setitem__((0, "tag_guid"), frame["tag_guid"].iloc[-1]),
    "no id": lambda frame: frame.loc.__setitem__((0, "tag_guid"), None),
    "a column": lambda frame: frame["value"].iloc.__setitem__(0, 1e9),
    "column by column": lambda frame: [frame[name].iloc.__setitem__(0, 1e9) for name in NUMBERS],
    "fillna": lambda frame: frame.fillna({"value": 1e9}, inplace=True),
    "mask": lambda frame: frame[NUMBERS].mask(frame[NUMBERS] > 0, inplace=True),
    "clip": lambda frame: frame["value"].clip(0, 1, inplace=True),
    "sort": lambda frame: frame.sort_values("value", inplace=True),
    "update": lambda frame: frame.update(pd.DataFrame({"value": [1e9]})),
    "in place": lambda frame: frame.__setitem__("value", frame["value"].__iadd__(1e9)),
    "values": lambda frame: put(frame["value"].values, 1e9),
    "all values": lambda frame: put(frame[NUMBERS].values, 1e9),
    "counts": lambda frame: put(frame["sample_count"].values, 10**9),
    "to_numpy": lambda frame: put(frame["sample_count"].to_numpy(dtype="int64"), 10**9),
    "asarray": lambda frame: put(np.asarray(frame["value"]), 1e9),
    "array": lambda frame: put(frame["value"].array, 1e9),
    "unlocked": lambda frame: unlock(frame["value"].to_numpy()),
    "unlocked array": lambda frame: unlock(frame["value"].array.to_numpy()),
    "array of counts": lambda frame: put(frame["sample_count"].array, 10**9),
    "array without": lambda frame: put(frame["sample_count"].array, pd.NA),
    "array of times": lambda frame: put(frame["timestamp"].array, LATER),
    "array of ids": lambda frame: put(frame["tag_guid"].array, frame["tag_guid"].iloc[-1]),
    "popped": lambda frame: put(frame.pop("value").array, 1e9),
    "renamed": lambda frame: frame.rename(columns=str.upper).iloc.__setitem__((0, 6), 1e9),
    "shallow": lambda frame: frame.copy(deep=False).iloc.__setitem__((0, 6), 1e9),
    "deep": lambda frame: frame.copy().iloc.__setitem__((0, 6), 1e9),
    "part": lambda frame: frame.iloc[:5].loc.__setitem__((0, "value"), 1e9),
    "turned": lambda frame: frame[NUMBERS].T.iloc.__setitem__((0, 0), 1e9),
    "index": lambda frame: put(frame.set_index("timestamp").index.asi8, 7),
}


@pytest.mark.parametrize("ids", ["str", "category"])
@pytest.mark.filterwarnings("ignore")
def test_writing_to_a_frame_changes_only_that_frame(table, ids):
    holder = table
    arrow, records = pa.table(holder), list(holder.records())
    copied = pa.table(holder).to_pydict()
    other = holder.to_pandas(ids=ids)
    expected = other.copy(deep=True)
    for name, write in WRITES.items():
        write(holder.to_pandas(ids=ids))
        pd.testing.assert_frame_equal(holder.to_pandas(ids=ids), expected, obj=name)
        pd.testing.assert_frame_equal(other, expected, obj=name)
    assert list(holder.records()) == records
    assert arrow.to_pydict() == copied
    assert pa.table(holder).equals(arrow)


@pytest.mark.filterwarnings("ignore")
def test_a_frame_can_be_written_to_after_its_table_is_deleted(shared_sandbox):
    frame = shared_sandbox.client(labels=False).scan(**QUERY).to_pandas(ids="category")
    column = frame["minimum"]
    gc.collect()
    frame.loc[0, ["value", "sample_count", "timestamp"]] = [1.5, 3, LATER]
    assert frame.loc[0, ["value", "sample_count", "timestamp"]].to_list() == [1.5, 3, LATER]
    del frame
    gc.collect()
    column.iloc[0] = 2.5
    assert column.iloc[0] == 2.5


def test_a_pickled_frame_is_an_ordinary_frame(table):
    frame = pickle.loads(pickle.dumps(table.to_pandas()))
    frame["value"].to_numpy()
    frame.loc[0, "value"] = 7.0
    assert frame.loc[0, "value"] == 7.0
    assert table.to_pandas().loc[0, "value"] != 7.0


@pytest.mark.skipif(not SHARES, reason="pandas 2 would write to shared memory")
def test_numbers_and_times_are_shared_without_a_copy(table):
    one, two = table.to_pandas(), table.to_pandas(ids="category")
    for name in NUMBERS:
        assert np.shares_memory(one[name].to_numpy(), two[name].to_numpy()), name
    assert np.shares_memory(one["timestamp"].array.asi8, two["timestamp"].array.asi8)
    arrow = pa.table(table)["value"].chunk(0)
    assert arrow.buffers()[1].address == one["value"].to_numpy().ctypes.data


def test_records_are_independent_dicts_and_tuples(table):
    one, two = table.records(), table.records()
    first = next(one)
    first["value"] = "mine"
    first["more"] = 1
    assert next(two)["value"] != "mine"
    assert list(next(one)) == list(next(two)) == list(table.to_pandas().columns)
    record = next(table.records(named=True))
    assert type(record) is siteline.types.Record
    assert record == siteline.types.Record(*next(table.records()).values())
    assert record._replace(value=1.0).value == 1.0
