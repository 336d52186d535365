"""The reports of tables and pages, and the provenance of their frames."""

import json

import pytest
import siteline
from kit.feeds import make_feed
from siteline.types import StoreReport

RANGE = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z", "interval": "1h"}


def test_a_page_counts_its_own_points(sandbox):
    pages = list(sandbox.client().scan(**RANGE, page_size=30).pages())
    reports = [page.report for page in pages]
    assert [report.points for report in reports] == [len(page) for page in pages] == [30, 30, 12]
    assert [report.resumed_after_pages for report in reports] == [0, 1, 2]


def test_derived_tables_keep_the_report(sandbox):
    table = sandbox.client().scan(**RANGE).collect()
    for made in (table.find(line="L1"), table.resample("2h", "sum"), table.completeness().head(1)):
        assert made.report == table.report


def test_the_truth_has_no_pages(sandbox):
    truth = sandbox.expected(site="S1", interval="1h", start=RANGE["start"], end=RANGE["end"])
    report = truth.report
    assert report.pages == report.resumed_after_pages == report.revised == 0
    assert report.points == report.points_read == len(truth) > 0
    assert report.series == truth.to_pandas()["tag_guid"].nunique()
    assert truth.to_pandas().attrs["siteline"] == {"tz": "UTC", "labels": False}
    assert "page" not in truth._repr_html_()


def test_a_store_reports_its_range_and_withdrawn_points(sandbox, tmp_path):
    client = sandbox.client()
    with siteline.Store(tmp_path / "plant.siteline") as store:
        synced = client.sync(make_feed(interval="1h", start="2026-11-18T00:00Z"), store)
        table = store.read("line-2", "2026-11-18T00:00Z", "2026-11-19T00:00Z")
        report = table.report
        assert isinstance(report, StoreReport)
        assert (report.feed, report.final, report.complete) == ("line-2", False, True)
        assert report.sequence == synced["line-2"].sequence
        assert report.read == ((report.start, report.end),)
        assert (report.withdrawn, report.unread, report.forgotten) == (0, (), ())
        assert json.loads(json.dumps(report.to_dict()))["settled"] == [
            ["2026-11-18T00:00:00Z", "2026-11-19T00:00:00Z"]
        ]
        assert table.find("speed").report == report


def test_attributes_are_in_frames_and_in_arrow(sandbox, tmp_path):
    client = sandbox.client()
    table = client.scan(**RANGE, tz="Europe/Berlin").collect()
    attributes = table.to_pandas().attrs["siteline"]
    assert set(attributes) == {"query", "host", "read_at", "pages", "tz", "labels"}
    assert attributes["tz"] == "Europe/Berlin"
    assert json.loads(table.to_arrow().schema.metadata[b"siteline"]) == attributes
    table.to_parquet(tmp_path / "points.parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    schema = parquet.read_schema(tmp_path / "points.parquet")
    assert json.loads(schema.metadata[b"siteline"]) == attributes
    with siteline.Store(tmp_path / "plant.siteline") as store:
        client.sync(make_feed(start="2026-11-19T00:00Z"), store)
        stored = store.read("line-2").to_pandas().attrs["siteline"]
    assert set(stored) == {"store", "feed", "sequence", "coverage", "tz", "labels"}


def test_a_report_shows_the_fields_with_a_value(shared_sandbox):
    report = shared_sandbox.client().read(site="S1", start="-1h", interval="1m").report
    assert repr(report).startswith(f"ReadReport(pages=1, points={report.points}, points_read=")
    assert "=0" not in repr(report)
    assert "None" not in repr(report)
