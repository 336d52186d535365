"""The pages of the benchmark: each set has the same data, and siteline can read it."""

import json
import sys

import pytest
import siteline

pd = pytest.importorskip("pandas")
pytest.importorskip("numpy")
if sys.platform != "linux":
    pytest.skip("the server sends files as Linux can", allow_module_level=True)

from kit import keys  # noqa: E402
from speed import render, server  # noqa: E402
from speed.summary import difference, summarize  # noqa: E402

pytestmark = pytest.mark.once

PAGES = 2
POINTS = PAGES * render.SERIES * render.SLICE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pages")
    render.render(made, PAGES)
    return made


@pytest.fixture(scope="module")
def client(folder):
    with server.Server(folder) as service:
        credential = siteline.Credential("bench", keys.private_key())
        with siteline.Client(service.url, credential=credential) as client:
            yield client


def scan(client, pages, end=None):
    return client.scan(site=pages, start=render.START, end=end or render.end(PAGES), interval="1m")


@pytest.fixture(scope="module")
def expected(folder):
    """The compact pages, read with Python's json."""
    rows = []
    for path in sorted((folder / "a").iterdir()):
        for envelope in json.loads(path.read_bytes())["series"]:
            points = envelope.pop("points")
            rows += [[*envelope.values(), *point.values()] for point in points]
    frame = pd.DataFrame(rows, columns=list(siteline.types.Record._fields))
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True).dt.as_unit("us")
    return ordered(frame.astype({"sample_count": "Int64"}))


def ordered(frame):
    return frame.sort_values(["tag_guid", "timestamp"], ignore_index=True)


def test_each_set_of_pages_is_the_same_data(client, expected):
    for pages in ("a", "b", "pairs", "gzip", "gzip-b", "small"):
        read = ordered(scan(client, pages).to_pandas())
        assert len(read) == POINTS
        pd.testing.assert_frame_equal(read, expected, check_exact=True)


def test_the_slow_pages_have_an_hour_each_and_end_with_the_range(client, monkeypatch):
    monkeypatch.setattr(server, "DELAY", 0.0)
    end = render.START + pd.Timedelta("150min")

    assert [len(page) for page in scan(client, "slow", end).pages()] == [120, 120, 60]


def test_one_number_that_differs_in_a_bit_is_a_difference(client):
    frame = scan(client, "a").to_pandas(ids="category")
    other = frame.copy()
    other.loc[7, "value"] += 1e-12

    assert difference(summarize(frame), summarize(frame.sample(frac=1))) is None
    assert "digest" in difference(summarize(frame), summarize(other))
