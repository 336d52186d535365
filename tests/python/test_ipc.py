"""Points as the bytes of an Arrow IPC stream, which the command writes without pyarrow."""

import io
import math

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import siteline
from kit.ranges import DAY

IDS = list(siteline.types.Record._fields[:5])
START, END = "2026-11-01T00:00:00Z", "2026-11-01T06:00:00Z"


def plant(rows):
    """Returns points of two series, some without ids or values."""
    numbers = range(rows)
    counts = [None if row % 4 == 0 else row for row in numbers]
    return pd.DataFrame(
        {
            "timestamp": pd.date_range(START, periods=rows, freq="1s"),
            "value": [math.nan if row % 3 == 0 else float(row) for row in numbers],
            "minimum": 0.5,
            "maximum": 9.5,
            "sample_count": pd.array(counts, "Int64"),
            "machine_id": [None if row % 2 else "M1" for row in numbers],
            "tag_guid": [f"tag-{row % 2}-ä" for row in numbers],
        }
    )


def arrow_of(holder):
    """Reads the stream with pyarrow. Nothing may follow its end."""
    source = io.BytesIO(b"".join(holder._ipc()))
    with pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
    assert source.read() == b""
    return table


def assert_same(holder):
    """Checks that pyarrow reads the table of `to_arrow()`, and polars the same points."""
    table, expected = arrow_of(holder), holder.to_arrow()
    assert table.schema.equals(expected.schema, check_metadata=True)
    assert table.equals(expected)
    for name in IDS:
        assert table.schema.field(name).type == pa.dictionary(pa.int32(), pa.string())
    frame = pl.read_ipc_stream(b"".join(holder._ipc()))
    assert frame.with_columns(pl.col(IDS).cast(pl.String)).equals(holder.to_polars())
    return expected


@pytest.mark.sandbox(variant=siteline.testing.Variant(extra_members=True))
def test_the_stream_of_a_table_and_of_a_page_is_their_arrow_table(sandbox):
    client = sandbox.client()
    table = client.scan(**DAY, extra_columns=["quality"]).collect()
    assert "quality" in arrow_of(table).column_names
    assert assert_same(table).num_rows == len(table) > 1_000
    assert_same(next(client.scan(**DAY, page_size=50).pages()))


def test_a_large_table_comes_in_parts_and_its_ids_once(sandbox):
    rows = 2 * (1 << 16) + 7
    sandbox.load(plant(rows))
    end = pd.Timestamp(START) + pd.Timedelta(seconds=rows)
    client = sandbox.client(labels=False)
    table = client.scan(start=START, end=end, interval="1s", page_size=10_000).collect()
    parts = list(table._ipc())
    assert len(parts) == 4, "three batches and the end of the stream"
    assert [type(part) for part in parts] == [bytes] * 4
    assert max(map(len, parts)) < 5_000_000
    assert b"".join(parts).count("tag-1-ä".encode()) == 1
    table_again = arrow_of(table)
    nulls = [table_again[name].null_count for name in ("value", "sample_count", "machine_id")]
    assert nulls == [-(-rows // 3), -(-rows // 4), rows // 2]
    assert [batch.num_rows for batch in table_again.to_batches()] == [1 << 16, 1 << 16, 7]
    assert table_again.equals(table.to_arrow())
    frame = pl.read_ipc_stream(b"".join(parts))
    assert frame.with_columns(pl.col(IDS).cast(pl.String)).equals(table.to_polars())


def test_without_points_the_stream_has_the_schema(sandbox):
    none = sandbox.expected(
        site="S1", start=START, end=END, interval="1h", filters={"tagGuid": "-"}
    )
    sandbox.fault(on="data", empty_page=True)
    page = next(sandbox.client().scan(**DAY).pages())
    for holder in (none, page):
        assert len(holder) == 0
        table, expected = arrow_of(holder), holder.to_arrow()
        assert table.num_rows == expected.num_rows == 0
        assert table.schema.equals(expected.schema, check_metadata=True)
        frame = pl.read_ipc_stream(b"".join(holder._ipc()))
        assert frame.columns == table.column_names
        assert frame.height == 0
