"""Files of earlier versions, as their users have them: docs/stability.md says that they open."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import siteline

VERSIONS = sorted(Path(__file__).parents[1].joinpath("kept").glob("[0-9]*"))
NOW = "2026-11-20T03:00:00Z"


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def kept(request, tmp_path):
    """A copy of the files of one version."""
    return Path(shutil.copytree(request.param, tmp_path / "kept"))


def points_of(kept: Path) -> pd.DataFrame:
    """The points that the version had in its store."""
    # The parser of pandas rounds, before pandas 3 without being asked.
    exact = dict.fromkeys(("value", "minimum", "maximum"), float)
    frame = pd.read_csv(kept / "points.csv", parse_dates=["timestamp"], converters=exact)
    return frame.astype({"sample_count": "Int64"})


def test_the_files_of_each_release_that_changed_a_form_are_here():
    assert [folder.name for folder in VERSIONS] == ["0.2.0"]


def test_a_store_of_an_earlier_version_has_its_points_and_its_coverage(kept):
    with siteline.Store(kept / "plant.siteline") as store:
        store.check()
        frame = store.read("line-2", labels=False).to_pandas().drop(columns="withdrawn")
        coverage = store.coverage("line-2")
        assert store.feeds["line-2"].start == pd.Timestamp("2026-11-18", tz="UTC")
    expected = points_of(kept)
    pd.testing.assert_frame_equal(
        frame, expected, check_dtype=False, check_exact=True, check_column_type=False
    )
    assert coverage.read_through == pd.Timestamp("2026-11-20", tz="UTC")


def test_a_store_of_an_earlier_version_goes_on_being_written_to(kept):
    with (
        siteline.Sandbox(seed=7, now=NOW) as sandbox,
        siteline.Store(kept / "plant.siteline") as store,
    ):
        feed = siteline.Feed("line-3", site="S1", line="L3", interval="1h", start="2026-11-19")
        assert sandbox.client().sync(feed, store).complete
        assert set(store.feeds) == {"line-2", "line-3"}
        assert len(store.read("line-2")) == len(points_of(kept))
        store.check()


def test_a_bookmark_of_an_earlier_version_opens(kept):
    data = (kept / "chain.bookmark").read_bytes()
    bookmark = siteline.types.Bookmark.from_bytes(data)
    assert bookmark.pages == 1
    assert bookmark.to_bytes() == data
