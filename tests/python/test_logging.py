"""The records that siteline emits to the loggers of the standard library."""

import asyncio
import logging
import re
import sys

import pytest
import siteline
from kit.command import run_program
from kit.logs import handling
from kit.ranges import DAY
from kit.reading import count_points
from kit.threads import run_in_threads


def logged(caplog, name):
    return [(r.levelname, r.getMessage()) for r in caplog.records if r.name == f"siteline.{name}"]


def test_a_read_logs_its_token_its_requests_and_its_pages(sandbox, caplog):
    caplog.set_level(logging.DEBUG)
    client = sandbox.client()
    scan = client.scan(**DAY, page_size=1_000)
    sandbox.fault(on="data", nth=2, status=503)
    pages = list(scan.pages())
    assert {record.name for record in caplog.records} == {
        "siteline.token",
        "siteline.http",
        "siteline.data",
    }
    assert logged(caplog, "token") == [("INFO", "a new access token, valid for 600 s")]
    data = logged(caplog, "data")
    assert data[0] == ("DEBUG", f"reading {scan.query}")
    assert [level for level, _ in data[1:]] == ["DEBUG"] * (len(pages) - 1) + ["INFO"]
    assert data[1][1].startswith(f"page 1: {len(pages[0])} points of ")
    assert "; next cursor#" in data[1][1]
    requests = [text for level, text in logged(caplog, "http") if level == "DEBUG"]
    assert requests[0].startswith("POST /api/customer/oauth/token: 200, ")
    assert sum("data: 200" in text for text in requests) == len(pages)
    retries = [text for level, text in logged(caplog, "http") if level == "INFO"]
    assert len(retries) == 1
    assert retries[0].startswith("try 1 of 4 ended with ")


def test_a_handler_may_use_the_client_while_many_threads_log(sandbox):
    client = sandbox.client()
    done, failed = [], []

    def emit(record):
        client.discover()
        done.append(record)

    def use():
        try:
            sandbox.client().discover()
            client.scan(**DAY, page_size=2_000).collect()
        except Exception as error:
            failed.append(error)

    # Only once, because a request that is rejected twice is an error (D2).
    sandbox.fault(on="data", times=1, forget_tokens=True)
    with handling(emit, level=logging.INFO):
        run_in_threads(16, use)
    assert not failed
    assert len(done) > 16


@pytest.fixture
def records():
    """The records of siteline during the test."""
    records = []
    with handling(records.append):
        yield records


def logged_pages(records):
    found = (re.match(r"page (\d+): ", record.getMessage()) for record in records)
    return [int(number[1]) for number in found if number]


async def read_items(sandbox, door, way, **options):
    """Reads the whole day by `way`, with the blocking or the async client."""
    if door == "sync":
        for item in getattr(sandbox.client().scan(**DAY, **options), way)():
            yield item
    else:
        async with sandbox.async_client() as client:
            async for item in getattr(client.scan(**DAY, **options), way)():
                yield item


@pytest.mark.parametrize(("way", "door"), [("pages", "sync"), ("records", "async")])
def test_the_records_of_a_page_are_emitted_with_it_and_in_order(sandbox, records, door, way):
    async def read():
        taken = 0
        async for item in read_items(sandbox, door, way, page_size=50):
            taken += count_points(item)
            # Only this page and earlier pages have records.
            assert logged_pages(records) == list(range(1, -(-taken // 50) + 1))
        return taken

    taken = asyncio.run(read())
    assert taken == len(sandbox.expected(**DAY))
    replies = [one for one in records if "data: 200" in one.getMessage()]
    assert len(replies) == logged_pages(records)[-1] == -(-taken // 50)


FIELDS = ("status", "milliseconds", "attempt", "page", "points", "feed")


def fields(record):
    return {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}


def test_records_of_a_read_have_fields_with_numbers(sandbox, records):
    sandbox.fault(on="data", nth=2, status=503)
    pages = list(sandbox.client().scan(**DAY, page_size=1_000).pages())
    by_text = {record.getMessage(): fields(record) for record in records}
    read = [known for text, known in by_text.items() if text.startswith("page ")]
    assert read == [
        {"page": number, "points": len(page)} for number, page in enumerate(pages, start=1)
    ]
    replies = [known for text, known in by_text.items() if " bytes, " in text]
    assert {known["status"] for known in replies} == {200, 503}
    assert {type(known["milliseconds"]) for known in replies} == {int}
    repeats = [known for text, known in by_text.items() if text.startswith("try ")]
    assert repeats == [{"attempt": 1, "status": 503}]
    others = [text for text, known in by_text.items() if not known]
    assert all(text.startswith(("reading ", "a new access token")) for text in others), others


def test_a_logger_has_the_level_that_it_has_when_a_call_begins(sandbox, records):
    chatty = logging.getLogger("siteline.http")
    logging.getLogger("siteline").setLevel(logging.WARNING)
    sandbox.client().scan(**DAY).collect()
    before = len(records)
    chatty.setLevel(logging.DEBUG)
    try:
        sandbox.client().scan(**DAY).collect()
    finally:
        chatty.setLevel(logging.NOTSET)
    assert before == 0
    assert {record.name for record in records} == {"siteline.http"}


CONFIGURED = """
import logging.config
from siteline import Client
logging.config.dictConfig({"version": 1, "root": {"level": "INFO", "handlers": ["err"]},
    "handlers": {"err": {"class": "logging.StreamHandler"}}})
client = Client(labels=False)
client.read(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T01:00Z", interval="1h")
"""


def test_records_are_emitted_after_a_later_configuration(sandbox):
    done = run_program(sys.executable, "-c", CONFIGURED, env=sandbox.env())
    assert "a new access token" in done.stderr


def test_records_of_a_sync_have_the_feed(sandbox, store, records):
    feed = siteline.Feed('line "2"', site="S1", line="L2", interval="1h", start="2026-11-18")
    sandbox.client().sync(feed, store)
    known = [fields(one) for one in records if one.name == "siteline.sync"]
    assert known
    assert all(one == {"feed": 'line "2"'} for one in known)
