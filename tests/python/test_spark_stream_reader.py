"""The reader of a stream, driven by hand as Spark drives it."""

import pickle
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
import siteline
from kit.target_rows import KEY, points_by_key

pytest.importorskip("pyspark.sql.streaming.datasource")

from siteline.spark._access import Access
from siteline.spark._batches import schema_of
from siteline.spark._options import Options
from siteline.spark._reading import Reading
from siteline.spark._stream import PointStream

pytestmark = pytest.mark.once
QUERY = {"site": "S1", "start": "2026-11-15T00:00:00Z", "interval": "1h", "page_size": 40}


@pytest.fixture
def make(sandbox, set_variables):
    """Starts a stream again, as after a crash; `left` is the allowance of its agent."""
    set_variables(sandbox.env())
    agents = []

    def make(left=10_000, agent=None, **options):
        client = siteline.Client(daily_allowance=left)
        if agent is None:
            agents.append(agent := siteline.Agent(client))
        given = Options.parse({**QUERY, **options})
        return PointStream(Reading(given, Access.of(client, agent)), schema_of(True)), agent

    yield make
    for agent in agents:
        agent.close()


def read(stream, before, after):
    """Returns the points of a batch, each once, and the number of expected pages."""
    found = {}
    parts = stream.partitions(before, after)
    for part in parts:
        task = pickle.loads(pickle.dumps(stream))
        for batch in task.read(pickle.loads(pickle.dumps(part))):
            for row in batch.to_pylist():
                key = tuple(row.pop(name) for name in KEY)
                assert key not in found
                assert key[5] < datetime.fromisoformat(after["read"])
                found[key] = tuple(row.values())
    return found, sum(part.value.pages for part in parts)


@pytest.mark.sandbox(variant=siteline.testing.Variant(end_inclusive=True))
def test_batches_have_so_many_pages_and_lead_to_the_truth_of_what_is_settled(sandbox, make):
    stored, offset = {}, None
    for hours in (0, 5, 30, 26):
        sandbox.clock.advance(f"{hours}h")
        stream, agent = make(maxPages="8")
        offset = offset or stream.initialOffset()
        before, batches = sandbox.stats.data_requests, []
        while (after := stream.latestOffset(offset, None)) != offset:
            found, pages = read(stream, offset, after)
            assert pages <= 8
            stored |= found
            batches.append(pages)
            offset = after
        stream.stop()
        requests = sandbox.stats.data_requests - before
        assert requests <= sum(batches) + 1 + len(batches)
        assert agent.state.allowance.used == requests
    truth = points_by_key(
        sandbox.expected(site="S1", start=QUERY["start"], end=offset["read"], interval="1h")
    )
    settled = datetime.fromisoformat(offset["settled"])
    final = {key: at for key, at in truth.items() if key[5] < settled}
    assert {key: at for key, at in stored.items() if key in final} == final != truth
    assert stored.keys() <= truth.keys()


def test_a_batch_that_is_replayed_by_another_process_reads_the_same(sandbox, make):
    stream, _ = make(maxPages="8")
    offset = stream.initialOffset()
    after = stream.latestOffset(offset, None)
    first, _ = read(stream, offset, after)
    sandbox.clock.advance("3d")
    again, _ = read(make(maxPages="30")[0], offset, after)
    assert again.keys() >= first.keys() != set()
    assert {key[5] for key in again} == {key[5] for key in first}


def test_with_nothing_left_a_stream_waits_and_what_is_available_now_is_an_error(sandbox, make):
    stream, _ = make(left=1)
    start = stream.initialOffset()
    assert stream.latestOffset(start, None) == start
    stream.prepareForTriggerAvailableNow()
    with pytest.raises(siteline.errors.AllowanceExhausted, match="has not read all that there is"):
        stream.latestOffset(start, None)
    sandbox.clock.advance("1d")
    waiting, _ = make()
    assert waiting.latestOffset(start, None) != start
    assert sandbox.stats.data_requests == 2


def test_what_is_available_now_is_fixed_when_the_run_begins(sandbox, make):
    stream, _ = make(maxPages="1000")
    stream.prepareForTriggerAvailableNow()
    sandbox.clock.advance("2d")
    assert stream.latestOffset(stream.initialOffset(), None)["read"] < "2026-11-20T00:00:01"


def test_a_stream_has_no_end(make):
    with pytest.raises(siteline.errors.ConfigError, match="A stream has no end"):
        make(end="2026-12-01T00:00:00Z")


HOUR = timedelta(hours=1)
TAG = {"site": "S9", "page_size": "10"}


def load(sandbox, first, last, tags=1):
    """Points of each hour of some days."""
    start, hours = datetime.fromisoformat(first).replace(tzinfo=UTC), []
    while start + len(hours) * HOUR < datetime.fromisoformat(last).replace(tzinfo=UTC):
        hours.append(start + len(hours) * HOUR)
    for tag in range(tags):
        table = pa.table({"timestamp": hours, "value": [1.0] * len(hours)})
        sandbox.load(table, bucket="1h", site="S9", tag=f"T{tag}")


def test_where_data_becomes_denser_a_batch_still_fits_into_a_day(sandbox, make):
    load(sandbox, "2026-11-01", "2026-11-20")
    load(sandbox, "2026-11-16", "2026-11-20", tags=31)
    stored, offset, planned, days = {}, None, None, 0
    client = siteline.Client(daily_allowance=60)
    with siteline.Agent(client) as agent:
        while offset is None or offset["read"] < "2026-11-19T23:00:00Z":
            days += 1
            assert days < 16
            stream, _ = make(**TAG, start="2026-11-01T00:00:00Z", agent=agent)
            offset, progress = offset or stream.initialOffset(), 0
            while (after := planned or stream.latestOffset(offset, None)) != offset:
                planned = after  # Spark keeps it before it reads
                try:
                    stored |= read(stream, offset, after)[0]
                except siteline.errors.AllowanceExhausted:
                    break
                offset, planned, progress = after, None, progress + 1
            stream.stop()
            assert progress
            sandbox.clock.advance("1d")
    truth = points_by_key(
        sandbox.expected(site="S9", start="2026-11-01", end=offset["read"], interval="1h")
    )
    assert stored == truth


@pytest.mark.parametrize(
    "other",
    [{"line": "L1"}, {"filters": '{"machineId": ["M1"]}'}, {"start": "2026-11-14T00:00:00Z"}],
    ids=lambda other: next(iter(other)),
)
def test_a_checkpoint_of_another_query_is_refused(sandbox, make, other):
    stream, _ = make()
    start = stream.initialOffset()
    after = stream.latestOffset(start, None)
    before = sandbox.stats.data_requests
    changed, _ = make(**other)
    with pytest.raises(siteline.errors.FeedChanged, match="checkpoint has another site"):
        changed.latestOffset(after, None)
    with pytest.raises(siteline.errors.FeedChanged, match="checkpoint has another site"):
        changed.partitions(start, after)
    assert sandbox.stats.data_requests == before
