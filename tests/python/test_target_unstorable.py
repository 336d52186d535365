"""If a database cannot store some values, only their range is skipped."""

import random
import string

import pytest
import siteline
from kit.feeds import load_tag, make_feed, stored_points
from kit.memory_store import MemoryStore
from siteline.targets import DuckDB, _refusals

BAD = "T\0\x1b7"
SINCE = "2026-11-18T00:00Z"


class Picky(MemoryStore):
    """A store that rejects pages with a certain tag, as a database may do."""

    def apply(self, feed, page, state):
        if page is not None and any(one["tag_guid"] == BAD for one in page.records()):
            raise _refusals.unstorable("Picky", feed, f"the tag_guid {BAD!r} is bad.", "Rename it.")
        return super().apply(feed, page, state)


def feeds(**options):
    options = {
        "start": "2026-11-18T00:00Z",
        "window": "6h",
        "settle_lag": "0s",
        "audit_pages": 0,
        **options,
    }
    return [make_feed(f"line-{n}", line=f"L{n}", **options) for n in (1, 2)]


@pytest.mark.parametrize(("batch", "options"), [("chain", {}), (None, {"concurrency": 4})])
def test_a_refused_page_sets_its_range_aside(sandbox, store, batch, options):
    load_tag(sandbox, BAD, "2026-11-18T12:00Z", "2026-11-18T13:00Z")
    for line in ("L1", "L2"):
        load_tag(sandbox, "T1", line=line)
    client, target, both = sandbox.client(), Picky(batch), feeds(page_size=20)
    client.sync(both, store)
    with pytest.raises(siteline.errors.StoreError, match="the tag_guid") as caught:
        client.sync(both, target, **options)
    assert "2026-11-18T12:00:00Z to 2026-11-19T12:00:00Z is skipped until 2026-11-21" in (
        caught.value.hint
    )
    assert caught.value.hint.endswith("Rename it.")
    assert target.points("line-2") == stored_points(store, "line-2") != {}
    expected = {key: row for key, row in stored_points(store, "line-1").items() if key[4] != BAD}
    aside = {key for key in expected if "2026-11-18 12" <= str(key[5]) < "2026-11-19 12"}
    assert len(aside) == 288
    assert target.points("line-1").keys() >= expected.keys() - aside
    report = client.sync(both, target, **options)
    assert (report.requests, report.complete) == (0, False)
    [one] = report["line-1"].skipped
    assert one.error == "StoreError"
    assert report["line-2"].skipped == ()
    # The sync reads the range again a day later.
    target.apply = MemoryStore.apply.__get__(target)
    sandbox.clock.advance("25h")
    assert client.sync(both, target, **options)["line-1"].skipped == ()
    assert target.points("line-1").keys() >= aside


def test_a_series_that_is_always_refused_costs_three_pages(sandbox):
    load_tag(sandbox, BAD)
    load_tag(sandbox, "T1", line="L2")
    client, target = sandbox.client(), Picky()
    with pytest.raises(siteline.errors.StoreError):
        client.sync(feeds(), target)
    assert len(client.sync(feeds(), target)["line-1"].skipped) == 3
    spent = sandbox.stats.data_requests
    for _ in range(3):
        assert client.sync(feeds()[0], target).requests == 0
    assert sandbox.stats.data_requests == spent
    assert len(target.points("line-2")) == 576


@pytest.mark.parametrize("name", ["DuckDB", "Delta"])
def test_duckdb_and_delta_store_such_ids(sandbox, store, tmp_path, name):
    if name == "Delta":
        pytest.importorskip("deltalake")
    letters = random.Random(1)
    long = "".join(letters.choices(string.printable + "äß☃𝄞", k=9_000))
    for tag in (BAD, long):
        load_tag(sandbox, tag)
    target = getattr(siteline.targets, name)(tmp_path / "target")
    for one in (store, target):
        assert sandbox.client().sync(feeds()[0], one).complete
    rows = target.changes("line-1")
    import pyarrow as pa

    found = {row["tag_guid"] for row in pa.table(rows).to_pylist()}
    assert found == {BAD, long}


def test_a_constraint_of_a_table_refuses_pages_alone(sandbox, tmp_path):
    import duckdb

    load_tag(sandbox, "T1", "2026-11-18T00:00Z", "2026-11-18T06:00Z")
    load_tag(sandbox, "T1", line="L2")
    path = tmp_path / "plant.duckdb"
    with DuckDB(path) as target, target.lock("x"):
        columns = target._run('DESCRIBE "points"')
    text = ", ".join(f"{name} {kind}" for name, kind, *_ in columns)
    with duckdb.connect(path) as connection:
        connection.execute("DROP VIEW points_settled; DROP TABLE points")
        connection.execute(f"CREATE TABLE points ({text}, CHECK (line_id <> 'L1'))")
    with DuckDB(path) as target:
        with pytest.raises(siteline.errors.StoreError, match=r"DuckDB .*CHECK") as caught:
            sandbox.client().sync(feeds(), target)
        assert isinstance(caught.value.__cause__, duckdb.ConstraintException)
        assert sandbox.client().sync(feeds(), target).requests == 0
        assert len(target.changes("line-2").fetchall()) == 576


def test_a_batch_refused_at_the_end_is_set_aside(sandbox):
    load_tag(sandbox, BAD, "2026-11-18T00:00Z", "2026-11-20T00:00Z")
    client, target = sandbox.client(), Picky("chain")
    (feed, _) = feeds(page_size=20)
    with pytest.raises(siteline.errors.StoreError, match="the tag_guid"):
        client.sync(feed, target, max_pages=2)
    coverage = siteline.types.Coverage.from_state(target.states["line-1"], sandbox.clock.now())
    assert any(window.skipped_until for window in coverage)
    assert not target.points("line-1")
