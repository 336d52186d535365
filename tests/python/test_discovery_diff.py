"""`Discovery.diff`: how two discovery bodies are compared."""

import pytest
from siteline._records.differences import differences


@pytest.mark.parametrize(
    ("items", "path"),
    [
        ([{"siteId": 1}, {"siteId": 2}], "siteId=2"),
        ([{"siteId": "S", "lineId": "A"}, {"siteId": "S", "lineId": "B"}], "siteId=S,lineId=B"),
        ([{"machineId": "M", "name": "x"}, {"machineId": "N", "name": "x"}], "machineId=N"),
        ([{"deviceId": None}, {"deviceId": "D"}], "deviceId=D"),
        ([{"guid": "a", "name": "x"}, {"guid": "b", "name": "x"}], "guid=b"),
        ([{"siteId": "S", "name": "x"}, {"siteId": "S", "name": "y"}], "siteId=S,name=y"),
        ([{"id": 1, "name": "x"}, {"id": 1, "name": "y"}], "name=y"),
        ([{"id": True, "name": "x"}, {"id": False, "name": "y/~"}], "name=y~1~0"),
        ([{"name": "x"}, {"name": "x"}], "-"),
        ([{"id": "x"}, "S2"], "-"),
        (["S1", "S2"], "-"),
    ],
)
def test_items_are_identified_by_ids(items, path):
    found = differences({"list": items[::-1]}, {"list": items[:1]})
    assert found.removed == [{"path": f"/list/{path}", "value": items[1]}]
    assert found.added == found.changed == []
    back = differences({"list": items[:1]}, {"list": items[::-1]})
    assert [entry["path"] for entry in back.added] == [f"/list/{path}"]


def test_order_does_not_count():
    one = {"a": 1, "list": [{"id": 1, "of": ["x", "y", "y"]}, {"id": 2}]}
    other = {"list": [{"id": 2}, {"of": ["y", "x", "y"], "id": 1}], "a": 1}
    assert not differences(one, other)
    other["list"][1]["of"] = ["y", "x", "x"]
    found = differences(one, other)
    assert found.removed == [{"path": "/list/id=1/of/-", "value": "y"}]
    assert found.added == [{"path": "/list/id=1/of/-", "value": "x"}]
    assert repr(found) == "<DiscoveryDiff 1 added, 1 removed, 0 changed>"
    # A removed item is listed once, at its highest level.
    plant = {"sites": [{"siteId": "S1", "lines": [{"lineId": "L1", "name": "press"}]}]}
    removed = differences(plant, {"sites": []}).removed
    assert [entry["path"] for entry in removed] == ["/sites/siteId=S1"]


@pytest.mark.parametrize(
    ("before", "after"), [(1, True), (0, False), (1, 1.5), (None, {}), ([], {}), ("1", 1)]
)
def test_values_of_other_types_are_changes(before, after):
    found = differences({"a": before}, {"a": after})
    assert found.changed == [{"path": "/a", "before": before, "after": after}]
    assert found.added == found.removed == []
