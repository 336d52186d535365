"""Chains that the service does not end."""

import pickle

import pytest
import siteline

DAY = {"site": "S1", "line": "L1", "interval": "1h"}


@pytest.fixture
def endless(sandbox):
    """Every data reply is an empty page with a new cursor."""
    sandbox.fault(on="data", every=1, empty_page=True)
    return sandbox


def feed(**options):
    return siteline.Feed("line-1", **DAY, start="2026-11-19", window="6h", **options)


def test_what_a_sync_sets_aside_is_shown_everywhere_and_not_paid_for_again(endless, tmp_path):
    client = endless.client()
    with siteline.Store(tmp_path / "plant.siteline") as store:
        with pytest.raises(siteline.errors.EndlessChain) as caught:
            client.sync(feed(), store, until="2026-11-19T06:00Z")
        assert "is skipped until 2026-11-21" in str(caught.value)
        assert type(pickle.loads(pickle.dumps(caught.value))) is siteline.errors.EndlessChain
        spent = endless.stats.data_requests
        assert spent == client.allowance.used == 1_024
        endless.clear_faults()
        report = client.sync(feed(), store)
        assert endless.stats.data_requests - spent == report.requests > 0
        (aside,) = report["line-1"].skipped
        assert (aside.start.hour, aside.end.hour, aside.error) == (0, 6, "EndlessChain")
        assert aside.pages == 1_024
        assert not report.complete
        assert report.resumes_at == aside.until
        line = "2026-11-19 00:00 to 2026-11-19 06:00 skipped until 2026-11-21 00:00 UTC"
        for text in (str(report), report._repr_html_()):
            assert line in text
        with pytest.raises(siteline.errors.UnreadRange, match=r"line-1: .* skipped until") as left:
            report.raise_for_incomplete()
        assert (left.value.spans, left.value.retry_at) == (((aside.start, aside.end),), aside.until)

        coverage = store.coverage("line-1", now=endless.clock.now())
        assert [one.skipped_until for one in coverage if one.skipped_until] == [aside.until]
        for text in (str(coverage), coverage._repr_html_()):
            assert (
                "skipped until 2026-11-21 00:00 UTC: 2026-11-19 00:00 to 2026-11-19 06:00" in text
            )
        assert "skipped_until" in coverage.to_pandas().columns
        with pytest.raises(siteline.errors.UnreadRange, match=r"did not end\. A sync retries it"):
            store.read("line-1", "2026-11-19", "2026-11-19T12:00Z").to_pandas()

        again = client.sync(feed(), store)
        assert (again.requests, again.complete) == (0, False)
        plan = client.plan(feed(), store)
        assert repr(plan) == "<Plan nothing to read, 1 range skipped>"
        assert "1 range skipped" in plan._repr_html_()
        asked = client.plan(feed(), store, reread=("2026-11-19T00:00Z", "2026-11-19T06:00Z"))
        assert (asked.skipped, len(asked.tasks)) == (0, 1)
        done = client.sync(feed(), store, reread=("2026-11-19T00:00Z", "2026-11-19T06:00Z"))
        assert done.complete
        assert done["line-1"].skipped == ()
        assert "skipped" not in str(store.coverage("line-1", now=endless.clock.now()))
