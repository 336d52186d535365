"""`siteline.otel`: client spans that follow the conventions for HTTP, their header, and metrics."""

import asyncio
import re
from collections import defaultdict

import pytest
import siteline
import siteline.otel
from kit.feeds import make_feed
from kit.ranges import HOURLY, SIX_HOURS
from kit.secret_forms import found
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

WIRE = pytest.mark.sandbox(record_wire=True)


class Recorded:
    """Providers that keep spans and metrics in memory."""

    def __init__(self):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self.reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.tracers.get_tracer("a program")

    @property
    def providers(self):
        return {"tracer_provider": self.tracers, "meter_provider": self.meters}

    def spans(self, name=""):
        """The spans of requests, in the order in which they ended."""
        spans = self.exporter.get_finished_spans()
        return [span for span in spans if span.kind is SpanKind.CLIENT and name in span.name]

    def metrics(self):
        """Returns the points of each metric as pairs of attributes and value."""
        data = self.reader.get_metrics_data()
        points = defaultdict(list)
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                assert scope.scope.name == "siteline"
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        points[metric.name].append((dict(point.attributes), point))
        return points

    def total(self, name, **attributes):
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        points = self.metrics()[name]
        return sum(p.value for given, p in points if wanted.items() <= given.items())


@pytest.fixture
def recorded():
    """All clients are instrumented until the end of the test."""
    recorded = Recorded()
    siteline.otel.instrument(**recorded.providers)
    yield recorded
    siteline.otel.uninstrument()


def sent_headers(sandbox):
    return re.findall(r"(?im)^traceparent: (\S+)", "\n".join(sandbox.wire))


@WIRE
def test_each_attempt_is_a_client_span_under_that_of_its_caller(sandbox, recorded):
    sandbox.fault(on="data", nth=2, status=503)
    client = sandbox.client(labels=False)
    with recorded.tracer.start_as_current_span("nightly") as nightly:
        client.scan(**SIX_HOURS).collect()
    token, *pages = recorded.spans()
    assert token.name == "POST /api/customer/oauth/token"
    assert [page.name for page in pages] == ["GET /api/customer/v1/data"] * 4
    context = nightly.get_span_context()
    for span in (token, *pages):
        assert span.parent.span_id == context.span_id
        assert span.context.trace_id == context.trace_id
    address, port = sandbox.base_url.removeprefix("http://").split(":")
    assert dict(pages[0].attributes) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.response.body.size": pages[0].attributes["http.response.body.size"],
        "server.address": address,
        "server.port": int(port),
        "url.full": f"{sandbox.base_url}/api/customer/v1/data",
        "siteline.request.kind": "data",
        "siteline.points": 30,
    }
    failed, repeated = pages[1:3]
    assert failed.attributes["error.type"] == "503"
    assert failed.status.status_code is StatusCode.ERROR
    assert repeated.status.status_code is StatusCode.UNSET
    assert repeated.attributes["http.request.resend_count"] == 1
    assert repeated.attributes["siteline.retry.reason"] == "503"
    header = f"00-{context.trace_id:032x}-{context.span_id:016x}-"
    assert len(sent_headers(sandbox)) == 5
    assert all(sent.startswith(header) for sent in sent_headers(sandbox))


def test_a_span_has_the_times_of_its_attempt(sandbox, recorded):
    notes = []
    # The client's own callable is called too.
    with sandbox.client(on_request=notes.append) as client:
        client.scan(**SIX_HOURS).collect()
    for note, span in zip(notes, recorded.spans(), strict=True):
        assert span.start_time == round(note.started.timestamp() * 1e6) * 1_000
        assert span.end_time == span.start_time + round(note.duration * 1e9)


@WIRE
def test_a_prefetched_page_belongs_to_the_call_that_began_its_request(sandbox, recorded):
    pages = sandbox.client(labels=False).scan(**SIX_HOURS).pages()
    parents = []
    for name in ("first", "second", "third"):
        with recorded.tracer.start_as_current_span(name) as span:
            next(pages)
            parents.append(span.get_span_context().span_id)
    spans = [span.parent.span_id for span in recorded.spans("data")]
    assert spans == [parents[0], parents[1], parents[1]]
    assert [int(sent.split("-")[2], 16) for sent in sent_headers(sandbox)[1:]] == spans


@WIRE
def test_in_asyncio_each_task_has_its_own_spans(sandbox, recorded):
    async def read(client, line):
        with recorded.tracer.start_as_current_span(line) as span:
            await client.scan(**SIX_HOURS, line=line).collect()
        return span.get_span_context().span_id

    async def main():
        async with sandbox.async_client(labels=False) as client:
            await client.discover()
            return await asyncio.gather(read(client, "L1"), read(client, "L2"))

    callers = asyncio.run(main())
    spans = [span.parent.span_id for span in recorded.spans("data")]
    assert sorted(spans) == sorted(callers * 2)
    assert sorted(int(sent.split("-")[2], 16) for sent in sent_headers(sandbox)) == sorted(spans)


def test_what_is_counted_is_what_the_service_counted(sandbox, recorded):
    for number in (2, 5):
        sandbox.fault(on="data", nth=number, status=503)
    client = sandbox.client(daily_allowance=100)
    client.discover()
    table = client.scan(**{**HOURLY, "page_size": 50}).collect()
    stats = sandbox.stats
    for kind, statuses in stats.requests.items():
        for status, count in statuses.items():
            attributes = {"siteline__request__kind": kind, "http__response__status_code": status}
            assert recorded.total("siteline.requests", **attributes) == count
    assert recorded.total("siteline.requests") == 2 + stats.data_requests
    assert recorded.total("siteline.exchanges") == stats.tokens_issued == 1
    assert recorded.total("siteline.pages") == stats.data_requests - 2 == 6
    assert recorded.total("siteline.points") == len(table)
    received = [span.attributes["http.response.body.size"] for span in recorded.spans()]
    assert recorded.total("siteline.received") == sum(received) > 0
    ((_, left),) = recorded.metrics()["siteline.allowance.left"]
    assert left.value == client.allowance.left == 92
    durations = recorded.metrics()["http.client.request.duration"]
    assert sum(point.count for _, point in durations) == len(received)
    assert durations[0][1].explicit_bounds[0] == 0.005


def test_a_sync_counts_its_feeds_and_what_it_revised(sandbox, store, recorded):
    feeds = [make_feed(f"line-{number}", line=f"L{number}") for number in (1, 2)]
    client = sandbox.client(labels=False)
    client.sync(feeds, store)
    assert recorded.total("siteline.points.revised") == 0
    sandbox.clock.advance("2d")
    report = client.sync(feeds, store, concurrency=8)
    revised = {one.name: one.revised for one in report.feeds}
    assert sum(revised.values()) > 0
    for feed, count in revised.items():
        assert recorded.total("siteline.points.revised", siteline__feed=feed) == count
        assert recorded.total("siteline.pages", siteline__feed=feed) > 0
    spans = {span.attributes["siteline.feed"] for span in recorded.spans("data")}
    assert spans == {"line-1", "line-2"}


@WIRE
def test_one_client_alone_can_be_instrumented_and_has_its_own_providers(sandbox, recorded):
    own, client, other = Recorded(), sandbox.client(), sandbox.client(labels=False)
    siteline.otel.instrument(client, **own.providers)
    client.discover()
    assert [len(one.spans("discovery")) for one in (own, recorded)] == [1, 0]
    other.discover()
    assert [len(one.spans("discovery")) for one in (own, recorded)] == [1, 1]
    siteline.otel.uninstrument(client)
    client.discover()
    assert [len(one.spans("discovery")) for one in (own, recorded)] == [1, 2]
    siteline.otel.uninstrument()
    with recorded.tracer.start_as_current_span("nightly"):
        client.discover()
    assert [len(one.spans("discovery")) for one in (own, recorded)] == [1, 2]
    assert sent_headers(sandbox) == []

    async def main():
        async with sandbox.async_client(labels=False) as asynchronous:
            siteline.otel.instrument(asynchronous, **own.providers)
            await asynchronous.discover()
            siteline.otel.uninstrument(asynchronous)
            await asynchronous.discover()

    asyncio.run(main())
    assert len(own.spans("discovery")) == 2


def test_counts_go_on_where_the_same_provider_is_given_again(sandbox, recorded, caplog):
    client = sandbox.client(labels=False)
    client.discover()
    siteline.otel.instrument(**recorded.providers)
    client.discover()
    assert recorded.total("siteline.requests") == 3
    assert caplog.text == "", "no instrument is made twice"


@WIRE
def test_no_span_and_no_metric_holds_a_secret(sandbox, recorded):
    client = sandbox.client(labels=False)
    with recorded.tracer.start_as_current_span("nightly"):
        for fault in ({"status": 503}, {"cut": 100}, {"status": 401}, {"reset": True}):
            sandbox.fault(on="data", skip=1, times=1, **fault)
            client.scan(**SIX_HOURS).collect()
            sandbox.clear_faults()
    errors = {span.attributes.get("error.type") for span in recorded.spans("data")}
    assert errors == {None, "503", "401", "TruncatedBody", "TransportError"}
    spans = [span.to_json() for span in recorded.exporter.get_finished_spans()]
    text = "\n".join([*spans, recorded.reader.get_metrics_data().to_json()]).encode()
    wire = "\n".join(sandbox.wire)
    secrets = re.findall(r"(?i)authorization: bearer (\S+)", wire)
    secrets += re.findall(r"client_assertion=([^&\s]+)", wire)
    secrets += re.findall(r"cursor=([^&\s]+)", wire)
    assert len(set(secrets)) > 5
    assert [secret for secret in secrets if found(secret.encode(), text)] == []
