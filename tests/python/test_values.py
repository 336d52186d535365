"""Values: bit-equal to those of Python's json, in any layout, over a real socket."""

import json
import math
import random
import struct

import pytest
import siteline
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.once

QUERY = {"start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00Z"}
IDENTITY = {"siteId": "S1", "lineId": "L1", "machineId": "M1", "deviceId": "D1", "tagGuid": "T1"}


@pytest.fixture(scope="module")
def serve(shared_sandbox):
    """Read one page whose body is the given bytes, or the given value as JSON."""
    client = shared_sandbox.client()
    headers = {"Content-Type": "application/json"}

    def read(body, **options):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        shared_sandbox.clear_faults()
        shared_sandbox.fault(on="data", status=200, body=body, headers=headers)
        try:
            return client.data(**QUERY, **options).collect()
        finally:
            shared_sandbox.clear_faults()

    return read


def page(values, **members):
    points = [
        {
            "timestamp": f"2026-11-01T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}Z",
            "value": value,
            "minimum": None,
            "maximum": None,
            "sampleCount": 1,
        }
        for n, value in enumerate(values)
    ]
    return {"series": [{**IDENTITY, "points": points}], "nextCursor": None, **members}


def bits(value):
    return struct.pack("<d", value)


@pytest.mark.fault("J7")
def test_a_million_random_doubles_are_bit_equal_to_those_of_python(serve):
    generator = random.Random(20261101)
    texts = []
    for n in range(1_000_000):
        match n % 4:
            case 0:
                texts.append(repr(generator.uniform(-1e3, 1e3)))
            case 1:
                texts.append(f"{generator.uniform(0, 200):.{generator.randint(1, 17)}f}")
            case 2:
                value = struct.unpack("<d", generator.randbytes(8))[0]
                texts.append(repr(value) if math.isfinite(value) else "0.1")
            case _:
                texts.append(f"{generator.getrandbits(64)}e{generator.randint(-300, 280)}")
    # One series for each 86,400 points: every point keeps its own bucket.
    envelopes = []
    for start in range(0, len(texts), 86_400):
        points = ",".join(
            f'{{"timestamp":"2026-11-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z",'
            f'"value":{text}}}'
            for n, text in enumerate(texts[start : start + 86_400])
        )
        ids = {**IDENTITY, "tagGuid": f"T{start:08}"}
        envelopes.append(json.dumps(ids)[:-1] + f',"points":[{points}]}}')
    body = f'{{"series":[{",".join(envelopes)}],"nextCursor":null}}'.encode()
    values = serve(body).to_pandas(ids="category")["value"].to_numpy()
    expected = [json.loads(text) for text in texts]
    assert values.astype("<f8").tobytes() == struct.pack(f"<{len(expected)}d", *expected)


@pytest.mark.fault("J8")
def test_the_limits_of_a_double_are_bit_equal(serve):
    edges = [-0.0, 5e-324, 1.7976931348623157e308, 0.1, 2.2250738585072014e-308, 1 / 3]
    values = [row["value"] for row in serve(page(edges)).records()]
    assert [bits(value) for value in values] == [bits(edge) for edge in edges]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    values=st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=40),
    indent=st.sampled_from([None, 0, 3]),
    shuffled=st.booleans(),
    unknown=st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none()
            | st.booleans()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        max_size=3,
    ),
)
@pytest.mark.fault("J18")
def test_any_layout_with_unknown_members_gives_the_values_of_python(
    serve, values, indent, shuffled, unknown
):
    known = {"timestamp", "value", "minimum", "maximum", "sampleCount"}
    unknown = {name: member for name, member in unknown.items() if name not in known}
    body = page(values)
    for point in body["series"][0]["points"]:
        point.update(unknown)
    if shuffled:
        body = {name: body[name] for name in reversed(body)}
        body["series"] = [{name: one[name] for name in reversed(one)} for one in body["series"]]
    text = json.dumps(body, indent=indent).encode()
    read = [row["value"] for row in serve(text).records()]
    expected = [point["value"] for point in json.loads(text)["series"][0]["points"]]
    assert [value if value is None else bits(value) for value in read] == [
        value if value is None else bits(value) for value in expected
    ]


def number():
    """A number as text, in any notation of JSON."""
    return (
        st.floats(allow_nan=False, allow_infinity=False).map(repr)
        | st.floats(min_value=-1e4, max_value=1e4).map("{:.9f}".format)
        | st.from_regex(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,20})?([eE][+-]?[0-9])?", fullmatch=True)
        | st.just("null")
    )


def layout():
    """The layout of a point: the order of its members, white space, unknown members."""
    space = st.sampled_from(["", "", " ", "\n\t  "])
    names = st.permutations(["timestamp", "value", "minimum", "quality", "sampleCount"])
    quality = st.sampled_from(['"good"', '"b\\u0061d \\" {"', "192", "null", '[1, {"value": 2}]'])
    return st.tuples(names, space, space, space, quality)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.tuples(number(), number(), st.integers(0, 3)), max_size=30),
    layouts=st.lists(layout(), min_size=4, max_size=4),
    steady=st.integers(1, 12),
)
@pytest.mark.fault("J7", "J18")
def test_a_layout_that_changes_in_a_page_gives_the_values_of_python(serve, rows, layouts, steady):
    points = []
    for n, (value, minimum, which) in enumerate(rows):
        # The first layout, and for every `steady`-th point any of them.
        order, before, colon, after, quality = layouts[which if n % steady == 0 else 0]
        members = {
            "timestamp": f'"2026-11-01T00:00:{n:02}Z"',
            "value": value,
            "minimum": minimum,
            "quality": quality,
            "sampleCount": str(n * 37),
        }
        written = (f'{before}"{name}"{colon}:{colon}{members[name]}{after}' for name in order)
        points.append(f"{before}{{{','.join(written)}}}{after}")
    ids = json.dumps(IDENTITY)[:-1]
    text = f'{{"series":[{ids},"points":[{",".join(points)}]}}],"nextCursor":null}}'
    table = serve(text.encode())
    expected = json.loads(text)["series"][0]["points"]
    for name, column in [
        ("value", "value"),
        ("minimum", "minimum"),
        ("sampleCount", "sample_count"),
    ]:
        assert [None if row[column] is None else bits(row[column]) for row in table.records()] == [
            None if point[name] is None else bits(point[name]) for point in expected
        ]


@pytest.mark.fault("J9", "J10")
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


@pytest.mark.fault("J5", "J6", "J10", "J11", "J17", "E5")
@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda point, envelope: point.update(value=math.nan), "$.series[0].points[1].value"),
        (
            lambda point, envelope: point.update(sampleCount=2**70),
            "$.series[0].points[1].sampleCount",
        ),
        (
            lambda point, envelope: point.update(sampleCount=3.5),
            "$.series[0].points[1].sampleCount",
        ),
        (
            lambda point, envelope: point.update(timestamp="2026-11-01T00:00:00"),
            "$.series[0].points[1].timestamp",
        ),
        (lambda point, envelope: envelope.pop("tagGuid"), "$.series[0].tagGuid"),
    ],
)
def test_a_violation_of_the_interface_is_named_by_its_path(serve, change, path):
    body = page([1.0, 2.0])
    change(body["series"][0]["points"][1], body["series"][0])
    with pytest.raises(siteline.ProtocolError) as caught:
        serve(body)
    assert caught.value.path == path
    assert path in str(caught.value)


@pytest.mark.fault("J19")
def test_the_array_is_found_by_shape_and_named_in_the_report(serve):
    body = page([1.0])
    body["meters"] = body.pop("series")
    assert serve(body).report["arrays"] == ["meters"]
    body["sensors"] = body["meters"]
    with pytest.raises(siteline.ProtocolError, match=r"(?s)meters.*sensors"):
        serve(body)
    shape = siteline.Shape(array="sensors")
    assert serve(body, shape=shape).report["arrays"] == ["sensors"]


@pytest.mark.fault("J18")
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


@pytest.mark.fault("J20")
def test_a_page_of_200_000_points_and_a_name_of_a_megabyte_work(serve):
    name = "x" * 1_000_000
    points = ",".join(f'{{"timestamp":{1_793_491_200 + n},"value":{n}}}' for n in range(200_000))
    ids = json.dumps({**IDENTITY, "tagGuid": name})[:-1]
    body = f'{{"series":[{ids},"points":[{points}]}}],"nextCursor":null}}'.encode()
    table = serve(body)
    assert len(table) == 200_000
    assert table.to_pandas(ids="category")["tag_guid"].iloc[0] == name


@pytest.mark.fault("J12")
@pytest.mark.parametrize("timestamp", [1_793_491_260, 1_793_491_260_000, "2026-11-01T00:01:00Z"])
def test_every_form_of_a_timestamp_is_the_same_instant(serve, timestamp):
    body = page([1.0])
    body["series"][0]["points"][0]["timestamp"] = timestamp
    (row,) = serve(body).records()
    assert row["timestamp"].isoformat() == "2026-11-01T00:01:00+00:00"


@pytest.mark.fault("E4")
@pytest.mark.parametrize(
    "body", [b"<html>captive portal</html>", b"", b"null", b"[]", b'{"error":"x"}']
)
def test_a_200_that_is_not_a_page_is_an_error(serve, body):
    with pytest.raises(siteline.SitelineError) as caught:
        serve(body)
    assert isinstance(caught.value, siteline.ProtocolError | siteline.TruncatedBody)
