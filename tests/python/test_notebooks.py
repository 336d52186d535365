"""`repr` of objects, and their HTML for notebooks."""

import asyncio
import math

import numpy as np
import pandas as pd
import siteline
from kit.feeds import make_feed
from kit.markup import TAGS, Reader, read_html

EVIL = '<script>alert("x")</script>'


def scan_of(client, **options):
    asked = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z",
             "interval": "1h", "page_size": 30}  # fmt: skip
    return client.scan(**{**asked, **options})


def test_a_client_shows_the_service_the_subject_and_the_allowance(sandbox):
    client = sandbox.client(daily_allowance=1_000)
    assert "compared at the first reply" in read_html(client).text
    scan_of(client).collect()
    shown = read_html(client)
    for word in (sandbox.base_url, client.subject, "3 used of 1,000", "997 left", "agree"):
        assert word in shown.text
    assert repr(client) == f'<Client {client.base_url} subject="{client.subject}">'
    client.close()
    assert repr(client).endswith(", closed>")
    assert "· closed" in read_html(client).text
    assert read_html(client.allowance).text.startswith("Allowance")
    unlimited = read_html(sandbox.client().allowance)
    assert "no daily allowance is set" in unlimited.text
    assert "svg" not in {tag for tag, _ in unlimited.seen}


def test_a_scan_shows_its_query_and_makes_no_request(sandbox):
    client = sandbox.client()
    scan = scan_of(client, filters={"machineId": ["M1", "M2"]})
    for shown in (read_html(scan), read_html(scan.query)):
        for word in ("M1, M2", "1 h", "6 buckets a series", "2026-11-01 00:00 → 2026-11-01 06:00"):
            assert word in shown.text
    assert "nothing read yet" in read_html(scan).text
    assert sandbox.stats.data_requests == sandbox.stats.token_requests == 0
    scan.collect()
    requests = sandbox.stats.data_requests
    assert "nothing read yet" not in read_html(scan).text
    assert sandbox.stats.data_requests == requests


def test_the_asyncio_classes_show_the_same(sandbox):
    client = sandbox.async_client()
    scan = scan_of(client)
    assert "Async" in read_html(client).text
    assert read_html(scan).text.startswith("AsyncScan")
    assert repr(scan).startswith("<AsyncScan siteId=S1 ")
    assert repr(client).startswith("<AsyncClient http://127.0.0.1")
    asyncio.run(scan.collect())
    assert "points" in read_html(scan).text


def test_a_table_shows_its_provenance_its_lines_and_its_first_points(sandbox):
    table = scan_of(sandbox.client()).collect()
    shown = read_html(table)
    for word in ("72 points", "12 series", "3 pages", "127.0.0.1", "read 2026-11-20 00:00",
                 "siteId=S1", "… and 4 more series", "… and 67 more rows",
                 "2026-11-01 00:00 → 2026-11-01 06:00 · UTC · every 1 h",
                 "sample_count"):  # fmt: skip
        assert word in shown.text
    assert sum(tag == "svg" for tag, _ in shown.seen) == 8
    assert repr(table) == "<Table 72 points, 12 series, 3 pages>"


def test_tables_show_names_and_repeated_ids_once(sandbox):
    table = scan_of(sandbox.client()).collect()
    shown = read_html(table).text
    assert shown.count("M1 / D11 / pieces [1]") == 2, "the line, and above the first rows"
    ids = next(table.records())
    assert shown.count(ids["tag_guid"]) == shown.count("machine_id M1") == 1
    unnamed = read_html(scan_of(sandbox.client(labels=False)).collect()).text
    assert unnamed.count(ids["tag_guid"]) == 2
    # Two rows of each series: the ids of the second one are blank.
    pairs = read_html(table.resample("3h", "mean")).text
    assert pairs.count("M1 / D11 / speed [1/min]") == 2
    assert "buckets expected" in pairs


def test_times_are_in_the_zone_of_the_table(sandbox, tmp_path):
    client = sandbox.client(tz="Asia/Tokyo")
    scan = scan_of(client)
    table = scan.collect()
    tables = [
        table,
        table.resample("2h", "mean", partial="keep"),
        table.completeness("2h"),
        table.pivot(),
    ]
    for one in (scan, *tables):
        shown = read_html(one).text
        assert "2026-11-01 09:00 → 2026-11-01 15:00" in shown
        assert "2026-11-01 00:00" not in shown
        assert "Asia/Tokyo" in shown
    assert "until 2026-11-21 09:00 Asia/Tokyo" in read_html(sandbox.client(
        tz="Asia/Tokyo", daily_allowance=9)).text  # fmt: skip
    with siteline.Store(tmp_path / "s.siteline", tz="Asia/Tokyo") as store:
        client.sync(make_feed(), store)
        shown = read_html(store.read("line-2", start="2026-11-16T00:00")).text
        assert "from 2026-11-16 00:00 · Asia/Tokyo" in shown
        assert "2026-11-15 15:00" not in shown
        assert "2026-11-19 09:00" in read_html(store).text


def test_a_completeness_draws_missing_buckets(sandbox):
    sandbox.load(one_series(600).drop(index=range(120, 180)))
    asked = {"start": "2026-11-01T00:00Z", "end": "2026-11-01T10:00Z", "interval": "1m"}
    whole = sandbox.client().scan(site="S1", **asked).collect()
    shown = read_html(whole.completeness("1h"))
    assert "90.0% 540 of 600 60 0" in shown.text
    full, missing = (attrs["d"] for tag, attrs in shown.seen if tag == "path")
    assert full.count("z") == 9
    assert missing == "M40.0 0.0h19.0v26.0h-19.0z", "the third of ten hours"
    many = read_html(whole.completeness("2m"))
    assert len(str(many.seen)) < 30_000, "at most a bar for each pixel"


def test_discovery_shows_its_series(sandbox):
    shown = sandbox.client().discover()._repr_html_()
    for word in ("Discovery", "18 series", "M1 / D11 / pieces [1]", "bytes"):
        assert word in shown
    text = siteline.types.Discovery(b'{"x": "<script>"}')._repr_html_()
    assert "0 series" in text
    assert "<script" not in text


def one_series(points, tag="T1", value=float):
    times = pd.Timestamp("2026-11-01T00:00Z") + pd.to_timedelta(range(points), unit="min")
    frame = pd.DataFrame({"timestamp": times})
    for name, text in zip(["site_id", "line_id", "machine_id", "device_id", "tag_guid"],
                          ["S1", None, "M1", "D1", tag], strict=True):  # fmt: skip
        frame[name] = text
    frame["value"] = [value(n) for n in range(points)]
    frame["minimum"] = frame["maximum"] = None
    return frame.assign(sample_count=1)[list(siteline.types.Record._fields)]


def test_external_texts_are_escaped_and_truncated(sandbox):
    tags = [EVIL, "a" * 500, "right\u202eleft\x1b[31m", "<b>&amp;", "' onload='x"]
    sandbox.load(pd.concat([one_series(3, tag) for tag in tags]))
    scan = sandbox.client().scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T01:00Z",
                                 filters={"tagGuid": tags})  # fmt: skip
    for shown in (scan.query, scan, scan.collect(), next(scan.pages())):
        html = shown._repr_html_()
        assert "<script" not in html
        assert "\u202e" not in html
        assert "\x1b" not in html
        assert "a" * 301 not in html
        reader = Reader(html)
        assert EVIL in reader.text
        assert {tag for tag, _ in reader.seen} <= TAGS


def lines(table):
    """The line of each series: its stretches, each as its first and last pixel."""
    return [
        [(stretch[0]["x"], stretch[-1]["x"]) for stretch in series["stretches"]]
        for series in table._handle.preview()["series"]
    ]


def test_missing_points_are_gaps_in_the_line(sandbox):
    whole = one_series(600, value=lambda n: math.sin(n / 30))
    sandbox.load(whole.drop(index=range(200, 300)))
    asked = {"start": "2026-11-01T00:00Z", "end": "2026-11-01T10:00Z", "interval": "1m"}
    table = sandbox.client().scan(site="S1", **asked).collect()
    assert lines(table) == [[(0, 66), (100, 199)]]
    longer = sandbox.client().scan(site="S1", **{**asked, "end": "2026-11-01T20:00Z"}).collect()
    assert lines(longer) == [[(0, 33), (50, 99)]]


def test_empty_and_unusual_tables_are_shown(sandbox):
    empty = scan_of(sandbox.client(labels=False), site="S1", filters={"tagGuid": "none"}).collect()
    assert "no points" in read_html(empty).text
    query = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z"}
    sandbox.load(one_series(1, value=lambda _: None))
    single = sandbox.client().scan(**query).collect()
    assert repr(single) == "<Table 1 point, 1 series, 1 page>"
    assert "\N{EN DASH}" in read_html(single).text
    assert "1 points" not in read_html(single).text
    frame = one_series(3, "T2", value=float)
    frame["minimum"], frame["maximum"] = 9.0, 1.0
    sandbox.load(frame)
    assert "Notes: " in read_html(sandbox.client().scan(**query).collect()).text


def test_a_month_that_begins_in_the_year_0_is_shown(sandbox):
    start = np.datetime64("0001-01-02T00:30", "us")
    sandbox.load(
        pd.DataFrame({"timestamp": pd.Series([start]).dt.tz_localize("UTC"), "value": 1.0}),
        bucket="30m",
    )
    table = sandbox.client().read(start="0001-01-02", end="0001-01-03", interval="30m")
    months = table.resample("1mo", "mean", tz="Asia/Tokyo", partial="keep")
    assert "before the year 1" in read_html(months).text


def test_the_size_of_the_html_does_not_grow_with_the_points(sandbox):
    sizes = []
    for points in (1_000, 20_000):
        sandbox.load(one_series(points))
        scan = sandbox.client().scan(site="S1", start="2026-11-01T00:00Z",
                                     end="2026-12-10T00:00Z", settle_lag="1m")  # fmt: skip
        sizes.append(len(scan.collect()._repr_html_()))
    assert max(sizes) < 30_000


def test_pages_and_resumed_scans_are_shown(sandbox):
    scan = scan_of(sandbox.client())
    first, *_, last = scan.pages()
    assert repr(first) == "<Page 1 with 30 points of 5 series>"
    assert repr(last).endswith(", the last>")
    for words in ("Page 1", "30 points"):
        assert words in read_html(first).text
    rest = scan.resume(first.bookmark)
    assert repr(rest).endswith(", going on after 1 page>")
    assert "without 1 earlier page" in read_html(rest.collect()).text


def test_what_is_wider_than_a_notebook_scrolls_in_its_own_box(sandbox, store):
    client = sandbox.client(daily_allowance=1_000)
    long = {"machineId": [f"a-machine-with-a-long-name-{n}" for n in range(40)]}
    scan = scan_of(client)
    page = next(scan.pages())
    feed = make_feed()
    plan = client.plan(feed, store)
    for text in (str(plan), read_html(plan).text):
        assert "never read" in text
    report = client.sync(feed, store)
    shown = [client, client.allowance, scan_of(client, filters=long), scan.query, page,
             scan.collect(), scan, feed, store, plan, report,
             client.plan(scan.split(3)), store.read("line-2"), store.coverage("line-2"),
             store.lateness("line-2")]  # fmt: skip
    tables = 0
    for one in shown:
        reader = Reader(one._repr_html_())
        assert not reader.unboxed, type(one)
        tables += sum(tag == "table" for tag, _ in reader.seen)
    assert tables > len(shown)
    wrapped = read_html(scan_of(client, filters=long))
    cells = [attrs["style"] for tag, attrs in wrapped.seen if tag == "td"]
    assert all("white-space:normal" in style for style in cells[1::2])
