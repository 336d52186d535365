"""Reads of several sites, lines and parts of a range: one table, and the requests of its chains."""

import pickle
import signal
import threading

import pytest
import siteline
from kit import systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import NOW, SIX_HOURS
from kit.waiting import wait_until
from pandas.testing import assert_frame_equal

LINES = {**SIX_HOURS, "line": ["L1", "L2"]}
"""Two chains of two pages of 30 points, of which the second has six."""

PAGES = 4


def spent(client, read):
    before = client.allowance.used
    return read(), client.allowance.used - before


def reads(client, lines, **change):
    """The points of a read of each line, in the order of a table."""
    tables = [client.read(**{**SIX_HOURS, "line": line, **change}) for line in lines]
    return sorted(row for table in tables for row in table.records(named=True))


# The result


def test_lists_give_the_union_of_single_reads(client):
    single, requests = spent(client, lambda: reads(client, ["L1", "L2"]))
    table, wide = spent(client, lambda: client.read(**LINES))
    assert sorted(table.records(named=True)) == single
    assert (wide, table.report.pages) == (requests, PAGES)
    assert (table.query.site, table.query.line) == (("S1",), ("L1", "L2"))
    assert table.query.start == client.scan(**LINES).query.start
    # What is missing is known as for one chain.
    assert len(table.with_gaps()) == len(client.read(**SIX_HOURS).with_gaps())


@pytest.mark.parametrize("given", [("L1", "L2", "L1"), {"L2", "L1"}, iter(["L1", "L2"])])
def test_ids_are_any_iterable_and_count_once(client, given):
    scan = client.scan(**{**SIX_HOURS, "line": given})
    assert sorted(scan.query.line) == ["L1", "L2"]
    assert spent(client, scan.collect)[1] == PAGES


def test_a_split_read_is_the_same_table(client):
    whole = client.read(**SIX_HOURS)
    for split in (3, "2h"):
        table, requests = spent(client, lambda split=split: client.read(**SIX_HOURS, split=split))
        # 24 points in each part: a page.
        assert (requests, table.report.pages) == (3, 3)
        assert_frame_equal(table.to_pandas(), whole.to_pandas())
        assert table.query == whole.query
        assert table.report.outside_range == 0
    both = client.read(**LINES, split=2)
    assert_frame_equal(both.to_pandas(), whole.to_pandas())
    assert both.report.pages == 4


def test_a_store_has_a_feed_for_each_line(client, tmp_path):
    wide = {**LINES, "concurrency": 9}
    with siteline.Store(tmp_path / "plant.siteline") as store:
        table, requests = spent(client, lambda: client.read(**wide, store=store))
        assert (requests, table.report.pages) == (PAGES, PAGES)
        assert_frame_equal(table.to_pandas(), client.read(**SIX_HOURS).to_pandas())
        assert len(store.feeds) == len(table.report.through) == 2
        again, requests = spent(client, lambda: client.read(**wide, store=store))
        assert (requests, len(again)) == (0, 72)
        assert client.plan(client.scan(**wide, store=store)).pages == 0
        with pytest.raises(
            siteline.errors.QueryError, match="split= cannot be combined with store="
        ):
            client.scan(**SIX_HOURS, split=2, store=store)


def test_a_store_keeps_the_lines_of_a_limit(client, tmp_path):
    with siteline.Store(tmp_path / "plant.siteline") as store:
        scan = client.scan(**LINES, max_pages=3, store=store)
        with pytest.raises(siteline.errors.PageLimitReached, match="max_pages=3") as caught:
            scan.collect()
        assert client.allowance.used == 3
        assert caught.value.bookmark is None
        table, requests = spent(client, scan.collect)
        assert (requests, len(table)) == (1, 72)


def test_scans_pickle_with_their_chains(sandbox, monkeypatch):
    for name, value in sandbox.env().items():
        monkeypatch.setenv(name, value)
    scan = siteline.Client().scan(**LINES, split=2, concurrency=1)
    again = pickle.loads(pickle.dumps(scan))
    assert again.query == scan.query
    assert again.collect().report.pages == 4
    assert sandbox.stats.data_requests == 4


# Requests


def test_the_plan_has_each_chain(client):
    scan = client.scan(**LINES)
    assert [task.pages for task in client.plan(scan).tasks] == [None, None]
    scan.collect()
    assert client.plan(client.scan(**LINES)).pages == PAGES
    assert client.plan(client.scan(**LINES, split=2)).pages == PAGES
    assert client.plan(scan).pages == 0
    assert len(client.plan(client.scan(**LINES, split=3)).tasks) == 6


# After a failure


def failed(sandbox, client, read=2, **change):
    """The error of a read whose requests are refused after so many pages."""
    sandbox.fault(on="data", status=403, skip=read, times=99)
    with pytest.raises(siteline.errors.SitelineError) as caught:
        client.read(**{**LINES, "concurrency": 1, **change})
    sandbox.clear_faults()
    return caught.value


@pytest.mark.parametrize("line", [["L1", "L2"], {"L2", "L1"}, ("L2", "L1")])
@pytest.mark.parametrize("read", [1, 2, 3])
def test_another_process_continues_all_chains(sandbox, line, read):
    client = sandbox.client()
    error = failed(sandbox, client, read)
    bookmark, partial = pickle.loads(pickle.dumps((error.bookmark, error.partial)))
    assert bookmark == error.bookmark
    assert siteline.types.Bookmark.from_bytes(bookmark.to_bytes()) == bookmark
    rest = client.scan(**{**LINES, "line": line}).resume(bookmark, onto=partial)
    table, requests = spent(client, rest.collect)
    assert (requests, table.report.pages, table.report.resumed_after_pages) == (4 - read, 4, 0)
    assert_frame_equal(table.to_pandas(), client.read(**SIX_HOURS).to_pandas())
    bare = client.scan(**{**LINES, "line": line}).resume(bookmark).collect()
    assert (bare.report.pages, bare.report.resumed_after_pages) == (4 - read, read)


@systems.FORK
@pytest.mark.parametrize("line", [["L1"], ["L1", "L2"]])
def test_a_forked_child_does_not_continue_a_read(line):
    script = f"""
        import os, siteline
        sandbox = siteline.Sandbox(now="{NOW}")
        children = []

        def fork(progress):
            if not children:
                children.append(os.fork())

        scan = sandbox.client().scan(**{SIX_HOURS!r} | {{"line": {line!r}}}, progress=fork)
        try:
            print(len(scan.collect()))
        except siteline.errors.ForkError as error:
            assert children == [0] and "collect()" in error.hint
            os._exit(3)
        _, status = os.waitpid(children[0], 0)
        print(os.waitstatus_to_exitcode(status), sandbox.stats.data_requests)
    """
    chains = len(line)
    assert run_script(script, *FORK_WITH_THREADS) == f"{36 * chains}\n3 {2 * chains}"


def test_an_interrupt_keeps_the_pages_of_each_chain(sandbox):
    client = sandbox.client()
    sandbox.fault(on="data", hang=True, skip=2, times=99)
    scan = client.scan(**LINES)
    main = threading.main_thread().ident

    def interrupt():
        # Two pages have come, of one chain or of both. The others are awaited.
        wait_until(lambda: scan.report.pages == 2)
        signal.pthread_kill(main, signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        scan.collect()
    helper.join()
    sandbox.clear_faults()
    assert len(scan.collect()) == 72
    # Four pages, and at most the two requests that were in flight.
    assert client.allowance.used <= 6
