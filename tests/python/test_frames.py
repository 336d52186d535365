"""Frames: the same dtypes for every result, and no unnecessary packages."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import siteline
from kit.interpreter import run_script
from kit.ranges import DAY, NOW

pytestmark = pytest.mark.sandbox(seed=3)

IDS = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]
QUERY = {**DAY, "end": "2026-11-01T06:00Z"}


@pytest.fixture
def scan(shared_sandbox):
    return shared_sandbox.client().scan(**QUERY)


@pytest.fixture
def empty(shared_sandbox):
    return shared_sandbox.client(labels=False).scan(
        **{**QUERY, "filters": {"machineId": "no-such-machine"}}
    )


def expected_dtypes(ids):
    text = pd.Series([], dtype="str").dtype
    return {
        **dict.fromkeys(IDS, text if ids == "str" else "category"),
        "timestamp": pd.DatetimeTZDtype("us", "UTC"),
        "value": np.dtype("float64"),
        "minimum": np.dtype("float64"),
        "maximum": np.dtype("float64"),
        "sample_count": pd.Int64Dtype(),
    }


@pytest.mark.parametrize("ids", ["str", "category"])
def test_pandas_dtypes_are_the_same_for_a_full_and_for_an_empty_result(scan, empty, ids):
    for frame in (scan.to_pandas(ids=ids), empty.to_pandas(ids=ids)):
        for name, dtype in expected_dtypes(ids).items():
            assert frame[name].dtype == dtype, name
    assert len(empty.to_pandas()) == 0
    assert len(scan.to_pandas()) > 0


def test_polars_and_arrow_have_strings_and_utc_microseconds(scan, empty):
    for frame in (scan.to_polars(), empty.to_polars()):
        assert frame.schema["site_id"] == pl.String
        assert frame.schema["timestamp"] == pl.Datetime("us", "UTC")
        assert frame.schema["sample_count"] == pl.Int64
    assert scan.to_polars(ids="category").schema["site_id"] == pl.Categorical
    assert pl.DataFrame(scan).height == len(scan.to_pandas())
    arrow, pandas = scan.to_arrow(), scan.to_pandas()
    assert arrow.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    for name in ("value", "tag_guid"):
        assert arrow.column(name).to_pylist() == pandas[name].to_list()


def test_duckdb_requests_the_stream_several_times_and_it_is_read_once(shared_sandbox):
    client = shared_sandbox.client()
    before = client.allowance.used
    scan = client.scan(**QUERY)
    pa.schema(scan)
    assert client.allowance.used == before, "the schema costs no request"
    labels = duckdb.sql("select distinct label from scan order by label").fetchall()
    total, mean = duckdb.sql("select count(*), avg(value) from scan").fetchall()[0]
    assert client.allowance.used == before + 1
    assert total == len(scan.to_pandas())
    assert [label for (label,) in labels] == sorted(set(scan.to_pandas()["label"]))
    assert mean == pytest.approx(scan.to_pandas()["value"].mean())


def test_named_records_have_the_ten_columns_and_no_other():
    with siteline.Sandbox(now=NOW, variant=siteline.testing.Variant(extra_members=True)) as sandbox:
        table = sandbox.client().scan(**QUERY, extra_columns=["quality"]).collect()
        assert "quality" in next(table.records())
        assert next(table.records(named=True))._fields == siteline.types.Record._fields


def test_packages_are_imported_when_used_and_errors_name_the_one_to_install(tmp_path):
    tmp_path.joinpath("pandas.py").write_text("import a_part_of_pandas\n")
    script = f"""
        import sys
        sys.modules["pyarrow"] = None
        import siteline
        from siteline.types import Coverage
        assert not {{"pandas", "numpy", "polars", "duckdb"}} & set(sys.modules)
        with siteline.Sandbox(now="{NOW}") as sandbox:
            scan = sandbox.client().scan(**{QUERY!r})
            # An installed package that cannot be imported is not reported as missing.
            sys.path.insert(0, {str(tmp_path)!r})
            for convert in (scan.to_pandas, lambda: Coverage.to_pandas(None)):
                try:
                    convert()
                except ModuleNotFoundError as error:
                    assert error.name == "a_part_of_pandas", error
                else:
                    raise AssertionError("to_pandas() worked without pandas")
            del sys.path[0]
            assert len(scan.to_pandas()) == len(scan.to_polars()) > 0
            import duckdb
            counted = duckdb.sql("select count(*) from scan").fetchall()
            assert counted == [(len(scan.collect()),)]
            try:
                scan.to_arrow()
            except ImportError as error:
                assert "pip install 'siteline[pyarrow]'" in str(error)
            else:
                raise AssertionError("to_arrow() worked without pyarrow")
    """
    run_script(script)


def test_a_polars_that_loses_points_is_refused(sandbox, monkeypatch):
    table = sandbox.client().scan(site="S1", start="2026-11-01", interval="1h").collect()
    monkeypatch.setattr(pl, "__version__", "1.31.0")
    with pytest.raises(siteline.errors.ConfigError, match=r"polars 1\.31\.0 loses points"):
        table.to_polars()
