"""The runtime of Python itself: other builds, other interpreters, strict modes, streams."""

import gc
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path

import pyarrow as pa
import pytest
import siteline
from reading import until
from torture.server import Server

NOW = "2026-11-20T00:00:00Z"
DAY = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z", "interval": "1h"}
FREE_THREADED = ("python3.13t", "python3.14t", "python3.15t")


def run(script, *options, python=sys.executable, **environment):
    """Run it in a fresh interpreter; what it printed, which must be all that it said."""
    done = subprocess.run(
        [python, *options, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


READ = f"""
    import asyncio, siteline
    day = {DAY!r}
    with siteline.Sandbox(now="{NOW}") as sandbox:
        with sandbox.client() as client:
            scan = client.data(**day, page_size=50)
            assert sum(len(page) for page in scan.pages()) == len(list(scan.records()))
            assert len(scan.collect()) == len(sandbox.truth(**day))
            try:
                client.data(**day).resume(next(scan.pages()).bookmark)
            except siteline.SitelineError as error:
                print(type(error).__name__)

        async def main():
            async with sandbox.async_client() as client:
                return len(await client.data(**day).collect())

        print(asyncio.run(main()) == len(sandbox.truth(**day)))
"""


@pytest.mark.fault("R18")
@pytest.mark.parametrize(
    "options", [["-W", "error"], ["-X", "dev"], ["-OO"], ["-OO", "-W", "error", "-X", "dev"]]
)
def test_it_is_clean_under_strict_modes(options):
    assert run(READ, *options) == "BookmarkError\nTrue"


@pytest.mark.fault("R18")
def test_it_is_clean_with_pythonoptimize():
    assert run(READ, PYTHONOPTIMIZE="2") == "BookmarkError\nTrue"


@pytest.mark.fault("R11")
def test_a_subinterpreter_refuses_the_import_cleanly_or_works():
    script = """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import siteline
        number = interpreters.create()
        shown = "try: import siteline; print('works')\\nexcept ImportError: print('refused')"
        interpreters.run_string(number, shown)
        interpreters.destroy(number)
        with siteline.Sandbox() as sandbox:
            print(sandbox.client().discover() is not None)
    """
    assert run(script).split("\n") in (["refused", "True"], ["works", "True"])


@pytest.mark.fault("R10")
@pytest.mark.parametrize("name", FREE_THREADED)
def test_a_free_threaded_interpreter_shares_a_client_between_threads(name):
    found = shutil.which(name)
    if not found:
        pytest.skip(f"no {name} on this machine's PATH: the free-threaded build is NOT tested")
    known = subprocess.run([found, "-c", "import siteline"], capture_output=True, timeout=60)
    if known.returncode:
        pytest.skip(f"{name} has no siteline, which needs a build of its own there: NOT tested")
    scripts = Path(__file__).parents[2] / "benches" / "torture" / "scripts"
    for what in ("client", "iterator", "records"):
        with Server() as server:
            url = server.url("page" if what == "client" else "endless")
            command = [found, "-X", "gil=0", str(scripts / "share.py"), "siteline", url, what]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def sandbox():
    with siteline.Sandbox(now=NOW) as sandbox:
        yield sandbox


@pytest.mark.fault("R14")
def test_a_client_closes_twice_and_refuses_what_comes_later(sandbox):
    client = sandbox.client()
    scan = client.data(**DAY)
    pages = client.data(**DAY, page_size=10).pages()
    next(pages)
    client.close()
    client.close()
    for use in (client.discover, scan.collect, scan.to_pandas, lambda: next(pages)):
        with pytest.raises(siteline.ClosedError):
            use()


@pytest.mark.fault("R14")
def test_a_client_that_nobody_closed_goes_without_a_word(sandbox):
    # Warnings are errors here, and those of finalizers fail the test as well.
    client = sandbox.client()
    client.discover()
    pages = client.data(**DAY, page_size=10).pages()
    next(pages)
    del client, pages
    gc.collect()


@pytest.mark.fault("R15")
def test_an_arrow_stream_that_is_left_half_way_is_released_once(sandbox):
    scan = sandbox.client().data(**DAY, page_size=100)
    whole = len(scan.collect())
    for _ in range(50):
        reader = pa.RecordBatchReader.from_stream(scan)
        reader.read_next_batch()
        reader.close()
        unread = scan.__arrow_c_stream__()
        unused = pa.RecordBatchReader.from_stream(scan)
        del reader, unread, unused
    gc.collect()
    assert len(pa.table(scan)) == whole


@pytest.mark.fault("R15")
def test_a_capsule_that_was_consumed_is_not_consumed_again(sandbox):
    table = sandbox.client().data(**DAY).collect()

    class Given:
        def __init__(self):
            self.capsule = table.__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    given = Given()
    assert len(pa.table(given)) == len(table)
    with pytest.raises(pa.ArrowInvalid):
        pa.table(given)


@pytest.mark.fault("R15")
@pytest.mark.parametrize("consume", [pa.table, pa.RecordBatchReader.from_stream])
def test_a_stream_that_fails_on_its_third_page_raises_the_typed_error(sandbox, consume):
    scan = sandbox.client().data(**DAY, page_size=50)
    sandbox.fault(on="data", skip=2, times=1, status=400)
    with pytest.raises(siteline.RequestRejected) as caught:
        consume(scan)
    assert caught.value.bookmark.pages == 2
    assert len(caught.value.partial) == 100
    assert len(consume(scan).schema) == 10


@pytest.mark.fault("R16")
def test_a_slow_reader_has_one_page_read_ahead_and_none_before_it_took_the_second(sandbox):
    client = sandbox.client()
    pages = client.data(**DAY, page_size=10).pages()
    for number in range(1, 6):
        next(pages)
        expected = number + (number > 1)
        until(lambda: sandbox.stats["requests"]["data"].get(200, 0) >= expected)  # noqa: B023
        # However long it waits: here for as long as other requests take, and a minute by the clock.
        for _ in range(5):
            client.discover()
            sandbox.clock.advance("12s")
        assert client.allowance.used == sandbox.stats["data_requests"] == expected


@pytest.mark.fault("R17")
@pytest.mark.parametrize("kept", ["scan", "pages", "records"])
def test_whoever_hears_of_the_progress_of_what_it_keeps_is_collected(sandbox, kept):
    class Job:
        def __init__(self, client):
            scan = client.data(**DAY, progress=self.hear)
            self.kept = scan if kept == "scan" else getattr(scan, kept)()
            # One that was resumed has a reference of its own.
            first = next(client.data(**DAY, page_size=50).pages())
            self.resumed = client.data(**DAY, page_size=50, progress=self.hear).resume(
                first.bookmark
            )

        def hear(self, now):
            self.now = now

    job = Job(sandbox.client())
    gone = weakref.ref(job)
    gc.collect()
    assert gone() is not None
    del job
    gc.collect()
    assert gone() is None


def test_threads_get_each_page_once(sandbox):
    pages = sandbox.client().data(**DAY, page_size=10).pages()
    got = []

    def read():
        got.extend(pages)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, got)) == len(sandbox.truth(**DAY))
    assert sandbox.stats["data_requests"] == len(got)


@pytest.mark.fault("R3")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_threads_that_share_the_points_of_a_store_go_on_beside_one_that_forks(tmp_path):
    script = f"""
        import os, threading, siteline
        over = threading.Event()

        def fork():
            while not over.is_set():
                child = os.fork()
                if child == 0:
                    os._exit(0)
                os.waitpid(child, 0)

        path = {str(tmp_path / "plant")!r}
        with siteline.Sandbox(now="{NOW}") as sandbox, siteline.Store(path) as store:
            feed = siteline.Feed("S1", site="S1", interval="5m", since="2026-11-17T00:00Z")
            sandbox.client().sync(feed, store)
            points = store.points("S1")
            size, given = len(points), []
            forker = threading.Thread(target=fork)
            forker.start()
            for _ in range(200):
                records, counts = points.records(), []
                count = lambda: counts.append(sum(1 for _ in records))
                threads = [threading.Thread(target=count) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                given.append(sum(counts))
            over.set()
            forker.join()
            print(given == [size] * 200)
    """
    # From 3.12 on Python warns of a fork beside threads.
    assert run(script, "-W", "ignore::DeprecationWarning") == "True"
