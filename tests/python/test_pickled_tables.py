"""A table in caches: `pickle` keeps its points, its report and its origin."""

import copy
import pickle

import pytest
import siteline

pd = pytest.importorskip("pandas")

NOW = "2026-11-20T00:00:00Z"
RANGE = {"site": "S1", "start": "2026-11-05", "end": "2026-11-06", "interval": "10m"}


@pytest.fixture(scope="module")
def sandbox():
    with siteline.Sandbox(now=NOW, variant=siteline.testing.Variant(extra_members=True)) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def table(sandbox):
    return sandbox.client().scan(**RANGE, extra_columns=["quality"]).collect()


def repickled(table):
    return pickle.loads(pickle.dumps(table))


def test_the_frame_and_the_report_are_the_same(table):
    again = repickled(table)
    pd.testing.assert_frame_equal(again.to_pandas(), table.to_pandas())
    assert again.to_pandas().attrs == table.to_pandas().attrs
    assert again.report == table.report
    assert repr(again) == repr(table)
    assert pickle.dumps(again) == pickle.dumps(table), "a cache has one key for both"
    assert copy.copy(table) is table
    assert copy.deepcopy(table) is table


def test_empty_tables_and_the_truth_are_kept_too(sandbox):
    empty = sandbox.client(labels=False).scan(**{**RANGE, "site": "S9"}).collect()
    pd.testing.assert_frame_equal(repickled(empty).to_pandas(), empty.to_pandas())
    truth = sandbox.expected(**RANGE)
    assert repickled(truth).to_pandas().equals(truth.to_pandas())


def test_a_part_of_a_read_stays_a_part_and_has_no_secret(sandbox):
    client = sandbox.client(labels=False)
    sandbox.fault(on="data", status=503, skip=1, times=9)
    with pytest.raises(siteline.errors.ServiceUnavailable) as failed:
        client.scan(**RANGE, page_size=100).collect()
    sandbox.clear_faults()
    partial, bookmark = failed.value.partial, failed.value.bookmark
    again = repickled(partial)
    assert again.to_pandas().equals(partial.to_pandas())
    with pytest.raises(siteline.errors.QueryError, match="only a part of its read"):
        again.completeness()
    rest = client.scan(**RANGE, page_size=100).resume(
        pickle.loads(pickle.dumps(bookmark)), onto=again
    )
    spent = client.allowance.used
    table = rest.collect()
    assert client.allowance.used - spent == table.report.pages - partial.report.pages
    assert table.to_pandas().equals(client.scan(**RANGE, page_size=100).to_pandas())
    assert table.report.resumed_after_pages == 0
    # The position is a secret to its holder: the pickle of a table has none.
    assert len(pickle.dumps(bookmark)) > 100
    assert set(again.to_pandas(labels="machine")["label"]) == {
        " / ".join(ids) for ids in again._handle.series()
    }


def test_derived_tables_are_kept_too(table):
    for made in (
        table.find(line="L1"),
        table.with_gaps(),
        table.resample("1h", "mean"),
        table.resample("1h", "mean").pivot("sample_count"),
        table.completeness(),
        table.gaps(),
    ):
        again = repickled(made)
        pd.testing.assert_frame_equal(again.to_pandas(), made.to_pandas())
        assert (repr(again), again.report) == (repr(made), made.report)
    found = repickled(table.find(line="L1"))
    pd.testing.assert_frame_equal(
        found.gaps().to_pandas(), table.find(line="L1").gaps().to_pandas()
    )


@pytest.mark.parametrize("labels", ["machine", "name"])
def test_names_survive_a_pickle(sandbox, labels):
    range_ = {"start": "2026-11-01", "end": "2026-11-02", "interval": "1h"}
    table = sandbox.client().read(site="S1", **range_, labels=labels)
    again = repickled(table)
    pd.testing.assert_frame_equal(again.pivot().to_pandas(), table.pivot().to_pandas())
    assert len(again.find("temperature")) == len(table.find("temperature")) > 0


def test_a_subclass_is_kept(table):
    class Mine(siteline.Table):
        pass

    globals()["Mine"] = Mine
    Mine.__qualname__ = "Mine"
    assert type(repickled(Mine(table._handle, "UTC", False))) is Mine


def test_what_is_no_pickle_of_a_table_is_refused(table):
    restore, (cls, kept, points, checksum, *rest) = table.__reduce__()
    for damaged in (b"", points[:100], points.replace(b"maximum", b"minimax")):
        with pytest.raises(siteline.errors.QueryError, match="This is no pickled table"):
            restore(cls, kept, damaged, checksum, *rest)
    for other in ("{}", kept.replace("points", "spots", 1)):
        with pytest.raises(siteline.errors.QueryError, match="this is no pickled table"):
            restore(cls, other, points, checksum, *rest)
