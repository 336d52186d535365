"""The private parts of pandas that siteline uses are as expected, or none of them is used."""

import numpy as np
import pandas as pd
import pytest
from siteline import _zero_copy, frames

pytestmark = pytest.mark.sandbox(seed=3)

BERLIN = "Europe/Berlin"
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
    """pandas with another version. Its frames lack a private part."""

    def __init__(self, version=pd.__version__, part="", instead=None):
        self.__version__, self._part, self._instead = version, part, instead

    def DataFrame(self, *args, **kwargs):
        return Without(pd.DataFrame(*args, **kwargs), self._part, self._instead)

    def __getattr__(self, name):
        return getattr(pd, name)


@pytest.fixture
def table(shared_sandbox):
    query = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z"}
    return shared_sandbox.client().scan(**query, interval="5m").collect()


def is_shared(table, frame):
    """Whether the frame's values are the table's own memory."""
    own = np.asarray(table._handle.columns((None, None, None))[0][6][2])
    return np.shares_memory(frame["value"].to_numpy(), own)


def test_frames_share_memory_only_from_pandas_3_on(table):
    newer = int(pd.__version__.split(".", 1)[0]) >= 3
    assert is_shared(table, table.to_pandas()) <= newer


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
def test_frames_are_copies_if_a_private_part_is_missing(table, monkeypatch, other):
    expected = table.to_pandas(tz=BERLIN)
    monkeypatch.setattr(_zero_copy, "_known", [])
    monkeypatch.setattr(_zero_copy, "_blocks", [])
    monkeypatch.setattr(frames, "can_share", lambda pandas: _zero_copy.can_share(other))
    frame = table.to_pandas(tz=BERLIN)
    pd.testing.assert_frame_equal(frame, expected)
    assert frame.attrs == expected.attrs
    assert not is_shared(table, frame)
    frame.loc[:, ["value", "minimum", "maximum"]] = 1e9
    frame.loc[:, "timestamp"] = pd.Timestamp("2030-01-01", tz="UTC")
    pd.testing.assert_frame_equal(table.to_pandas(tz=BERLIN), expected)
