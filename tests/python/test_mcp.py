"""The MCP server, with the official client over standard input and output."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
import siteline
import siteline.mcp
from kit import keys
from kit.ranges import NOW
from mcp import Client, StdioServerParameters
from siteline.errors import ConfigError

DAY = {"feed": "line-2", "start": "2026-11-16T00:00Z", "end": "2026-11-17T00:00Z"}
DAILY = {"every": "1d", "agg": "mean"}


@pytest.fixture(scope="module")
def store(shared_sandbox, tmp_path_factory):
    """The path of a store with four days, and two before them that are unread."""
    path = tmp_path_factory.mktemp("mcp") / "plant.siteline"
    feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start="2026-11-15T00:00Z")
    with siteline.Store(path) as store:
        shared_sandbox.client().sync(feed, store)
    return path


def talk(calls, store, *arguments, environment=None):
    """Calls tools of one server; returns the answers and the tools."""
    command = ["-m", "siteline.mcp", str(store), *arguments]
    server = StdioServerParameters(
        command=sys.executable, args=command, env={**os.environ, **(environment or {})}
    )

    async def main():
        async with Client(server) as client:
            answers = [await client.call_tool(name, options) for name, options in calls]
            return answers, (await client.list_tools()).tools

    return asyncio.run(main())


def text_of(answer):
    return " ".join(one.text for one in answer.content)


def rows_of(answer):
    """Returns the rows of an answer as dictionaries."""
    assert not answer.is_error, text_of(answer)
    found = answer.structured_content
    assert json.loads(text_of(answer)) == found
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


@pytest.fixture(scope="module")
def session(store):
    """The answers of one session by name, the tools, and the bytes of the store before it."""
    calls = {
        "feeds": ("list_feeds", {}),
        "series": ("list_series", {"feed": "line-2", "text": "temperature"}),
        "points": ("read_points", DAY),
        "days": ("read_points", {**DAY, "text": "temperature", **DAILY, "tz": "Europe/Berlin"}),
        "absent": ("read_points", {**DAY, "text": "pressure"}),
        "completeness": ("completeness", {**DAY, "start": "2026-11-14T00:00Z"}),
        "coverage": ("coverage", {"feed": "line-2", "limit": 1}),
        "changes": ("changes", {"feed": "line-2", "since": "2026-11-01", "limit": 3}),
        "unread": ("read_points", {**DAY, "start": "2026-10-01"}),
        "unknown": ("read_points", {**DAY, "feed": "line-3"}),
        "half": ("read_points", {**DAY, "every": "1h"}),
        "too many": ("read_points", {**DAY, "limit": 5000}),
        "ignored": ("read_points", {**DAY, "machine": "M3"}),
        "too long": ("completeness", {**DAY, "start": "1500-01-01T00:00Z", "every": "1h"}),
        "service": ("read_service", {"start": "-1d", "end": "now"}),
    }
    before = store.read_bytes()
    answers, tools = talk(calls.values(), store)
    return dict(zip(calls, answers, strict=True)), tools, before


def test_tools_describe_themselves(session):
    _, tools, _ = session
    assert {tool.name for tool in tools} == {
        *("list_feeds", "list_series", "read_points", "completeness", "coverage", "changes"),
    }
    for tool in tools:
        assert 40 < len(tool.description) < 300, tool.name
        assert tool.annotations.read_only_hint
        assert tool.output_schema["required"]
        for name, one in tool.input_schema["properties"].items():
            text = json.dumps(one)
            assert "description" in text or "enum" in text, (tool.name, name)
    assert len(json.dumps([tool.model_dump(mode="json") for tool in tools])) < 14_000


def test_answers_are_those_of_the_store(session, store):
    answers, _, before = session
    own = siteline.Store(store, read_only=True)
    [feed] = answers["feeds"].structured_content["feeds"]
    assert feed["feed"] == "line-2"
    assert feed["settled_through"] == "2026-11-19T00:00:00+00:00"
    assert [row["unit"] for row in rows_of(answers["series"])] == ["degC", "degC"]
    points = own.read("line-2", DAY["start"], DAY["end"])
    expected = list(points.records())
    found = rows_of(answers["points"])
    assert answers["points"].structured_content["total"] == len(points) == 144
    assert [row["value"] for row in found] == [one["value"] for one in expected]
    assert found[0]["timestamp"] == expected[0]["timestamp"].isoformat()
    berlin = own.read("line-2", DAY["start"], DAY["end"], tz="Europe/Berlin")
    with pytest.warns(siteline.SitelineWarning):
        days = berlin.find("temperature").resample("1d", "mean").to_pandas()
    assert [row["buckets"] for row in rows_of(answers["days"])] == days["buckets"].tolist()
    assert "periods" in answers["days"].structured_content["notes"][0]
    assert store.read_bytes() == before


def test_rows_are_limited_with_the_total(session):
    changes = session[0]["changes"].structured_content
    assert len(changes["rows"]) == 3
    assert changes["total"] > 600
    assert f"{changes['total'] - 3} rows were left out" in changes["notes"][0]
    coverage = session[0]["coverage"].structured_content
    assert coverage["windows"] == [
        ["2026-11-19T00:00:00+00:00", "2026-11-19T23:00:00+00:00", "provisional"]
    ]
    assert coverage["total"] == 1
    assert session[0]["absent"].structured_content["notes"] == [
        "No series with a point has 'pressure'."
    ]


def test_unread_time_is_counted(session):
    first = rows_of(session[0]["completeness"])[0]
    assert first["unread"] == first["expected"] == 24


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("unread", "unread: 2026-10-01T00:00:00Z to 2026-11-15T00:00:00Z"),
        ("unknown", "There is no feed 'line-3'. The feeds are: line-2."),
        ("half", "every and agg belong together"),
        ("too many", "less than or equal to 1000"),
        ("ignored", "Extra inputs are not permitted"),
        ("too long", "too many periods"),
        ("service", "Unknown tool"),
    ],
)
def test_errors_are_tool_errors(session, call, text):
    answer = session[0][call]
    assert answer.is_error
    assert text in text_of(answer)


def test_requests_end_at_their_limit(sandbox, store):
    large = {"site": "S1", "start": "2026-11-01", "end": "2026-11-08", "interval": "1m"}
    small = {**large, "line": "L2", "end": "2026-11-02", "interval": "1h"}
    calls = [("read_service", one) for one in (large, small, small)]
    answers, tools = talk(calls, store, "--allow-requests", "3", environment=sandbox.env())
    assert "read_service" in {tool.name for tool in tools}
    cut, read, refused = answers
    assert cut.is_error
    assert "1 requests are left." in text_of(cut)
    assert len(rows_of(read)) == 144
    assert "are spent" in text_of(refused)
    assert sandbox.stats.data_requests == 3
    secrets = [keys.PEM.splitlines()[1], "Bearer", "eyJ", "cursor="]
    assert not [one for one in secrets if any(one in text_of(answer) for answer in answers)]


@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 401}, {"reset": True}])
def test_a_failed_request_counts_and_is_not_repeated(sandbox, store, fault):
    sandbox.fault(on="data", every=1, **fault)
    call = ("read_service", {"site": "S1", "start": "2026-11-01", "end": "2026-11-02"})
    answers, _ = talk([call] * 4, store, "--allow-requests", "3", environment=sandbox.env())
    assert all(answer.is_error for answer in answers)
    assert "are spent" in text_of(answers[-1])
    assert sandbox.stats.data_requests <= 3


def test_equal_feed_names_begin_with_their_store(store, tmp_path):
    other = tmp_path / "other.siteline"
    siteline.Store(store).backup(other)
    with siteline.Sandbox(now=NOW) as sandbox, siteline.Store(other) as own:
        odd = siteline.Feed("plant/line-2", site="S1", line="L1", start="2026-11-19")
        sandbox.client().sync(odd, own)
    answers, _ = talk(
        [("list_feeds", {}), ("coverage", {"feed": "other/line-2"})], store, str(other)
    )
    feeds = {feed["feed"]: feed["line"] for feed in answers[0].structured_content["feeds"]}
    lines = {"plant/line-2": "L1", "other/line-2": "L2", "plant/plant/line-2": "L2"}
    assert feeds == lines
    assert not answers[1].is_error


def test_wrong_arguments_end_before_serving(store, tmp_path):
    with pytest.raises(ConfigError, match="Two stores have the name 'plant'"):
        siteline.mcp.serve([store, store])
    with pytest.raises(ConfigError, match="no store to serve"):
        siteline.mcp.serve([])
    with pytest.raises(ConfigError, match="is negative"):
        siteline.mcp.serve(store, allow_requests=-1)
    command = [sys.executable, "-m", "siteline.mcp", str(tmp_path / "absent.siteline")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "absent.siteline" in done.stderr
    assert not done.stdout
