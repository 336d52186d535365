"""What is logged, by whom and when: the stdlib's loggers, at the latest when a call ends."""

import asyncio
import logging
import threading

import pytest
import siteline

DAY = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z", "interval": "5m"}


@pytest.fixture
def sandbox():
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        yield sandbox


def said(caplog, name):
    return [(r.levelname, r.getMessage()) for r in caplog.records if r.name == f"siteline.{name}"]


def test_a_read_tells_its_token_its_requests_and_its_pages(sandbox, caplog):
    caplog.set_level(logging.DEBUG)
    client = sandbox.client()
    scan = client.data(**DAY, page_size=1_000)
    sandbox.fault(on="data", nth=2, status=503)
    pages = list(scan.pages())
    assert {record.name for record in caplog.records} == {
        "siteline.token",
        "siteline.http",
        "siteline.data",
    }
    assert said(caplog, "token") == [("INFO", "a new access token, good for 600 s")]
    data = said(caplog, "data")
    assert data[0] == ("DEBUG", f"reading {scan.query}")
    assert [level for level, _ in data[1:]] == ["DEBUG"] * (len(pages) - 1) + ["INFO"]
    assert data[1][1].startswith(f"page 1: {len(pages[0])} points of ")
    assert "goes on at cursor#" in data[1][1]
    requests = [text for level, text in said(caplog, "http") if level == "DEBUG"]
    assert requests[0].startswith("POST /api/customer/oauth/token: 200, ")
    assert sum("data: 200" in text for text in requests) == len(pages)
    retries = [text for level, text in said(caplog, "http") if level == "INFO"]
    assert len(retries) == 1
    assert retries[0].startswith("try 1 of 4 ended with ")


@pytest.mark.fault("R13")
def test_no_record_holds_a_secret(caplog):
    caplog.set_level(logging.DEBUG)
    with siteline.Sandbox(now="2026-11-20T00:00:00Z", record_wire=True) as sandbox:
        sandbox.fault(on="data", nth=2, status=503)
        sandbox.client().data(**DAY, page_size=1_000).collect()
        wire = "\n".join(sandbox.wire)
    text = "\n".join(repr(vars(record)) for record in caplog.records)
    secrets = [line.split(" ", 2)[2] for line in wire.splitlines() if "Bearer " in line]
    secrets += [part.split("&")[0].split(" ")[0] for part in wire.split("cursor=")[1:]]
    secrets += [part.split("&")[0] for part in wire.split("client_assertion=")[1:]]
    assert len(secrets) > 5
    for secret in secrets:
        assert secret[:16] not in text


def test_a_record_is_there_while_the_call_still_waits(sandbox):
    client = sandbox.client()
    client.discover()
    heard = threading.Event()

    class Hearing(logging.Handler):
        def emit(self, record):
            heard.set()

    handler = Hearing(logging.INFO)
    logger = logging.getLogger("siteline.http")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    sandbox.fault(on="data", nth=1, status=503)
    sandbox.fault(on="data", nth=2, hang=True)
    thread = threading.Thread(target=lambda: read_until_closed(client))
    thread.start()
    try:
        assert heard.wait(30), "the retry is told while the next attempt hangs"
    finally:
        client.close()
        thread.join(30)
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def read_until_closed(client):
    with pytest.raises(siteline.ClosedError):
        client.data(**DAY).collect()


@pytest.mark.parametrize("door", ["sync", "async"])
def test_records_of_a_call_are_there_when_it_returns(sandbox, caplog, door):
    caplog.set_level(logging.DEBUG)
    for _ in range(50):
        caplog.clear()
        if door == "sync":
            sandbox.client().discover()
        else:
            asyncio.run(discover(sandbox))
        assert "discovery: 200" in said(caplog, "http")[-1][1]


async def discover(sandbox):
    async with sandbox.async_client() as client:
        await client.discover()


@pytest.mark.fault("R9")
def test_a_hundred_threads_and_a_handler_that_asks_the_client_itself(sandbox):
    client = sandbox.client()
    done, failed = [], []

    class Asking(logging.Handler):
        """Holds its lock, as every handler does, while it asks for what another thread may hold."""

        def emit(self, record):
            client.discover()
            done.append(record)

    def use():
        try:
            sandbox.client().discover()
            client.data(**DAY, page_size=2_000).collect()
        except Exception as error:
            failed.append(error)

    handler = Asking()
    logger = logging.getLogger("siteline")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        # Once: a request that is refused twice is an error, and rightly so (D2).
        sandbox.fault(on="data", times=1, forget_tokens=True)
        threads = [threading.Thread(target=use, daemon=True) for _ in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads), "a deadlock"
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert not failed
    assert len(done) > 100
