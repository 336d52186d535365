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


def test_points_are_inserted_changed_unchanged_or_missing(page):
    table = pa.table(page)
    column = table["value"].to_pylist()
    changed = table.set_column(6, "value", pa.array([None, -1.0, *column[2:]]))
    other = changed.slice(0, 1).set_column(4, "tag_guid", pa.array(["elsewhere"]))
    stored = pa.concat_tables(
        [part.cast(pa.schema(plain(table))) for part in (changed.slice(0, 50), other)]
    )
    difference = page.diff(stored)
    rows = [tuple(record.values())[:6] for record in page.records()]
    assert keys(difference.inserted) == set(rows[50:])
    assert keys(difference.changed) == set(rows[:2])
    assert keys(difference.unchanged) == set(rows[2:50])
    assert [record["tag_guid"] for record in difference.missing.records()] == ["elsewhere"]
    assert repr(difference) == (
        f"<PageDiff: {len(rows) - 50} inserted, 2 changed, 48 unchanged, 1 missing>"
    )
    part = difference.changed
    assert (part.sequence, part.feed, part.is_last) == (page.sequence, "line-2", True)
    assert part.report.points == len(part) == 2


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
    assert len(difference.unchanged) == len(page)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_parts_are_those_of_a_plain_comparison(shared_page, data):
    """A law: whatever is stored, each point is in the part of its description."""
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
    with pytest.raises(siteline.errors.QueryError, match='no column "minimum"'):
        page.diff(table.drop_columns(["minimum"]))
    with pytest.raises(siteline.errors.QueryError, match='no column "value"'):
        page.diff(table.slice(0, 0).drop_columns(["value"]))
    naive = table.set_column(5, "timestamp", table["timestamp"].cast(pa.timestamp("us")))
    with pytest.raises(siteline.errors.QueryError, match="naive"):
        page.diff(naive)
    with pytest.raises(siteline.errors.QueryError, match="withdrawn"):
        page.diff(table.append_column("withdrawn", table["value"]))
    with pytest.raises(siteline.errors.QueryError, match="an Arrow stream"):
        page.diff([1, 2, 3])
