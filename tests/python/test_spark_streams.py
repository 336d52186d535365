"""``spark.readStream.format("siteline")`` into Delta, killed in each batch. Only Spark runs it."""

import json
from datetime import datetime

import pyarrow as pa
import pytest
import siteline
import siteline.spark
from kit import spark as engine
from kit.target_rows import points_by_key

deltalake = pytest.importorskip("deltalake")

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not engine.IS_SPARK, reason="Sail has no streams of Python sources"),
]
QUERY = {"site": "S1", "start": "2026-11-18T00:00:00Z", "interval": "1h", "page_size": 40}


@pytest.fixture
def agent(spark, sandbox, set_variables):
    set_variables(sandbox.env())
    agent = siteline.spark.register(spark, siteline.Client(daily_allowance=10_000))
    yield agent
    agent.close()


class Stream:
    """A stream that reads what is available, again and again, with one checkpoint."""

    def __init__(self, spark, folder, **options):
        self._source = spark.readStream.format("siteline").options(**QUERY, **options).load()
        self._checkpoint, self.offsets = str(folder / "checkpoint"), []

    def run(self, write):
        for last in (False, False, False, True):
            writer = self._source.writeStream.option("checkpointLocation", self._checkpoint)
            query = writer.trigger(availableNow=True).foreachBatch(write).start()
            try:
                query.awaitTermination()
            except Exception as error:
                # Spark gives a Python process ten seconds to start: too few on a busy machine.
                if last or "failed to connect back" not in str(error):
                    raise
            else:
                break
            finally:
                ends = [one.sources[0].endOffset for one in query.recentProgress]
                self.offsets += [json.loads(end) if isinstance(end, str) else end for end in ends]


class Killed(Exception):
    """Ends a batch as a crash of the driver does."""


def test_a_stream_that_is_killed_in_each_batch_has_the_truth_in_delta(
    spark, sandbox, agent, tmp_path
):
    upsert, stream = (
        siteline.spark.upsert(tmp_path / "points"),
        Stream(spark, tmp_path, maxPages=12),
    )
    killed = set()
    sandbox.clock.advance(0.25)  # a time of day is no whole second

    def write(batch, number):
        is_before = number % 2 == 0
        if not is_before:
            upsert(batch, number)
        if number not in killed:
            killed.add(number)
            raise Killed
        if is_before:
            upsert(batch, number)

    for wait in ("0h", "31h"):
        sandbox.clock.advance(wait)
        runs, batches = 0, len(killed)
        while True:
            try:
                stream.run(write)
                break
            except Exception as error:  # of Spark, around it
                if "Killed" not in str(error):
                    raise
                runs += 1
        assert runs == len(killed) - batches > 0
    stored = points_by_key(deltalake.DeltaTable(tmp_path / "points").to_pyarrow_table())
    read, settled = map(stream.offsets[-1].__getitem__, ("read", "settled"))
    assert read > settled >= "2026-11-20"
    truth = sandbox.expected(site="S1", start=QUERY["start"], end=read, interval="1h")
    truth = points_by_key(pa.table(truth))
    final = datetime.fromisoformat(settled)
    assert {key: at for key, at in stored.items() if key[5] < final} == {
        key: at for key, at in truth.items() if key[5] < final
    }
    assert stored.keys() <= truth.keys()
    assert sandbox.stats.token_requests <= 3  # a token lives for ten minutes
