"""The private parts of pandas that siteline uses are as expected, or none of them is used."""

import numpy as np
import pandas as pd
import pytest
import siteline
from siteline import _zero_copy, frames

pytestmark = pytest.mark.sandbox(seed=3)

PARTS = ("_mgr", "blocks", "refs", "add_reference")


class Without:
    """An object of pandas, and all that is reached through it, without one private part."""

    def __init__(self, real, part, instead):
        self._real, self._part, self._instead = real, part, instead

    def __getattr__(self, name):
        if name != self._part:
            return wrapped(getattr(self._real, name), self._part, self._instead)
        if self._instead is None:
            raise AttributeError(name)
        return self._instead

    def __getitem__(self, name):
        return self._real[name]

    def __iter__(self):
        return iter(self._real)


def wrapped(value, part, instead):
    if isinstance(value, tuple):
        return tuple(Without(one, part, instead) for one in value)
    if callable(value):
        return lambda *given: value(*(getattr(one, "_real", one) for one in given))
    return Without(value, part, instead)


class OtherPandas:
    """pandas with a version of its own, whose frames lack a private part."""

    def __init__(self, version=pd.__version__, part="", instead=None):
        self.__version__, self._part, self._instead = version, part, instead

    def DataFrame(self, *args, **kwargs):
        return Without(pd.DataFrame(*args, **kwargs), self._part, self._instead)

    def __getattr__(self, name):
        return getattr(pd, name)


@pytest.fixture
def table(shared_sandbox):
    query = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z"}
    return shared_sandbox.client().data(**query, interval="5m").collect()


@pytest.fixture
def under(table, monkeypatch):
    """The frame of the table where siteline meets another pandas for the first time."""

    def read(other):
        monkeypatch.setattr(_zero_copy, "_known", [])
        monkeypatch.setattr(_zero_copy, "_blocks", [])
        monkeypatch.setattr(frames, "can_share", lambda pandas: _zero_copy.can_share(other))
        return table.to_pandas()

    return read


def is_shared(table, frame):
    """Whether the frame's values are the table's own memory."""
    own = np.asarray(table._columns()[6][2])
    return np.shares_memory(frame["value"].to_numpy(), own)


def parts_are_as_expected():
    """Whether a second reference to a block makes pandas copy it, by the parts that are used."""
    try:
        one, two = (pd.DataFrame({"a": np.zeros(2)})._mgr.blocks[0] for _ in range(2))
        one.refs.add_reference(two)
        return bool(one.refs.has_reference())
    except AttributeError:
        return False


def test_the_private_parts_of_this_pandas_are_as_expected_or_not_used(table):
    frame = table.to_pandas()
    newer = int(pd.__version__.split(".", 1)[0]) >= 3
    assert _zero_copy._known == [newer and parts_are_as_expected()]
    assert is_shared(table, frame) == _zero_copy._known[0]


@pytest.mark.parametrize(
    "other",
    [
        *(pytest.param(OtherPandas(part=part), id=f"without {part}") for part in PARTS),
        pytest.param(OtherPandas(part="blocks", instead=()), id="no blocks"),
        pytest.param(
            OtherPandas(part="add_reference", instead=lambda block: None), id="no reference kept"
        ),
        pytest.param(OtherPandas("2.3.3"), id="pandas 2"),
        pytest.param(OtherPandas("unknown"), id="no version"),
    ],
)
def test_where_a_private_part_is_missing_or_does_something_else_frames_are_copies(
    table, under, other
):
    expected = table.to_pandas()
    frame = under(other)
    assert _zero_copy._known == [False]
    pd.testing.assert_frame_equal(frame, expected)
    assert frame.attrs == expected.attrs
    assert not is_shared(table, frame)
    frame.loc[:, ["value", "minimum", "maximum"]] = 1e9
    frame.loc[:, "timestamp"] = pd.Timestamp("2030-01-01", tz="UTC")
    pd.testing.assert_frame_equal(table.to_pandas(), expected)
    pd.testing.assert_frame_equal(siteline.Table.to_pandas(table), expected)
