"""A client that a sandbox handed out keeps it serving, and no longer than it exists itself."""

import asyncio
import socket
from urllib.parse import urlsplit

import siteline
from kit import systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import NOW, SIX_HOURS


def is_served(address):
    """Whether anything listens on the port of a base URL."""
    parts = urlsplit(address)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname, parts.port)) == 0


def a_client():
    return siteline.Sandbox(now=NOW).client()


def a_scan():
    return a_client().scan(**SIX_HOURS)


READS = {
    "a client": lambda: len(a_client().scan(**SIX_HOURS).collect()),
    "a scan": lambda: len(a_scan().collect()),
    "pages": lambda: sum(map(len, a_scan().pages())),
    "records": lambda: sum(1 for _ in a_scan().records()),
    "a part": lambda: len(a_scan().split(2)[0].collect()) * 2,
    "a resumed scan": lambda: len(_resumed(a_scan()).collect()) + 30,
    "head": lambda: len(a_scan().head(72)),
    "asyncio": lambda: asyncio.run(_read_with_asyncio()),
}


def _resumed(scan):
    return scan.resume(next(scan.pages()).bookmark)


async def _read_with_asyncio():
    pages = siteline.Sandbox(now=NOW).async_client().scan(**SIX_HOURS).pages()
    return sum([len(page) async for page in pages])


def test_what_a_sandbox_handed_out_keeps_it_serving():
    for name, read in READS.items():
        assert read() == 72, name


def test_dropping_the_last_client_stops_the_sandbox():
    sandbox = siteline.Sandbox(now=NOW)
    address = sandbox.base_url
    one, two = sandbox.client(), sandbox.async_client()
    pages = one.scan(**SIX_HOURS).pages()
    del sandbox, one
    assert is_served(address)
    del two
    assert len(next(pages)) == 30
    del pages
    assert not is_served(address)


@systems.FORK
def test_a_forked_child_that_drops_its_client_does_not_stop_the_parents_sandbox():
    script = f"""
        import os, siteline
        client = siteline.Sandbox(now="{NOW}").client()
        client.discover()
        child = os.fork()
        if child == 0:
            assert client.discover() is not None
            del client
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), client.discover() is not None)
    """
    assert run_script(script, *FORK_WITH_THREADS) == "0 True"
