"""The reports of tables."""

RANGE = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z", "interval": "1h"}


def test_the_report_of_the_truth_counts_no_pages(sandbox):
    truth = sandbox.expected(**RANGE)
    report = truth.report
    assert report.pages == report.resumed_after_pages == report.revised == 0
    assert report.points == report.points_read == len(truth) > 0
    assert report.series == truth.to_pandas()["tag_guid"].nunique()
    assert truth.to_pandas().attrs["siteline"] == {}
    assert "page" not in truth._repr_html_()
