"""``spark.readStream.format("siteline")`` into Delta, killed in each batch. In ``make spark``."""

import pytest
import siteline
import siteline.spark
from kit import spark as engine

deltalake = pytest.importorskip("deltalake")

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not engine.IS_SPARK, reason="Sail has no streams of Python sources"),
]
QUERY = {"site": "S1", "start": "2026-11-15T00:00:00Z", "interval": "1h", "page_size": 40}
KEY = ["site_id", "line_id", "machine_id", "device_id", "tag_guid", "timestamp"]
VALUES = ["value", "minimum", "maximum", "sample_count"]


@pytest.fixture(scope="module")
def spark():
    with engine.session() as spark:
        yield spark


@pytest.fixture
def agent(spark, sandbox, monkeypatch):
    for name, value in sandbox.env().items():
        monkeypatch.setenv(name, value)
    agent = siteline.spark.register(spark, siteline.Client.from_env(daily_allowance=10_000))
    yield agent
    agent.close()


def points(table):
    rows = table.select([*KEY, *VALUES]).to_pylist()
    found = {tuple(row[name] for name in KEY): tuple(row[name] for name in VALUES) for row in rows}
    assert len(found) == len(rows)
    return found


class Stream:
    """A stream that reads what is available, again and again, with one checkpoint."""

    def __init__(self, spark, folder, **options):
        self._source = spark.readStream.format("siteline").options(**QUERY, **options).load()
        self._checkpoint, self.offsets = str(folder / "checkpoint"), []

    def run(self, write):
        writer = self._source.writeStream.option("checkpointLocation", self._checkpoint)
        query = writer.trigger(availableNow=True).foreachBatch(write).start()
        try:
            query.awaitTermination()
        finally:
            self.offsets += [one.sources[0].endOffset for one in query.recentProgress]


class Killed(Exception):
    """Ends a batch as a crash of the driver does: Spark knows of no end of it."""


def test_a_stream_that_is_killed_in_each_batch_has_the_truth_in_delta(
    spark, sandbox, agent, tmp_path
):
    upsert, stream = siteline.spark.upsert(tmp_path / "points"), Stream(spark, tmp_path, maxPages=9)
    killed = set()

    def write(batch, number):
        for when in ("before", "after"):
            if when == "after":
                upsert(batch, number)
            if (number, when) not in killed:
                killed.add((number, when))
                raise Killed

    for _ in range(3):
        runs, batches = 0, len(killed)
        while True:
            try:
                stream.run(write)
                break
            except Exception as error:  # of Spark, around it
                assert "Killed" in str(error), error
                runs += 1
        assert runs == len(killed) - batches > 0
        sandbox.clock.advance("17h")
    sandbox.clock.advance("-17h" if False else "0s")
    stored = points(deltalake.DeltaTable(tmp_path / "points").to_pyarrow_table())
    print(len(killed), stream.offsets[-1], len(stored))
    assert stored
