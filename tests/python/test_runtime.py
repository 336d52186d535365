"""Python's own runtime: other builds, subinterpreters, strict modes, streams, forks."""

import gc
import shutil
import subprocess
import weakref
from pathlib import Path

import pyarrow as pa
import pytest
import siteline
from kit import systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import HOURLY, NOW
from torture.server import Server

FREE_THREADED = ("python3.13t", "python3.14t", "python3.15t")


READ = f"""
    import asyncio, siteline
    day = {HOURLY!r}
    with siteline.Sandbox(now="{NOW}") as sandbox:
        with sandbox.client(labels=False) as client:
            scan = client.scan(**day, page_size=50)
            assert sum(len(page) for page in scan.pages()) == len(list(scan.records()))
            assert len(scan.collect()) == len(sandbox.expected(**day))
            try:
                client.scan(**day).resume(next(scan.pages()).bookmark)
            except siteline.SitelineError as error:
                print(type(error).__name__)

        async def main():
            # With -X dev asyncio warns of slow steps, which are the machine's.
            asyncio.get_running_loop().slow_callback_duration = 60
            async with sandbox.async_client(labels=False) as client:
                return len(await client.scan(**day).collect())

        print(asyncio.run(main()) == len(sandbox.expected(**day)))
"""


@pytest.mark.parametrize("options", [["-W", "error", "-X", "dev"], ["-OO", "-W", "error"]])
def test_it_is_clean_under_strict_modes(options):
    assert run_script(READ, *options) == "BookmarkError\nTrue"


SUBINTERPRETER = """
    import threading
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters

    def try_in_another():
        number = interpreters.create()
        interpreters.run_string(number, "try: import siteline; print('works')\\n"
                                "except ImportError as error: print(error)")
        interpreters.destroy(number)
"""
REFUSED = "siteline works in the main interpreter of a process only, and this is a subinterpreter."


def test_a_subinterpreter_refuses_the_import_and_the_main_one_works():
    for first in ("import siteline", ""):
        printed = run_script(f"""{SUBINTERPRETER}
    {first}
    try_in_another()
    import siteline
    with siteline.Sandbox() as sandbox:
        print(sandbox.client().discover() is not None)
    """)
        refused, works = printed.split("\n")
        # CPython's own check comes first for isolated interpreters, since 3.12.
        assert refused.startswith(REFUSED) or "does not support loading in subinter" in refused
        assert works == "True"


def test_threads_go_on_when_a_subinterpreter_ends():
    printed = run_script(f"""{SUBINTERPRETER}
    import siteline
    enter, left = threading.Event(), threading.Event()
    with siteline.Sandbox() as sandbox:
        client = sandbox.client(labels=False)

        def read():
            client.discover()
            enter.set()
            assert left.wait(60)
            print(client.discover() is not None)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        assert enter.wait(60)
        try_in_another()
        left.set()
        thread.join(60)
        print(thread.is_alive())
    """)
    assert printed.split("\n")[1:] == ["True", "False"]


@pytest.mark.parametrize("name", FREE_THREADED)
def test_a_free_threaded_interpreter_shares_a_client_between_threads(name):
    found = shutil.which(name)
    if not found:
        pytest.skip(f"no {name} on this machine's PATH: the free-threaded build is NOT tested")
    known = subprocess.run([found, "-c", "import siteline"], capture_output=True, timeout=60)
    if known.returncode:
        pytest.skip(f"{name} has no siteline, which needs a build of its own there: NOT tested")
    scripts = Path(__file__).parents[1] / "stress" / "torture" / "scripts"
    for what in ("client", "iterator", "records"):
        with Server() as server:
            url = server.url("page" if what == "client" else "endless")
            command = [found, "-X", "gil=0", str(scripts / "share.py"), url, what]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


def test_a_client_may_be_closed_twice_and_refuses_later_calls(sandbox):
    client = sandbox.client(labels=False)
    scan = client.scan(**HOURLY)
    pages = client.scan(**HOURLY, page_size=10).pages()
    next(pages)
    client.close()
    client.close()
    for use in (client.discover, scan.collect, scan.to_pandas, lambda: next(pages)):
        with pytest.raises(siteline.errors.ClosedError):
            use()


def test_an_arrow_stream_that_is_not_read_to_its_end_is_released_once(sandbox):
    scan = sandbox.client(labels=False).scan(**HOURLY, page_size=100)
    complete = len(scan.collect())
    for _ in range(10):
        reader = pa.RecordBatchReader.from_stream(scan)
        reader.read_next_batch()
        reader.close()
        unread = scan.__arrow_c_stream__()
        unused = pa.RecordBatchReader.from_stream(scan)
        del reader, unread, unused
    gc.collect()
    assert len(pa.table(scan)) == complete


def test_a_capsule_that_was_consumed_is_not_consumed_again(sandbox):
    table = sandbox.client(labels=False).scan(**HOURLY).collect()

    class Given:
        def __init__(self):
            self.capsule = table.__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    given = Given()
    assert len(pa.table(given)) == len(table)
    with pytest.raises(pa.ArrowInvalid):
        pa.table(given)


@pytest.mark.parametrize("consume", [pa.table, pa.RecordBatchReader.from_stream])
def test_a_stream_that_fails_on_its_third_page_raises_the_typed_error(sandbox, consume):
    scan = sandbox.client(labels=False).scan(**HOURLY, page_size=50)
    sandbox.fault(on="data", skip=2, times=1, status=400)
    with pytest.raises(siteline.errors.RequestRejected) as caught:
        consume(scan)
    assert caught.value.bookmark.pages == 2
    assert len(caught.value.partial) == 100
    assert len(consume(scan).schema) == 10


@pytest.mark.parametrize("kept", ["scan", "pages", "records"])
def test_a_progress_callback_that_owns_its_scan_is_collected(sandbox, kept):
    class Job:
        def __init__(self, client):
            scan = client.scan(**HOURLY, progress=self.on_progress)
            self.kept = scan if kept == "scan" else getattr(scan, kept)()
            # A resumed scan has its own reference to the callback.
            first = next(client.scan(**HOURLY, page_size=50).pages())
            self.resumed = client.scan(**HOURLY, page_size=50, progress=self.on_progress).resume(
                first.bookmark
            )

        def on_progress(self, now):
            self.now = now

    job = Job(sandbox.client(labels=False))
    gone = weakref.ref(job)
    gc.collect()
    assert gone() is not None
    del job
    gc.collect()
    assert gone() is None


# logging is imported first: it adds functions that run before and after a fork, and must not do so
# while another thread forks.
FORKING = f"""
    import logging, os, threading, siteline
    over = threading.Event()

    def fork():
        while not over.is_set():
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)

    def share_points(path):
        with siteline.Sandbox(now="{NOW}") as sandbox, siteline.Store(path) as store:
            feed = siteline.Feed("S1", site="S1", interval="5m", start="2026-11-17T00:00Z")
            sandbox.client().sync(feed, store)
            points = store.read("S1")
            size, given = len(points), []
            for _ in range(20):
                records, counts = points.records(), []
                count = lambda: counts.append(sum(1 for _ in records))
                threads = [threading.Thread(target=count) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                given.append(sum(counts))
            assert given == [size] * 20

    def leave_sandboxes():
        for _ in range(400):
            siteline.Sandbox(now="{NOW}")

    forker = threading.Thread(target=fork)
    forker.start()
    share_points("PATH")
    leave_sandboxes()
    over.set()
    forker.join()
    print("ended")
"""


@systems.FORK
def test_threads_continue_while_another_one_forks(tmp_path):
    script = FORKING.replace("PATH", str(tmp_path / "plant"))
    assert run_script(script, *FORK_WITH_THREADS) == "ended"


def test_no_module_of_siteline_is_imported_while_a_call_waits():
    # A signal handler that runs meanwhile, and calls siteline, would meet it half made.
    printed = run_script(f"""
    import pathlib, sys, tempfile
    import siteline

    with siteline.Sandbox(now="{NOW}") as sandbox, tempfile.TemporaryDirectory() as folder:
        client = sandbox.client(labels=False)
        store = siteline.Store(pathlib.Path(folder) / "plant.siteline")
        scan = client.scan(**{HOURLY!r}, page_size=50)
        feed = siteline.Feed("line", site="S1", line="L1", interval="1h", start=sandbox.clock.now())
        known = set(sys.modules)
        client.discover()
        client.allowance
        scan.collect().report
        list(scan.pages())
        next(scan.records(named=True))
        scan.head()
        sandbox.fault(on="data", status=404, times=1)
        try:
            client.scan(**{HOURLY!r}, page_size=20).collect()
        except siteline.errors.RequestRejected:
            pass
        sandbox.clock.advance(7_200)
        client.plan([feed], store)
        client.sync(feed, store)
        store.coverage("line")
        store.read("line")
        print(sorted(name for name in set(sys.modules) - known if name.startswith("siteline")))
        store.close()
    """)
    assert printed == "[]"


@systems.FORK
def test_a_child_that_drops_its_parents_awaitables_leaves_the_calls_to_the_parent():
    printed = run_script(
        f"""
    import asyncio, gc, os
    import siteline

    async def main(sandbox):
        async with sandbox.async_client(labels=False) as client:
            sandbox.fault(on="data", delay=0.2)
            calls = [asyncio.ensure_future(client.scan(**{HOURLY!r}).collect()) for _ in range(8)]
            while not sandbox.stats.token_requests:
                await asyncio.sleep(0)
            if (child := os.fork()) == 0:
                for call in calls:
                    call.cancel()
                del calls, call
                gc.collect()
                os._exit(0)
            os.waitpid(child, 0)
            print([len(table) > 0 for table in await asyncio.gather(*calls)] == [True] * 8)

    with siteline.Sandbox(now="{NOW}") as sandbox:
        asyncio.run(main(sandbox))
    """,
        *FORK_WITH_THREADS,
    )
    assert printed == "True"
