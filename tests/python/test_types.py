"""The records of `siteline.types`: results of the core as dataclasses and as JSON."""

import dataclasses
import json
import pickle
import typing
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import UnionType

import pytest
import siteline
from kit.feeds import make_feed
from siteline import types
from siteline._times import duration

RANGE = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z", "interval": "1h"}
RECORDS = {name for name in types.__all__ if hasattr(getattr(types, name), "_restore")}


def mismatches(value, kind, where):
    """Returns one line for each difference between a value and its declared type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, UnionType):
        choices = [mismatches(value, one, where) for one in arguments]
        return [] if [] in choices else choices[0]
    if origin is typing.Literal:
        return [] if value in arguments else [f"{where} is {value!r}"]
    if origin in (tuple, list) and type(value) is origin:
        parts = [mismatches(one, arguments[0], f"{where}[]") for one in value]
        return [line for part in parts for line in part]
    if dataclasses.is_dataclass(kind) and type(value) is kind:
        parts = [
            mismatches(getattr(value, field.name), field.type, f"{where}.{field.name}")
            for field in dataclasses.fields(kind)
        ]
        return [line for part in parts for line in part]
    if origin is None and issubclass(kind, BaseException):
        return [] if isinstance(value, kind) else [f"{where} is a {type(value).__name__}"]
    if origin is Mapping and isinstance(value, Mapping):
        return []
    # The exact type: True is not a count.
    return [] if type(value) is (origin or kind) else [f"{where} is a {type(value).__name__}"]


def skipped(sandbox, store):
    """A sync that skips a range of one feed."""
    feed = siteline.Feed("skipped", site="S1", interval="1h", start="2026-11-19", page_size=50)
    sandbox.fault(on="data", forget_cursors=True, times=20)
    with pytest.raises(siteline.errors.CursorRejected):
        sandbox.client().sync(feed, store)
    sandbox.clear_faults()
    return sandbox.client().sync(feed, store)


@pytest.fixture
def made(sandbox, tmp_path):
    """Records of every class, as the package returns them."""
    store, seen, events = siteline.Store(tmp_path / "plant.siteline"), [], []
    feed = make_feed(interval="1h", start="2026-11-15T00:00Z", page_size=50, audit_pages=2)
    frugal = sandbox.client(daily_allowance=2, on_request=events.append)
    sandbox.fault(on="data", reset=True)
    reports = [frugal.sync(feed, store, progress=seen.append), sandbox.client().sync(feed, store)]
    sandbox.clock.advance("6h")
    reports += [sandbox.client().sync(feed, store), skipped(sandbox, store)]
    plans = [frugal.plan(feed, store), sandbox.client().plan(frugal.scan(**RANGE))]
    work = []
    store.check(progress=work.append)
    # The second read finds a part in the store.
    reads = [sandbox.client().scan(**RANGE, store=store).collect() for _ in range(2)]
    shares = [share for table in reads for share in table.report.through]
    freed = store.forget("line-2", before="2026-11-16T00:00Z")
    coverages = [store.coverage(name) for name in ("line-2", "skipped")]
    latenesses = [store.lateness("line-2"), types.Lateness.from_state(store.state("line-2"))]
    diagnoses = [siteline.doctor(), siteline.doctor(sandbox.client())]
    discovery = sandbox.client().discover()
    feeds = [one for report in reports for one in report.feeds]
    with siteline.Agent(sandbox.client()) as agent:
        agents = [agent.state]
    return {
        "AgentState": agents,
        "Allowance": [report.allowance for report in reports],
        "Check": [check for one in diagnoses for check in one.checks],
        "Coverage": [*coverages, types.Coverage.from_state(store.state("line-2"))],
        "CoverageWindow": [window for one in coverages for window in one],
        "Delays": [one for each in latenesses for one in (each.points, each.revisions)],
        "Diagnosis": diagnoses,
        "DiscoveryDiff": [discovery.diff(types.Discovery(b'{"sites": [{"siteId": "S9"}]}'))],
        "FeedReport": feeds,
        "Freed": [freed],
        "Lateness": latenesses,
        "Plan": plans,
        "Progress": seen,
        "Query": [table.query for table in reads],
        "ReadReport": [table.report for table in reads],
        "RequestEvent": events,
        "SeriesReport": [sandbox.client().series().report],
        "SkippedRange": [one for feed in feeds for one in feed.skipped],
        "StoreProgress": work,
        "StoreReport": [store.read("line-2", unread="keep").report],
        "StoreShare": shares,
        "SyncReport": reports,
        "Task": [task for one in (*reports, *plans) for task in one.tasks],
    }


def test_every_record_has_its_declared_types(made):
    assert set(made) == RECORDS
    for name, records in made.items():
        assert records, name
        kind = getattr(types, name)
        for record in records:
            assert mismatches(record, kind, name) == []
            assert kind.__module__ == type(record).__module__ == "siteline.types"


def test_every_record_becomes_json_and_is_pickled(made):
    for records in made.values():
        for record in records:
            members = record.to_dict()
            assert json.loads(json.dumps(members)) == members
            fields = {one.name for one in dataclasses.fields(record)}
            assert {name for name in fields if not name.startswith("_")} <= set(members)
            copied = pickle.loads(pickle.dumps(record))
            assert type(copied) is type(record)
            assert copied == record


def test_a_record_cannot_be_changed(made):
    for records in made.values():
        name = dataclasses.fields(records[0])[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(records[0], name, None)


def test_a_member_that_a_record_lacks_is_an_error():
    task = {"feed": "f", "why": "recent", "start": "2026-11-01T00:00:00Z", "pages": None}
    whole = {**task, "end": "2026-11-02T00:00:00Z"}
    assert types.Task._restore(whole).start == datetime.fromisoformat(task["start"])
    for wrong, words in [(task, "end"), ({**whole, "retries": 1}, "retries")]:
        with pytest.raises(TypeError, match=words):
            types.Task._restore(wrong)


def test_times_and_durations_become_json_values(made):
    [report, *_], [coverage, *_] = made["SyncReport"], made["Coverage"]
    assert datetime.fromisoformat(report.to_dict()["now"]) == report.now
    assert report.to_dict()["now"].endswith("Z")
    assert coverage.to_dict()["feed"] == "line-2"
    spans = {name: timedelta(seconds=one) for name, one in coverage.to_dict()["spans"].items()}
    assert spans == coverage.spans


def test_named_tuples_have_a_dict_too(sandbox):
    record = next(sandbox.client().scan(**RANGE).records(named=True))
    ids = types.SeriesIds(*record[:5])
    assert json.loads(json.dumps(record.to_dict()))["timestamp"] == "2026-11-01T00:00:00Z"
    assert list(ids.to_dict()) == list(types.SeriesIds._fields)
    assert types.Attempt("503", 1.0).to_dict() == {"outcome": "503", "wait": 1.0}
    assert {type(one).__module__ for one in (record, ids)} == {"siteline.types"}
    assert pickle.loads(pickle.dumps(record)) == record


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1e-6, "0 s"), (5, "5 s"), (5400, "90 min"), (250_560, "2.9 d")]
)
def test_a_duration_is_text_in_its_largest_unit(seconds, text):
    assert duration(timedelta(seconds=seconds)) == text
