"""Reads of some machines, devices, tags and series."""

import json
import pickle
import re
import warnings

import pandas as pd
import polars as pl
import pytest
import siteline
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from siteline import SitelineWarning
from siteline.errors import BookmarkError, ConfigError, PageLimitReached, QueryError

HOUR = {"start": "2026-11-01T00:00Z", "end": "2026-11-01T01:00Z", "interval": "5m"}
_COLUMNS = siteline.types.SeriesIds._fields
# The tag "speed" of the machine M1.
SPEED = "4eae7b1a-f00a-4887-80c7-666d555a53dd"
LEVELS = {"machine": 2, "device": 3, "tag": 4}
NAMES = {"machine": "machineId", "device": "deviceId", "tag": "tagGuid"}


@pytest.fixture(scope="module")
def listed(shared_sandbox):
    return list(map(tuple, shared_sandbox.client(labels="machine").series()._handle.series()))


def rows(table):
    columns = ["site_id", "line_id", "machine_id", "device_id", "tag_guid", "timestamp", "value"]
    frame = table.to_pandas(ids="str")[columns]
    return sorted(map(tuple, frame.itertuples(index=False)))


def series_of(table):
    return sorted({row[:5] for row in rows(table)})


def plain(client):
    """The same client without parameters that filter."""
    return client(labels="machine", filter_names={})


def read(client, **query):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SitelineWarning)
        return client.read(**{**HOUR, **query})


def queries(sandbox):
    return [one.query for one in sandbox.stats.log if one.path.endswith("/data")]


def some(values):
    return st.none() | st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=3)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), is_sent=st.booleans(), labels=st.sampled_from(["machine", False]))
def test_a_selection_equals_a_filter_of_everything(shared_sandbox, listed, data, is_sent, labels):
    chosen = data.draw(st.none() | st.lists(st.sampled_from(listed), min_size=1, max_size=4))
    texts = {
        level: data.draw(some({ids[at] for ids in listed if chosen is None or ids in chosen}))
        for level, at in LEVELS.items()
    }
    line = data.draw(st.none() | st.sampled_from(["L1", "L2"]))
    expected = [
        row
        for row in rows(shared_sandbox.expected(**HOUR))
        if (chosen is None or row[:5] in chosen)
        and line in (None, row[1])
        and all(one is None or row[LEVELS[level]] in one for level, one in texts.items())
    ]
    client = shared_sandbox.client(labels=labels, filter_names=NAMES if is_sent else {})
    try:
        table = read(client, **texts, series=chosen, line=line)
    except QueryError:
        assert expected == []
        return
    assert rows(table) == expected
    report = table.report
    assert report.points_read == report.filtered + report.points
    assert not is_sent or report.filtered == 0 or chosen is not None


def test_names_select_like_their_ids(shared_sandbox, listed):
    client = plain(shared_sandbox.client)
    by_name = read(client, tag="temperature")
    names = {row["tag_guid"] for row in client.series().records() if row["name"] == "temperature"}
    assert series_of(by_name) == sorted(ids for ids in listed if ids[4] in names)
    assert 0 < len(names) < len(listed)
    before = shared_sandbox.stats.discovery_requests
    assert rows(read(client, tag=sorted(names))) == rows(by_name)
    assert shared_sandbox.stats.discovery_requests == before, "the client knows them"


def test_names_are_sent_as_ids_in_chains(sandbox):
    client = sandbox.client(labels="machine")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = client.read(**HOUR, machine=["M1", "M3"], tag="temperature")
    sent = queries(sandbox)
    tags = {row[4] for row in series_of(table)}
    assert sorted(set(sent)) == sorted(sent)
    assert len(sent) == 2 * len(tags)
    assert all("machineId=" in query and "tagGuid=" in query for query in sent)
    assert table.report.filtered == 0
    assert {row[2] for row in rows(table)} <= {"M1", "M3"}


def test_points_paid_in_vain_are_one_warning(sandbox):
    client = sandbox.client(labels=False, filter_names={})
    with pytest.warns(SitelineWarning) as caught:
        table = client.read(**HOUR, machine="M1", tag=["none"])
    [warning] = caught
    report = table.report
    assert str(warning.message) == (
        f"{report.filtered:,} of the {report.points_read:,} points that were read are not "
        "selected, but their pages were counted. If the service can filter them, state "
        'how: filter_names={"machine": "...", "tag": "..."}.'
    )
    assert warning.filename == __file__


def test_a_filter_that_the_service_ignores_changes_nothing(sandbox):
    truth = rows(sandbox.client(labels=False).read(**HOUR, machine="M1"))
    [body] = [page.raw for page in sandbox.client().scan(**HOUR, keep_raw=True).pages()]
    sandbox.fault(on="data", times=1, status=200, body=bytes(body).decode())
    client = sandbox.client(labels=False)
    with pytest.warns(SitelineWarning, match="does not filter by machineId: correct filter_names"):
        assert rows(client.read(**HOUR, machine="M1")) == truth


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"tag": "temprature"}, "no series of tag \"temprature\".*Nearest: 'temperature'.*No page"),
        ({"machine": "M1", "device": "D31"}, "machine M1, device D31, all of them together"),
        ({"line": "L2", "machine": "M1"}, "line L2, machine M1, all of them together"),
        ({"series": [("S1", "L1", "M1", "D11", "none")]}, 'series "S1 / L1 / M1 / D11 / none"'),
    ],
)
def test_a_selection_without_series_requests_no_page(sandbox, query, text):
    client = plain(sandbox.client)
    for attempt in (client.read, lambda **all: next(client.scan(**all).pages())):
        with pytest.raises(QueryError) as caught:
            attempt(**HOUR, **query)
        assert re.search(text, str(caught.value), re.DOTALL)
    assert (sandbox.stats.data_requests, sandbox.stats.discovery_requests) == (0, 1)


def test_an_unlisted_line_is_warned_of_before_pages(sandbox):
    client = plain(sandbox.client)
    client.series()
    sandbox.fault(on="data", status=403)
    warns = pytest.warns(SitelineWarning, match="does not list line \"l2\".*Did you mean 'L2'")
    with warns as caught, pytest.raises(siteline.errors.ScopeError):
        client.read(**HOUR, line="l2")
    assert len(caught) == 1


def test_a_series_that_is_not_listed_is_a_warning(shared_sandbox, listed):
    ghost = ("S1", "L1", "M1", "D11", "ghost")
    with pytest.warns(SitelineWarning, match="ghost"):
        table = shared_sandbox.client().read(**HOUR, series=[ghost, listed[0]])
    assert len(table) > 0
    assert table.report.not_listed == ('series "S1 / L1 / M1 / D11 / ghost"',)


def test_without_labels_only_ids_match_unchecked(sandbox):
    client = sandbox.client(labels=False, filter_names={})
    assert len(read(client, tag="temperature")) == 0
    assert len(read(client, machine=["M1", "M9"]).series) == len(read(client, machine="M1").series)
    assert sandbox.stats.discovery_requests == 0


def test_every_read_warns_that_names_cannot_be_compared(sandbox):
    sandbox.fault(on="discovery", status=403, error="insufficient_scope")
    client = sandbox.client()
    for _ in range(2):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert len(client.read(**HOUR, machine="Press")) == 0
            assert {row[2] for row in rows(client.read(**HOUR, machine="M1"))} == {"M1"}
        assert any("not names (machine 'Press'), because" in str(one.message) for one in told)


def test_a_name_without_an_id_is_not_sent(sandbox):
    row = {"siteId": "S1", "lineId": "L1", "deviceId": "D1", "tagName": "t"}
    series = [
        row | {"machineName": "Press", "tagGuid": "T1"},
        row | {"machineId": "M2", "machineName": "Oven", "tagGuid": "T2"},
    ]
    sandbox.fault(on="discovery", status=200, body=json.dumps({"series": series}))
    read(sandbox.client(), machine=["Press", "Oven"])
    assert not any("machineId" in query for query in queries(sandbox))


@pytest.mark.parametrize("form", ["table", "pandas", "polars", "arrow", "stream", "ids", "one"])
def test_series_take_tables_frames_and_ids(shared_sandbox, form):
    client = plain(shared_sandbox.client)
    series = client.series().find("temperature", line="L2")
    given = {
        "table": lambda: series,
        "pandas": series.to_pandas,
        "polars": series.to_polars,
        "arrow": series.to_arrow,
        "stream": lambda: series.to_arrow().to_reader(max_chunksize=1),
        "ids": lambda: (ids for ids in series._handle.series()),
        "one": lambda: series._handle.series()[0],
    }[form]()
    table = read(client, series=given)
    wanted = sorted(map(tuple, series._handle.series()))
    assert series_of(table) == (wanted[:1] if form == "one" else wanted)
    assert table.query.line == ()
    sent = queries(shared_sandbox)[-1]
    assert "lineId=L2" in sent
    assert "siteId=S1" in sent


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (lambda client: [], "series= is empty"),
        (lambda client: client.series().find("none"), "series= is empty"),
        (lambda client: read(client), "series= is a table of points"),
        (lambda client: pd.DataFrame({"tag_guid": ["t"]}), "has no column site_id, line_id"),
        (
            lambda client: pd.DataFrame([[""] * 6], columns=[*_COLUMNS, "tag_guid"]),
            "several columns",
        ),
        (lambda client: client.scan(**HOUR), "series= is a table of series, a DataFrame"),
        (lambda client: pl.DataFrame({"tag_guid": ["t"]}), "has no column site_id, line_id"),
        (lambda client: pl.DataFrame({key: [0.5] for key in _COLUMNS}), "site_id.* holds Float64"),
        (lambda client: "S1", "series= is a table of series, a DataFrame"),
        (lambda client: [("S1", "L1")], "series= is a table of series, a DataFrame"),
    ],
)
def test_wrong_series_are_refused(shared_sandbox, given, text):
    client = plain(shared_sandbox.client)
    with pytest.raises(QueryError, match=text):
        client.scan(**HOUR, series=given(client))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"line": "lineId"}, "has no level line"),
        ({"machine": "pageSize"}, "cannot be sent"),
        ({"machine": "x", "tag": "x"}, "cannot be sent"),
        ({"machine": ""}, "cannot be sent"),
        ({"machine": 1}, "is a mapping of levels to parameters"),
        ("machineId", "is a mapping of levels to parameters"),
    ],
)
def test_wrong_filter_names_are_refused(shared_sandbox, given, text):
    with pytest.raises(ConfigError, match=text):
        shared_sandbox.client(filter_names=given)


def test_a_filter_that_a_level_sends_is_refused(shared_sandbox):
    with pytest.raises(
        QueryError, match='filters= contains "machineId", which machine= or series= also'
    ):
        shared_sandbox.client().scan(**HOUR, machine="M1", filters={"machineId": "M2"})


def test_a_bookmark_belongs_to_its_selection(sandbox):
    client = sandbox.client(labels="machine", filter_names={"tag": "tagGuid"})
    query = {**HOUR, "tag": "temperature", "page_size": 5}
    with pytest.raises(PageLimitReached) as caught:
        client.read(**query, max_pages=2)
    bookmark, partial = caught.value.bookmark, caught.value.partial
    again = pickle.loads(pickle.dumps(siteline.types.Bookmark.from_bytes(bookmark.to_bytes())))
    fresh = sandbox.client(labels="machine", filter_names={"tag": "tagGuid"})
    table = fresh.scan(**query).resume(again, onto=partial).collect()
    assert rows(table) == rows(sandbox.client(labels="machine").read(**query))
    for other in ({"tag": "speed"}, {"tag": "temperature", "machine": "M1"}, {"tag": None}):
        with pytest.raises(BookmarkError):
            fresh.scan(**{**query, **other}).resume(again, onto=partial).collect()


def test_pickled_scans_keep_the_selection(shared_sandbox):
    client = plain(shared_sandbox.client)
    scan = client.scan(**HOUR, tag="temperature", machine=["M2", "M1"])
    assert str(scan.query).endswith("machine=M1 machine=M2 tag=temperature")
    query = scan.query
    assert (query.machine, query.tag, query.device) == (("M1", "M2"), ("temperature",), ())
    assert scan.query != client.scan(**HOUR, tag="temperature").query
    assert pickle.loads(pickle.dumps(scan.query)) == scan.query


def test_pages_and_records_are_selected(shared_sandbox):
    scan = plain(shared_sandbox.client).scan(**HOUR, tag="temperature", page_size=30)
    pages = list(scan.pages())
    points = len(read(plain(shared_sandbox.client), tag="temperature"))
    assert sum(map(len, pages)) == len(list(scan.records())) == points
    assert sum(page.report.filtered for page in pages) > 0


def test_a_store_keeps_what_a_selection_leaves_out(sandbox, store):
    client = sandbox.client(labels="machine")
    query = {**HOUR, "line": "L1", "store": store}
    some = client.read(**query, tag="temperature")
    assert {row[:5] for row in rows(some)}
    assert some.report.pages == 1
    whole = client.read(**query)
    assert whole.report.pages == 0
    assert len(whole.series) > len(some.series)
    assert rows(some) == rows(
        sandbox.client(labels="machine").read(**HOUR, line="L1", tag="temperature")
    )


def test_many_filtered_pages_are_no_endless_chain(sandbox):
    client = sandbox.client(labels=False, filter_names={})
    table = read(client, tag=["none"], page_size=1, end="2026-11-01T00:30Z")
    assert len(table) == 0
    assert table.report.pages == table.report.filtered > 60


def test_a_profile_states_filter_names(sandbox, tmp_path, monkeypatch, set_variables):
    monkeypatch.setenv("SITELINE_CONFIG", str(tmp_path / "config.toml"))
    set_variables(sandbox.env())
    (tmp_path / "config.toml").write_text('[default.filter_names]\nmachine = "machineId"\n')
    client = siteline.Client(labels=False)
    client.read(**HOUR, machine="M1")
    assert [query.count("machineId=M1") for query in queries(sandbox)] == [1]


def test_series_of_partial_ids_are_selected(sandbox):
    body = {"sites": [{"siteId": "S1", "tags": [{"tagGuid": SPEED, "name": "speed"}]}]}
    sandbox.fault(on="discovery", times=1, status=200, body=json.dumps(body))
    client = plain(sandbox.client)
    assert [row[4] for row in series_of(read(client, tag="speed"))] == [SPEED]
    assert series_of(read(client, tag="speed", machine="M2")) == []
    assert series_of(read(client, series=client.series())) != []
