"""Chains that the service does not end, and reads that go on after an error."""

import asyncio
import json
import pickle

import pytest
import siteline
from kit.ranges import SIX_HOURS

DAY = {"site": "S1", "line": "L1", "interval": "1h"}


@pytest.fixture
def endless(sandbox):
    """Every data reply is an empty page with a new cursor."""
    sandbox.fault(on="data", every=1, empty_page=True)
    return sandbox


def feed(**options):
    return siteline.Feed("line-1", **DAY, since="2026-11-19", window="6h", **options)


@pytest.mark.fault("P14")
def test_a_chain_without_an_end_has_a_name_and_says_what_it_cost(endless):
    client = endless.client()
    scan = client.data(**SIX_HOURS)
    with pytest.raises(siteline.EndlessChain, match="does not end: 1024 pages") as caught:
        scan.collect()
    error = caught.value
    assert endless.stats["data_requests"] == client.allowance.used == 1_024
    assert "each counted against the allowance" in str(error)
    assert "max_pages=" in error.hint
    assert isinstance(error, siteline.errors.ProtocolError)
    assert type(pickle.loads(pickle.dumps(error))) is siteline.EndlessChain
    with pytest.raises(siteline.SitelineError):
        client.data(**SIX_HOURS, max_pages=3).collect()
    assert endless.stats["data_requests"] == 1_027


@pytest.mark.fault("P14")
def test_once_the_pages_are_known_ten_times_as_many_are_read(sandbox):
    client = sandbox.client()
    client.data(**SIX_HOURS).collect()
    sandbox.fault(on="data", every=1, empty_page=True)
    before = sandbox.stats["data_requests"]
    with pytest.raises(siteline.EndlessChain, match="3 were expected"):
        client.data(**SIX_HOURS).collect()
    assert sandbox.stats["data_requests"] - before == 100


@pytest.mark.fault("P13", "P14")
def test_what_a_sync_sets_aside_is_shown_everywhere_and_not_paid_for_again(endless, tmp_path):
    client = endless.client()
    with siteline.Store(tmp_path / "plant.siteline") as store:
        with pytest.raises(siteline.EndlessChain) as caught:
            client.sync(feed(), store, until="2026-11-19T06:00Z")
        assert "is set aside until 2026-11-21" in str(caught.value)
        spent = endless.stats["data_requests"]
        endless.clear_faults()
        report = client.sync(feed(), store)
        assert endless.stats["data_requests"] - spent == report.requests > 0
        (aside,) = report["line-1"].set_aside
        assert (aside.start.hour, aside.end.hour, aside.error) == (0, 6, "EndlessChain")
        assert aside.pages == 1_024
        assert not report.complete
        assert report.resumes_at == aside.until
        line = "2026-11-19 00:00 to 2026-11-19 06:00 set aside until 2026-11-21 00:00 UTC"
        for text in (str(report), report._repr_html_()):
            assert line in text
        assert (
            json.loads(json.dumps(report.to_dict()))["feeds"][0]["set_aside"][0]["pages"] == 1_024
        )
        assert pickle.loads(pickle.dumps(report)) == report
        with pytest.raises(siteline.UnreadRange, match=r"line-1: .* set aside until") as left:
            report.raise_for_incomplete()
        assert (left.value.spans, left.value.retry_at) == (((aside.start, aside.end),), aside.until)

        coverage = store.coverage("line-1", now=endless.clock.now())
        assert [one.set_aside for one in coverage if one.set_aside] == [aside.until]
        for text in (str(coverage), coverage._repr_html_()):
            assert (
                "set aside until 2026-11-21 00:00 UTC: 2026-11-19 00:00 to 2026-11-19 06:00" in text
            )
        assert "set_aside" in coverage.to_pandas().columns
        with pytest.raises(siteline.UnreadRange, match="was not read to its end"):
            store.points("line-1", "2026-11-19", "2026-11-19T12:00Z").to_pandas()

        again = client.sync(feed(), store)
        assert (again.requests, again.complete) == (0, False)
        plan = client.plan(feed(), store)
        assert repr(plan) == "<Plan nothing to read, 1 range set aside>"
        assert "Nothing to read at 2026-11-20 00:00 UTC, 1 range set aside" in str(plan)
        assert "1 range set aside" in plan._repr_html_()
        assert pickle.loads(pickle.dumps(plan)) == plan
        asked = client.plan(feed(), store, reread=("2026-11-19T00:00Z", "2026-11-19T06:00Z"))
        assert (asked.set_aside, len(asked.tasks)) == (0, 1)
        done = client.sync(feed(), store, reread=("2026-11-19T00:00Z", "2026-11-19T06:00Z"))
        assert done.complete
        assert done["line-1"].set_aside == ()
        assert "set aside" not in str(store.coverage("line-1", now=endless.clock.now()))


@pytest.mark.fault("P4", "P13")
def test_the_log_says_what_is_left_out_and_the_error_why(sandbox, tmp_path, caplog):
    cursor = {"nextCursor": "x" * 66_000}
    sandbox.fault(on="data", times=2, members=cursor)
    client, begun = sandbox.client(), sandbox.stats["data_requests"]
    with siteline.Store(tmp_path / "plant.siteline") as store:
        with pytest.raises(siteline.RequestRejected, match="a cursor of 66000 bytes") as caught:
            client.sync(feed(), store, until="2026-11-19T06:00Z")
        assert "is set aside until 2026-11-21T00:00:00Z" in caught.value.hint
        assert sandbox.stats["data_requests"] - begun == 2

        def warned():
            texts = [one.getMessage() for one in caplog.records if one.name == "siteline.sync"]
            caplog.clear()
            return [text for text in texts if "2026-11-19T06:00:00Z is s" in text]

        (text,) = warned()
        assert text.startswith("line-1: 2026-11-19T00:00:00Z to 2026-11-19T06:00:00Z is skipped: ")
        assert client.sync(feed(), store, until="2026-11-19T06:00Z").requests == 0
        (text,) = warned()
        assert "is set aside until 2026-11-21T00:00:00Z (RequestRejected); reread=" in text
        again = ("2026-11-19T00:00Z", "2026-11-19T06:00Z")
        assert client.sync(feed(), store, until="2026-11-19T06:00Z", reread=again).complete
        assert warned() == []


@pytest.mark.fault("P13")
def test_other_feeds_of_the_run_go_on_and_a_day_later_all_is_read(sandbox, tmp_path):
    """Both reach the newest window; only the first feed's has no end."""
    sandbox.fault(on="data", times=2, members={"nextCursor": "x" * 66_000})
    other = siteline.Feed("line-2", **{**DAY, "line": "L2"}, since="2026-11-19", window="6h")
    with siteline.Store(tmp_path / "plant.siteline") as store:
        client = sandbox.client()
        with pytest.raises(siteline.RequestRejected):
            client.sync([feed(), other], store)
        report = client.sync([feed(), other], store)
        assert [len(report[name].set_aside) for name in ("line-1", "line-2")] == [1, 0]
        assert len(store.points("line-2", "2026-11-19", "2026-11-19T23:00Z")) > 0
        sandbox.clock.advance("23h")
        assert len(client.sync([feed(), other], store)["line-1"].set_aside) == 1
        sandbox.clock.advance("1h")
        report = client.sync([feed(), other], store)
        assert report.complete
        assert report["line-1"].set_aside == ()
        points = store.points("line-1", "2026-11-19", "2026-11-20").to_pandas()
        truth = sandbox.truth(**DAY, start="2026-11-19", end="2026-11-20")
        assert len(points) == len(truth)


@pytest.mark.fault("P15")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_collect_goes_on_after_an_error_where_it_stopped(sandbox, way):
    """Its pages are paid for: the same cursor is sent again."""

    def collect(scan):
        if way == "sync":
            return scan.collect()

        async def collected():
            return await scan.collect()

        return asyncio.run(collected())

    client = sandbox.client() if way == "sync" else sandbox.async_client()
    whole = sandbox.truth(**{key: SIX_HOURS[key] for key in SIX_HOURS if key != "page_size"})
    scan = client.data(**SIX_HOURS)
    sandbox.fault(on="data", skip=1, times=4, status=503)
    with pytest.raises(siteline.ServiceUnavailable) as caught:
        collect(scan)
    assert caught.value.bookmark.pages == 1
    assert sandbox.stats["data_requests"] == 1 + 4
    assert len(collect(scan)) == len(whole)
    assert sandbox.stats["data_requests"] == 1 + 4 + 2


@pytest.mark.fault("P15")
@pytest.mark.parametrize(
    ("fault", "error", "spent"),
    [
        ({"reset": True, "times": 4}, siteline.TransportError, 4),
        ({"body": "{}", "times": 1}, siteline.ProtocolError, 1),
        ({"status": 429, "retry_after": 600, "times": 1}, siteline.RateLimited, 1),
        ({"status": 403, "times": 1}, siteline.ScopeError, 1),
    ],
)
def test_frames_of_one_scan_share_the_pages_of_a_read_that_failed(sandbox, fault, error, spent):
    scan = sandbox.client().data(**SIX_HOURS)
    sandbox.fault(on="data", skip=1, **fault)
    with pytest.raises(error) as caught:
        scan.to_pandas()
    assert (caught.value.bookmark.pages, len(caught.value.partial)) == (1, 30)
    assert sandbox.stats["data_requests"] == 1 + spent
    sandbox.clock.advance("11m")
    assert len(scan.to_arrow()) == 72
    assert sandbox.stats["data_requests"] == 1 + spent + 2
    # What the error has is not changed by what was read since.
    assert len(caught.value.partial) == 30


@pytest.mark.fault("P15")
def test_a_collect_that_used_up_the_allowance_goes_on_the_next_day(sandbox):
    scan = sandbox.client(daily_allowance=2, ledger="memory").data(**SIX_HOURS)
    for _ in range(2):
        with pytest.raises(siteline.AllowanceExhausted) as caught:
            scan.collect()
        assert caught.value.bookmark.pages == sandbox.stats["data_requests"] == 2
    sandbox.clock.advance("1d")
    assert len(scan.collect()) == 72
    assert sandbox.stats["data_requests"] == 3


@pytest.mark.fault("P15")
def test_a_collect_whose_cursor_is_of_no_use_begins_again(sandbox):
    scan = sandbox.client().data(**SIX_HOURS)
    sandbox.fault(on="data", repeat_cursor=True, skip=1)
    with pytest.raises(siteline.CursorLoop):
        scan.collect()
    sandbox.clear_faults()
    before = sandbox.stats["data_requests"]
    assert len(scan.collect()) == 72
    assert sandbox.stats["data_requests"] - before == 3
