"""`page.diff(stored)`: what a page brings beside the points that a store has."""

import pyarrow as pa
import pytest
import siteline
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.feeds import make_feed

IDS = ("site_id", "line_id", "machine_id", "device_id", "tag_guid")


@pytest.fixture
def page(sandbox):
    """A page of a sync, the first and last of its chain."""
    feed = make_feed(start="2026-11-19T00:00Z", page_size=5_000)
    [(page, _)] = sandbox.client().sync_pages(feed, {})
    assert page.is_whole
    return page


def keys(page):
    return {tuple(record.values())[:6] for record in page.records()}


def plain(table):
    """The fields of a table, with its ids as text."""
    return [pa.field(f.name, pa.string()) if f.name in IDS else f for f in table.schema]


@pytest.mark.parametrize("kind", ["polars", "duckdb", "view", "nanoseconds"])
def test_streams_of_any_library_compare(page, kind):
    import duckdb
    import polars as pl

    table = pa.table(page)
    if kind == "polars":
        stored = pl.from_arrow(table)
    elif kind == "duckdb":
        stored = duckdb.from_arrow(table)
    elif kind == "view":
        fields = [f.with_type(pa.string_view()) if f.name in IDS else f for f in plain(table)]
        columns = [pa.array(table[field.name].to_pylist(), field.type) for field in fields]
        stored = pa.table(columns, schema=pa.schema(fields))
    else:
        times = table["timestamp"].cast(pa.timestamp("ns", "UTC"))
        stored = table.set_column(5, "timestamp", times)
    difference = page.diff(stored)
    assert repr(difference) == (
        f"<PageDiff: 0 inserted, 0 changed, {len(page)} unchanged, 0 missing>"
    )
    part = difference.unchanged
    assert (part.sequence, part.feed, part.is_last) == (page.sequence, "line-2", True)
    assert part.report.points == len(part) == len(page)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_parts_are_those_of_a_plain_comparison(shared_page, data):
    rows = list(shared_page.records(named=True))[:40]
    known = data.draw(st.lists(st.sampled_from(rows), unique=True))
    stored = []
    for row in known:
        value = data.draw(st.sampled_from([row.value, None, -5.0]))
        tag = data.draw(st.sampled_from([row.tag_guid, "other"]))
        stored.append((row._replace(value=value, tag_guid=tag), data.draw(st.booleans())))
    stored = list({tuple(row[:6]): (row, flag) for row, flag in stored}.values())
    columns = list(zip(*(row for row, _ in stored), strict=True)) or [()] * 10
    columns.append(tuple(flag for _, flag in stored))
    fields = [*plain(pa.table(shared_page)), pa.field("withdrawn", pa.bool_())]
    arrays = [pa.array(column, f.type) for column, f in zip(columns, fields, strict=True)]
    table = pa.table(arrays, schema=pa.schema(fields))
    difference = shared_page.diff(table)
    has = {tuple(row[:6]): (tuple(row[6:]), flag) for row, flag in stored}
    now = {tuple(row[:6]): tuple(row[6:]) for row in shared_page.records(named=True)}
    assert keys(difference.inserted) == now.keys() - has.keys()
    same = {key for key, values in now.items() if has.get(key) == (values, False)}
    assert keys(difference.unchanged) == same
    assert keys(difference.changed) == now.keys() & has.keys() - same
    missing = {key for key, (_, flag) in has.items() if key not in now and not flag}
    assert keys(difference.missing) == missing


@pytest.fixture(scope="module")
def shared_page():
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        feed = make_feed()
        yield next(page for page, _ in sandbox.client().sync_pages(feed, {}) if page is not None)


def test_wrong_columns_are_refused_with_the_reason(page):
    table = pa.table(page)
    for stored, words in (
        (table.drop_columns(["minimum"]), 'no column "minimum"'),
        (table.slice(0, 0).drop_columns(["value"]), 'no column "value"'),
        (table.set_column(5, "timestamp", table["timestamp"].cast(pa.timestamp("us"))), "naive"),
        (table.append_column("withdrawn", table["value"]), "withdrawn"),
        ([1, 2, 3], "an Arrow stream"),
    ):
        with pytest.raises(siteline.errors.QueryError, match=words):
            page.diff(stored)
