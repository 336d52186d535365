"""`Client.series()`: the series that discovery lists, whatever its form, with names and units."""

import asyncio
import json
import pickle
import warnings

import pytest
import siteline
from siteline import Catalogue, SitelineWarning
from siteline.errors import QueryError
from siteline.shapes import DiscoveryShape
from siteline.types import Discovery

IDS = ("S1", "L1", "M1", "D11")
RANGE = {"start": "2026-11-01", "end": "2026-11-02", "interval": "1h"}


def of(body, **shape):
    made = DiscoveryShape(**shape) if shape else None
    return Catalogue(Discovery(json.dumps(body).encode()), shape=made)


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
def test_a_series_is_found_in_any_of_these_forms(form):
    [one] = of(FORMS[form])
    assert one.ids == (*IDS, "t1")
    assert (one.name, one.unit, one.label) == ("speed", "1/min", "speed [1/min]")
    assert one.path.endswith(" / D11 / speed")
    assert one.listed


def test_what_else_stands_there_is_kept_and_what_is_not_recognised_is_said():
    body = tree({**SPEED, "limits": {"high": 9}, "digits": 2, "path": "x"}, {"tagGuid": "t2"})
    body |= {"subject": "me", "groups": [{"name": "all"}], "cursors": {"next": None}}
    catalogue = of(body)
    assert catalogue[0].members == {"limits": {"high": 9}, "digits": 2, "path": "x"}
    assert catalogue[0].names == (None, None, "Press", None, "speed")
    report = catalogue.report
    assert report["series"] == ["sites[].lines[].machines[].devices[].tags[]"]
    assert report["ids"]["line_id"] == ["sites[].lines[].lineId"]
    assert report["units"] == ["sites[].lines[].machines[].devices[].tags[].unit"]
    assert report["not_recognised"] == ["subject", "groups[]", "cursors"]
    assert (report["listed"], report["repeated"], report["seen"]) == (2, 0, 0)


def test_labels_take_what_the_series_are_in_only_where_they_must():
    body = {"resources": [
        FLAT,
        {**FLAT, "deviceId": "D12", "tagGuid": "t2"},
        {**FLAT, "lineId": "L9", "tagGuid": "t3", "unit": None},
        {**FLAT, "tagGuid": "t4", "name": "rate"},
        {**FLAT, "tagGuid": "t5", "name": "twin"}, {**FLAT, "tagGuid": "t6", "name": "twin"},
    ]}  # fmt: skip
    labels = [one.label for one in of(body)]
    assert labels[:4] == [
        "D11 / speed [1/min]",
        "D12 / speed [1/min]",
        "speed",
        "rate [1/min]",
    ]
    # Nothing tells these apart: they stay the same, which is told where they name columns.
    assert labels[4] == labels[5] == "S1 / L1 / M1 / D11 / twin [1/min]"


def test_a_shape_that_is_stated_takes_the_place_of_what_is_found():
    body = {"plants": {"S1": {"areas": [{"code": "L1", "signals": [
        {"uid": "t1", "id": 7, "text": {"en": "x"}, "caption": "speed", "dim": "1/min"}
    ]}]}}}  # fmt: skip
    assert not of(body)
    path = "plants.S1.areas[].signals[]"
    catalogue = of(
        body, series=path, tag="uid", line="plants.S1.areas[].code", name="caption", unit="dim"
    )
    [one] = catalogue
    assert one.ids == (None, "L1", None, None, "t1")
    assert (one.label, one.path) == ("speed [1/min]", "L1 / speed")
    assert one.members == {"id": 7, "text": {"en": "x"}}
    assert catalogue.report["ids"]["tag_guid"] == [f"{path}.uid"]
    assert of(body, tag="uid")[0].tag_guid == "t1"
    assert of(body, series=path)[0].tag_guid == "7"


@pytest.mark.parametrize("shape", [{"series": "tags[]"}, {"tag": "uid"}, {"line": "areas[].code"}])
def test_a_shape_that_is_nowhere_in_the_body_is_refused_with_its_places(shape):
    with pytest.raises(QueryError, match="is nowhere in the discovery body") as refused:
        of({"items": [{"guid": "t1"}]}, **shape)
    assert "items[], items[].guid" in refused.value.hint
    with pytest.raises(QueryError, match="give a name or a path"):
        DiscoveryShape(tag=7)
    with pytest.raises(QueryError, match="shape= is a DiscoveryShape"):
        Catalogue(Discovery(b"{}"), shape={"tag": "uid"})


def test_ids_without_names_and_repeated_ids_are_one_row_each():
    catalogue = of({"sites": ["S1"], "tags": ["t1", 22]})
    assert [(one.tag_guid, one.label, one.name) for one in catalogue] == [
        ("t1", "t1", None),
        ("22", "22", None),
    ]
    catalogue = of(tree(SPEED, {**SPEED, "name": "other"}))
    assert [one.name for one in catalogue] == ["speed"]
    assert catalogue.report["repeated"] == 1


def test_deep_bodies_and_odd_values_are_no_series():
    deep = '{"tags": ' + "[" * 400 + '{"tagGuid": "t1"}' + "]" * 400 + "}"
    assert not Catalogue(Discovery(deep.encode()))
    for odd in (None, True, 1.5, {"a": 1}, ["t1"]):
        assert not of({"tags": [{"tagGuid": odd}]})


def test_the_client_lists_what_discovery_lists_and_asks_once(sandbox):
    client = sandbox.client()
    catalogue = client.series()
    table = client.scan(site="S1", **RANGE).collect()
    frame = table.to_pandas(ids="category")
    listed = {one.ids for one in catalogue if one.site_id == "S1"}
    assert listed == set(frame.iloc[:, :5].drop_duplicates().itertuples(index=False, name=None))
    assert sandbox.stats.requests["discovery"] == {200: 1}
    assert catalogue.report["not_recognised"] == ["subject"]
    assert [row.ids for row in table.series] == sorted(listed)
    assert len(client.discover().series) == len(catalogue) == 18


def test_a_text_and_ids_or_names_find_series(sandbox):
    catalogue = sandbox.client().series()
    speeds = catalogue.find("SPEED", line="L2")
    assert {(one.name, one.line_id) for one in speeds} == {("speed", "L2")}
    assert len(catalogue.find(machine=["M1", "M2"], unit="degC")) == 2
    tag = catalogue[5].tag_guid
    assert [one.tag_guid for one in catalogue.find(tag[:13])] == [tag]
    assert not catalogue.find("nothing of the kind")
    assert len(catalogue[2:5]) == 3
    assert catalogue.find().report is catalogue.report
    named = of(tree(SPEED))
    assert len(named.find(machine="Press")) == len(named.find(machine="M1")) == 1


def test_where_discovery_names_nothing_the_series_of_data_are_listed_and_that_is_said(sandbox):
    client = sandbox.client()
    body = json.dumps({**tree(SPEED), "nextCursor": "more"})
    sandbox.fault(on="discovery", status=200, body=body)
    with pytest.warns(SitelineWarning, match="only a part"):
        assert client.series().report["not_ended"]
    sandbox.fault(on="discovery", times=9, status=200, body='{"rights": [{"plant": "S1"}]}')
    with pytest.warns(SitelineWarning, match="none was read yet"):
        assert len(client.series()) == 0
    frame = client.scan(site="S1", line="L2", **RANGE).to_pandas()
    for page in client.scan(site="S2", page_size=40, **RANGE).pages():
        last = page
    with pytest.warns(SitelineWarning, match="12 series of data") as warned:
        catalogue = client.series()
    assert str(warned[0].message).startswith("Discovery names no series that siteline recognises")
    assert warned[0].filename == __file__
    assert repr(catalogue) == "<Catalogue 12 series, 12 seen in data alone>"
    assert {one.tag_guid for one in catalogue.find(line="L2")} == set(frame["tag_guid"])
    assert {one.site_id for one in catalogue} == {"S1", "S2"}
    assert not any(one.listed for one in catalogue)
    assert catalogue.report["not_recognised"] == ["rights[]"]
    assert set(last.to_pandas()["tag_guid"]) <= {one.tag_guid for one in catalogue}


def test_each_table_lists_its_series(sandbox, tmp_path):
    client = sandbox.client()
    feed = siteline.Feed("l2", site="S1", line="L2", interval="1h", start="2026-11-18")
    with siteline.Store(tmp_path / "plant.siteline") as store:
        client.sync(feed, store)
        points = store.read("l2", "2026-11-18", "2026-11-19")
        table = client.scan(site="S1", line="L2", **RANGE).collect()
        for data in (points, table, table.resample("1d", "mean"), table.pivot()):
            assert {one.line_id for one in data.series} == {"L2"}
            assert len(data.series) == 6
            assert not any(one.listed for one in data.series), "discovery was not read"
        client.series()
        assert all(one.name and one.listed for one in table.series)


def test_an_async_client_has_the_same(sandbox):
    async def main():
        async with sandbox.async_client() as client:
            stated = DiscoveryShape(name="unit")
            return await client.series(), await client.series(shape=stated)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, stated = asyncio.run(main())
    assert list(found) == list(sandbox.client().series())
    assert {one.name for one in stated} == {"speed", "1/min", "degC", "mm/s", "1"} - {"speed"}


def test_frames_have_a_row_for_each_series():
    catalogue = of(tree({**SPEED, "digits": 2, "unit_": "x"}, {"tagGuid": "t2", "digits": None}))
    columns = ["site_id", "line_id", "machine_id", "device_id", "tag_guid"]
    columns += ["name", "unit", "label", "path", "listed", "machine_name", "digits", "unit_"]
    pytest.importorskip("pandas")
    frame = catalogue.to_pandas()
    assert list(frame.columns) == columns
    assert frame["digits"].dtype == "Int64"
    assert frame["digits"].iloc[0] == 2
    assert frame["digits"].isna().tolist() == [False, True]
    assert frame.loc[0, ["name", "machine_name", "listed"]].tolist() == ["speed", "Press", True]
    rows = pytest.importorskip("polars").DataFrame(frame.to_dict("list"), strict=False)
    polars = catalogue.to_polars()
    assert polars.columns == columns
    assert polars["tag_guid"].to_list() == rows["tag_guid"].to_list() == ["t1", "t2"]
    arrow = catalogue.to_arrow()
    assert arrow.column_names == columns
    assert arrow.to_pylist()[1]["name"] is None
    assert list(of({}).to_pandas().columns) == columns[:10]
    assert of({}).to_polars().schema["name"] == polars.schema["name"]
    # Values of several types, and large integers, are JSON text.
    tags = [{"tagGuid": f"t{number}", "odd": odd} for number, odd in enumerate([1, "a", None, [2]])]
    assert of(tree(*tags)).to_pandas()["odd"].tolist()[:2] == ["1", '"a"']
    large = [{"tagGuid": "t1", "odd": 1 << 70}]
    assert of(tree(*large)).to_pandas()["odd"].tolist() == [str(1 << 70)]


def test_notebooks_show_the_series_by_what_they_are_in_and_run_nothing(sandbox):
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


def test_a_difference_says_what_has_come_or_gone(sandbox):
    client = sandbox.client()
    before = client.discover()
    assert not before.diff(client.discover())
    body = {**before, "sites": [*before["sites"][1:], {"siteId": "S9"}]}
    after = Discovery(json.dumps(body).encode())
    difference = after.diff(before)
    assert difference
    assert [entry["path"] for entry in difference.removed] == ["/sites/siteId=S1"]
    assert [entry["path"] for entry in difference.added] == ["/sites/siteId=S9"]
    assert repr(difference) == "<DiscoveryDiff 1 added, 1 removed, 0 changed>"
    assert before.diff(dict(before)) == after.diff(body)


def test_discovery_and_catalogue_can_be_pickled(sandbox):
    discovery = sandbox.client().discover()
    assert len(discovery.series) == 18
    again = pickle.loads(pickle.dumps(discovery))
    assert again == discovery
    assert list(pickle.loads(pickle.dumps(again.series))) == list(discovery.series)
