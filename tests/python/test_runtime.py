"""Python's own runtime: other builds, subinterpreters, strict modes, streams, forks."""

import gc
import shutil
import subprocess
import weakref
from pathlib import Path

import pyarrow as pa
import pytest
import siteline
from kit.interpreter import run_script
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
        # Since 3.12, CPython checks isolated interpreters before siteline does.
        assert refused.startswith(REFUSED) or "does not support loading in subinter" in refused
        assert works == "True"


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
