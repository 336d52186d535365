"""Values equal the values of Python's json bit by bit, over a real socket.

Rust tests cover numbers, timestamps and layouts in detail. These tests show that nothing is lost
on the way to Python.
"""

import json
import math
import struct

import pytest
import siteline
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.examples import examples

pytestmark = pytest.mark.once

QUERY = {"start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00Z"}
IDENTITY = {"siteId": "S1", "lineId": "L1", "machineId": "M1", "deviceId": "D1", "tagGuid": "T1"}


@pytest.fixture(scope="module")
def serve(shared_sandbox):
    """Reads one page. Its body is the given bytes, or the given value as JSON."""
    client = shared_sandbox.client()
    headers = {"Content-Type": "application/json"}

    def read(body, shape=None, **options):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        shared_sandbox.clear_faults()
        shared_sandbox.fault(on="data", status=200, body=body, headers=headers)
        try:
            reader = client if shape is None else shared_sandbox.client(shape=shape)
            return reader.scan(**QUERY, **options).collect()
        finally:
            shared_sandbox.clear_faults()

    return read


def page(values):
    points = [
        {"timestamp": f"2026-11-01T00:00:{n:02}Z", "value": value, "sampleCount": 1}
        for n, value in enumerate(values)
    ]
    return {"series": [{**IDENTITY, "points": points}], "nextCursor": None}


def bits(value):
    return value if value is None else struct.pack("<d", value)


def number():
    """A number as text, in any notation of JSON."""
    return (
        st.floats(allow_nan=False, allow_infinity=False).map(repr)
        | st.floats(min_value=-1e4, max_value=1e4).map("{:.9f}".format)
        | st.from_regex(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,20})?([eE][+-]?[0-9])?", fullmatch=True)
        | st.sampled_from(["null", "-0.0", "5e-324", "1.7976931348623157e308"])
    )


@settings(max_examples=examples(20, 200), deadline=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(rows=st.lists(st.tuples(number(), number(), st.integers(0, 3)), max_size=30))
def test_numbers_have_the_values_of_python(serve, rows):
    points = ",".join(
        f'{{"timestamp": "2026-11-01T00:00:{n:02}Z", "value": {value}, "minimum": {minimum}, '
        f'"sampleCount": {count}}}'
        for n, (value, minimum, count) in enumerate(rows)
    )
    text = f'{{"series":[{json.dumps(IDENTITY)[:-1]},"points":[{points}]}}],"nextCursor":null}}'
    read = list(serve(text.encode()).records())
    expected = json.loads(text)["series"][0]["points"]
    names = [("value", "value"), ("minimum", "minimum"), ("sampleCount", "sample_count")]
    for name, column in names:
        assert [bits(row[column]) for row in read] == [bits(point[name]) for point in expected]


def test_nulls_are_null_in_every_form_of_the_result(serve):
    body = page([1.5, None])
    body["series"][0]["points"][0]["sampleCount"] = None
    table = serve(body)
    frame = table.to_pandas()
    assert frame["sample_count"].isna().tolist() == [True, False]
    assert frame["value"].isna().tolist() == [False, True]
    assert [row["value"] for row in table.records()] == [1.5, None]
    assert table.to_polars()["value"].to_list() == [1.5, None]
    assert table.to_arrow()["sample_count"].to_pylist() == [None, 1]


def test_a_violation_of_the_interface_names_its_path(serve):
    wrong = page([1.0, math.nan])
    missing = page([1.0, 2.0])
    del missing["series"][0]["tagGuid"]
    for body, path in ((wrong, "$.series[0].points[1].value"), (missing, "$.series[0].tagGuid")):
        with pytest.raises(siteline.errors.ProtocolError) as caught:
            serve(body)
        assert caught.value.path == path
        assert path in str(caught.value)


def test_unknown_members_are_kept_on_request(serve):
    body = page([1.0, 2.0])
    body["series"][0]["unit"] = "°C"
    body["series"][0]["points"][1]["quality"] = {"good": True}
    table = serve(body, extra_columns=["quality", "unit"])
    frame = table.to_pandas()
    assert frame["unit"].map(json.loads).tolist() == ["°C", "°C"]
    assert json.loads(frame["quality"][1]) == {"good": True}
    assert frame["quality"].isna().tolist() == [True, False]
    assert list(table.records())[1]["quality"] == frame["quality"][1]
