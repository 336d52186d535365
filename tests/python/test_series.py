"""``Client.series()``: a table of the series that discovery lists, with names and units."""

import asyncio
import json
import pickle
import warnings

import pytest
import siteline
from siteline import SitelineWarning
from siteline.errors import QueryError, StoreError
from siteline.shapes import DiscoveryShape, Shape
from siteline.types import SeriesIds

IDS = ("S1", "L1", "M1", "D11")
RANGE = {"start": "2026-11-01", "end": "2026-11-02", "interval": "1h"}


@pytest.fixture
def of(shared_sandbox):
    """The table of series of a discovery response."""

    def read(body, **shape):
        stated = Shape(discovery=DiscoveryShape(**shape)) if shape else None
        text = body if isinstance(body, str) else json.dumps(body)
        shared_sandbox.fault(on="discovery", times=1, status=200, body=text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SitelineWarning)
            return shared_sandbox.client(shape=stated).series()

    return read


def rows(table):
    return list(table.records())


def ids(row):
    return SeriesIds(*list(row.values())[:5])


def listed(table):
    return [row["listed"] for row in table.records()]


def tree(*tags):
    """The form of the sandbox."""
    device = {"deviceId": "D11", "tags": [*tags]}
    machine = {"machineId": "M1", "name": "Press", "devices": [device]}
    return {"sites": [{"siteId": "S1", "lines": [{"lineId": "L1", "machines": [machine]}]}]}


SPEED = {"tagGuid": "t1", "name": "speed", "unit": "1/min"}
FLAT = {"siteId": "S1", "lineId": "L1", "machineId": "M1", "deviceId": "D11", **SPEED}
FORMS = {
    "a tree": tree(SPEED),
    "a list": {"resources": [FLAT]},
    "other spellings": {"Tags": [{"Site_ID": "S1", "line-id": "L1", "machineid": "M1"}
                                 | {"DeviceId": "D11", "TAGGUID": "t1"}
                                 | {"displayName": "speed", "engineeringUnit": "1/min"}]},
    "ids of items": {"sites": [{"id": "S1", "lines": [{"id": "L1", "machines": [
        {"id": "M1", "devices": [{"id": "D11", "tags": [
            {"id": 7, "guid": "t1", "name": "speed", "unit": "1/min"}]}]}]}]}]},
    "mappings": {"sites": {"S1": {"lines": {"L1": {"machines": {"M1": {"devices": {"D11": {
        "tags": {"t1": {"name": "speed", "unit": "1/min"}}}}}}}}}}},
    "objects beside": {"data": {"series": [{**SPEED, "site": {"id": "S1"}, "line": {"lineId": "L1"},
                                            "machine": {"id": "M1", "name": "Press"},
                                            "device": {"id": "D11"}}]}},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_series_is_found_in_any_form(of, form):
    [one] = rows(of(FORMS[form]))
    assert ids(one) == (*IDS, "t1")
    assert (one["name"], one["unit"]) == ("speed", "1/min")
    machine = "Press" if "Press" in json.dumps(FORMS[form]) else "M1"
    assert one["label"] == f"{machine} / D11 / speed [1/min]"
    assert one["path"].endswith(" / D11 / speed")
    assert one["listed"] is True


def test_further_members_and_unrecognised_ones_are_kept(of):
    body = tree({**SPEED, "limits": {"high": 9}, "digits": 2, "path": "x"}, {"tagGuid": "t2"})
    body |= {"subject": "me", "groups": [{"name": "all"}], "cursors": {"next": None}}
    table = of(body)
    first = rows(table)[0]
    assert (first["limits"], first["digits"], first["path_"]) == ('{"high": 9}', 2, "x")
    assert first["machine_name"] == "Press"
    report = table.report
    assert report.series == ("sites[].lines[].machines[].devices[].tags[]",)
    assert report.ids["line_id"] == ("sites[].lines[].lineId",)
    assert report.units == ("sites[].lines[].machines[].devices[].tags[].unit",)
    assert report.not_recognised == ("subject", "groups[]", "cursors")
    assert (report.listed, report.repeated, report.seen) == (2, 0, 0)
    assert pickle.loads(pickle.dumps(report)) == report
    assert report.to_dict()["ids"]["line_id"] == ["sites[].lines[].lineId"]


def test_equal_names_take_the_next_depth(of):
    flat = [FLAT, {**FLAT, "deviceId": "D12", "tagGuid": "t2"}, {**FLAT, "tagGuid": "t3"}]
    table = of({"resources": flat[:2]})
    assert [row["label"] for row in table.records()] == [
        "M1 / D11 / speed [1/min]",
        "M1 / D12 / speed [1/min]",
    ]
    # Nothing but the tag distinguishes two of these.
    assert [row["label"] for row in of({"resources": flat}).records()] == [
        " / ".join((*IDS[:3], device, tag))
        for device, tag in (("D11", "t1"), ("D12", "t2"), ("D11", "t3"))
    ]
    other = {**FLAT, "lineId": "L9", "tagGuid": "t4", "unit": None}
    assert [
        row["label"] for row in of({"resources": [FLAT, {**other, "unit": "1/min"}]}).records()
    ] == ["L1 / M1 / D11 / speed [1/min]", "L9 / M1 / D11 / speed [1/min]"]
    assert rows(of({"resources": [other]}))[0]["label"] == "M1 / D11 / speed"


def test_a_stated_shape_replaces_what_is_found(of):
    body = {"plants": {"S1": {"areas": [{"code": "L1", "signals": [
        {"uid": "t1", "id": 7, "text": {"en": "x"}, "caption": "speed", "dim": "1/min"}
    ]}]}}}  # fmt: skip
    assert len(of(body)) == 0
    path = "plants.S1.areas[].signals[]"
    table = of(
        body, series=path, tag="uid", line="plants.S1.areas[].code", name="caption", unit="dim"
    )
    [one] = rows(table)
    assert ids(one) == (None, "L1", None, None, "t1")
    assert (one["label"], one["path"]) == ("speed [1/min]", "L1 / speed")
    assert (one["id"], one["text"]) == (7, '{"en": "x"}')
    assert table.report.ids["tag_guid"] == (f"{path}.uid",)
    assert rows(of(body, tag="uid"))[0]["tag_guid"] == "t1"
    assert rows(of(body, series=path))[0]["tag_guid"] == "7"


@pytest.mark.parametrize("shape", [{"series": "tags[]"}, {"tag": "uid"}, {"line": "areas[].code"}])
def test_a_stated_shape_must_be_in_the_body(of, shape):
    with pytest.raises(QueryError, match="is not in the discovery body") as refused:
        of({"items": [{"guid": "t1"}]}, **shape)
    assert "items[], items[].guid" in refused.value.hint


def test_wrong_shapes_are_refused():
    with pytest.raises(QueryError, match="give a name or a path"):
        DiscoveryShape(tag="")
    with pytest.raises(TypeError, match="tag= is text"):
        DiscoveryShape(tag=7)
    with pytest.raises(TypeError, match=r"is a siteline\.shapes\.DiscoveryShape"):
        Shape(discovery={"tag": "uid"})


def test_a_stated_shape_makes_the_labels(shared_sandbox, set_variables):
    set_variables(shared_sandbox.env())
    first = rows(shared_sandbox.client().series())[0]
    resource = dict(
        zip(("siteId", "lineId", "machineId", "deviceId", "tagGuid"), ids(first), strict=True)
    )
    body = json.dumps({"resources": [{**resource, "caption": "tempo"}]})
    made = siteline.Client(shape=Shape(discovery=DiscoveryShape(name="caption")))
    client = pickle.loads(pickle.dumps(made))
    shared_sandbox.fault(on="discovery", times=1, status=200, body=body)
    table = client.read(site=first["site_id"], line=first["line_id"], labels="name", **RANGE)
    assert "tempo" in set(table.to_pandas()["label"])
    assert len(table.find("tempo").series) == 1


def test_ids_without_names_and_repeated_ids(of):
    table = of({"sites": ["S1"], "tags": ["t1", 22]})
    assert [(row["tag_guid"], row["name"]) for row in table.records()] == [
        ("t1", None),
        ("22", None),
    ]
    table = of(tree(SPEED, {**SPEED, "name": "other"}))
    assert [row["name"] for row in table.records()] == ["speed"]
    assert table.report.repeated == 1


def test_deep_bodies_and_odd_values_are_no_series(of):
    deep = '{"tags": ' + "[" * 100 + '{"tagGuid": "t1"}' + "]" * 100 + "}"
    assert len(of(deep)) == 0
    for odd in (None, True, 1.5, {"a": 1}, ["t1"]):
        assert len(of({"tags": [{"tagGuid": odd}]})) == 0


def test_the_client_asks_discovery_once(sandbox):
    client = sandbox.client()
    series = client.series()
    table = client.scan(site="S1", **RANGE).collect()
    frame = table.to_pandas(ids="category")
    of_site = {ids(row) for row in series.find(site="S1").records()}
    assert of_site == set(frame.iloc[:, :5].drop_duplicates().itertuples(index=False, name=None))
    assert sandbox.stats.requests["discovery"] == {200: 1}
    assert series.report.not_recognised == ("subject",)
    assert [ids(row) for row in table.series.records()] == sorted(of_site)
    assert (len(series), series.kind, repr(series)) == (18, "series", "<Table 18 series>")
    assert series.series is series


def test_text_ids_and_names_find_series(sandbox, of):
    series = sandbox.client().series()
    speeds = series.find("SPEED", line="L2")
    assert {(row["name"], row["line_id"]) for row in speeds.records()} == {("speed", "L2")}
    assert len(series.find(machine=["M1", "M2"], unit="degC")) == 2
    tag = rows(series)[5]["tag_guid"]
    assert [row["tag_guid"] for row in series.find(tag[:13]).records()] == [tag]
    nothing = series.find("nothing of the kind")
    assert (len(nothing), nothing.columns) == (0, series.columns)
    assert repr(nothing) == repr(nothing.find("speed")) == "<Table 0 of 18 series>"
    assert repr(pickle.loads(pickle.dumps(nothing))) == repr(nothing)
    assert "0 of 18 series" in nothing._repr_html_()
    near = series.find("temprature", unit="deg C")
    assert repr(near) == "<Table 0 of 18 series (nearest: 'temperature', 'degC')>"
    assert repr(pickle.loads(pickle.dumps(near.find("speed")))) == repr(near)
    assert "temperature" in near._repr_html_()
    assert len(series.head(3)) == 3
    assert series.find("speed").report == series.report
    named = of(tree(SPEED))
    hostile = of(tree({**SPEED, "name": "<b>speed"})).find("<b>sped")
    assert "'<b>speed'" in repr(hostile)
    assert "<b>speed" not in hostile._repr_html_()
    assert len(named.find(machine="Press")) == len(named.find(machine="M1")) == 1
    assert len(series.find(line=5)) == len(series.find(line=[5, 6])) == 0
    with pytest.raises(QueryError, match="line= is an id or a list of ids; this is a float"):
        series.find(line=5.5)
    table = of({"resources": [{**FLAT, "lineId": 5}, {**FLAT, "lineId": 6, "tagGuid": "t2"}]})
    assert [row["line_id"] for row in table.find(line=5).records()] == ["5"]
    assert len(table.find(line=[5, "6"])) == 2
    again = pickle.loads(pickle.dumps(table))
    assert (rows(again), again.report, again.columns) == (rows(table), table.report, table.columns)
    assert rows(again.find(line=5)) == rows(table)[:1]


def test_a_search_for_thousands_of_ids_compares_the_first(sandbox, monkeypatch):
    compared = []
    monkeypatch.setattr("siteline._series.nearest", lambda one, known: compared.append(one) or [])
    assert not len(sandbox.client().series().find(machine=[f"X{n:04}" for n in range(5_000)]))
    assert compared == [f"X{n:04}" for n in range(10)]


def test_series_of_data_where_discovery_lists_none(sandbox):
    client = sandbox.client()
    body = json.dumps({**tree(SPEED), "nextCursor": "more"})
    sandbox.fault(on="discovery", status=200, body=body)
    with pytest.warns(SitelineWarning, match="only a part"):
        assert client.series().report.not_ended
    sandbox.fault(on="discovery", times=9, status=200, body='{"rights": [{"plant": "S1"}]}')
    with pytest.warns(SitelineWarning, match="none was read yet"):
        assert len(client.series()) == 0
    frame = client.scan(site="S1", line="L2", **RANGE).to_pandas()
    for page in client.scan(site="S2", page_size=40, **RANGE).pages():
        last = page
    with pytest.warns(SitelineWarning, match="12 series of data") as warned:
        series = client.series()
    assert str(warned[0].message).startswith("Discovery lists no series that siteline recognises")
    assert warned[0].filename == __file__
    assert len(series) == 12
    assert set(series.find(line="L2").to_pandas()["tag_guid"]) == set(frame["tag_guid"])
    assert set(series.to_pandas()["site_id"]) == {"S1", "S2"}
    assert not any(listed(series))
    assert series.report.not_recognised == ("rights[]",)
    assert (series.report.listed, series.report.seen) == (0, 12)
    assert set(last.to_pandas()["tag_guid"]) <= set(series.to_pandas()["tag_guid"])


def test_each_table_lists_its_series(sandbox, tmp_path):
    client = sandbox.client(labels=False)
    feed = siteline.Feed("l2", site="S1", line="L2", interval="1h", start="2026-11-18")
    with siteline.Store(tmp_path / "plant.siteline", labels=False) as store:
        client.sync(feed, store)
        points = store.read("l2", "2026-11-18", "2026-11-19")
        table = client.scan(site="S1", line="L2", **RANGE).collect()
        for data in (points, table, table.resample("1d", "mean"), table.pivot()):
            assert set(data.series.to_pandas()["line_id"]) == {"L2"}
            assert len(data.series) == 6
            assert not any(listed(data.series)), "discovery was not read"
        client.series()
        assert all(listed(table.series))
        assert table.series.to_pandas()["name"].notna().all()
        assert rows(store.series()) == rows(store.series("l2")) == rows(points.series)
        with pytest.raises(StoreError):
            store.series("l9")


def test_an_async_client_has_the_same(sandbox):
    async def main():
        stated = Shape(discovery=DiscoveryShape(name="unit"))
        async with sandbox.async_client() as one, sandbox.async_client(shape=stated) as other:
            return await one.series(), await other.series()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, stated = asyncio.run(main())
    assert rows(found) == rows(sandbox.client().series())
    assert {row["name"] for row in stated.records()} == {"1/min", "degC", "mm/s", "1"}


def test_frames_have_a_row_for_each_series(of):
    table = of(tree({**SPEED, "digits": 2, "unit_": "x"}, {"tagGuid": "t2", "digits": None}))
    columns = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]
    columns += ["label", "name", "unit", "path", "listed", "machine_name", "digits", "unit_"]
    pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert list(frame.columns) == columns == table.columns
    assert frame["digits"].dtype == "Int64"
    assert frame["digits"].iloc[0] == 2
    assert frame["digits"].isna().tolist() == [False, True]
    assert frame["listed"].dtype == "bool"
    assert frame.loc[0, ["name", "machine_name", "listed"]].tolist() == ["speed", "Press", True]
    polars = pytest.importorskip("polars")
    made = table.to_polars()
    assert made.columns == columns
    assert made["tag_guid"].to_list() == ["t1", "t2"]
    assert made.schema["listed"] == polars.Boolean
    arrow = table.to_arrow()
    assert arrow.column_names == columns
    assert arrow.to_pylist()[1]["name"] is None
    assert list(of({}).to_pandas().columns) == columns[:10]
    assert of({}).to_polars().schema["name"] == made.schema["name"]
    # Values of several types, and large integers, are JSON text.
    tags = [{"tagGuid": f"t{number}", "odd": odd} for number, odd in enumerate([1, "a", None, [2]])]
    assert of(tree(*tags)).to_pandas()["odd"].tolist()[:2] == ["1", '"a"']
    large = [{"tagGuid": "t1", "odd": 1 << 70}]
    assert of(tree(*large)).to_pandas()["odd"].tolist() == [str(1 << 70)]
    flags = [{"tagGuid": "t1", "on": True, "low": 0.5}, {"tagGuid": "t2"}]
    odd = of(tree(*flags)).to_pandas()
    assert (odd["on"].dtype, odd["low"].dtype) == ("boolean", "float64")


def test_notebooks_show_groups_and_run_nothing(sandbox, of):
    html = of({**tree({**SPEED, "name": "<script>x</script>"}), "rest": 1})._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "not recognised in the discovery body: rest" in html
    many = [{**FLAT, "tagGuid": f"t{number}"} for number in range(1_200)]
    html = of({"resources": many})._repr_html_()
    assert html.count("<tr") == 1_001
    assert "200 more" in html
    assert "<details open" not in html.replace('"', "")
    assert sandbox.client().series()._repr_html_().count("<details") == 6


@pytest.mark.parametrize(
    "method", ["with_gaps", "gaps", "completeness", "pivot", "resample", "plot"]
)
def test_series_refuse_what_needs_points(sandbox, method):
    arguments = ("1d", "mean") if method == "resample" else ()
    with pytest.raises(QueryError, match=r"\(\) does not fit: this table lists series"):
        getattr(sandbox.client().series(), method)(*arguments)
