"""The sandbox as users use it: their own data, faults, the truth, the fixtures."""

import json
import math
import urllib.error
import urllib.request
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import siteline
from kit import keys, systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import NOW
from kit.tls_service import unused_port
from siteline.testing import Variant

START, END = "2026-11-01T00:00:00Z", "2026-11-01T06:00:00Z"
ORIGIN = pd.Timestamp(START)


def points(count=6, **columns):
    values = [float(number) for number in range(count)]
    envelope = dict.fromkeys(("value", "minimum", "maximum"), values)
    times = pd.date_range(START, periods=count, freq="1min")
    return pd.DataFrame({"timestamp": times, **envelope, "sample_count": 6, **columns})


def read(sandbox, **query):
    return sandbox.client(labels=False).scan(**{"start": START, "end": END, **query}).to_pandas()


def test_frames_of_every_library_load_equally(sandbox):
    frame = points(
        site_id=["A", "A", "B", "B", None, None],
        line_id=pd.Categorical(["1", "1", "1", "2", "2", "2"]),
        machine_id=7,
    )
    frame["sample_count"] = pd.array([1, 2, 3, 4, 5, None], dtype="Int64")
    frame.loc[3, "value"] = math.nan
    seen = []
    sandbox.load(frame)
    table = sandbox.client().scan(start=START, end=END).collect()
    for given in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), table):
        assert sandbox.load(given) == 6
        seen.append(sandbox.expected().to_pandas())
        pd.testing.assert_frame_equal(seen[0], seen[-1])
    assert set(seen[0]["machine_id"]) == {"7"}
    assert set(seen[0]["device_id"]) == {"D1"}
    assert seen[0]["site_id"].isna().sum() == 2
    assert seen[0]["sample_count"].isna().sum() == 1
    assert seen[0]["value"].isna().sum() == 1


def test_frames_without_points_are_an_empty_service(sandbox):
    schema = pa.Table.from_pandas(points(0), preserve_index=False).schema
    stream = pa.RecordBatchReader.from_batches(schema, [])
    for empty in (points(0), pl.from_pandas(points(0)), stream):
        assert sandbox.load(empty) == 0
    assert len(read(sandbox)) == len(sandbox.expected()) == 0
    assert sandbox.client().discover()["sites"] == []


def test_the_error_for_data_that_cannot_be_loaded_gives_the_reason(sandbox):
    readings = points()[["timestamp", "value"]]
    naive = readings.assign(timestamp=readings["timestamp"].dt.tz_localize(None))
    day = readings["timestamp"].dt.date
    infinite = readings.assign(value=math.inf)
    cases = [
        (naive, "naive"),
        (pl.from_pandas(naive), "zone"),
        (readings.assign(value="much"), "numbers"),
        ([1, 2], "list"),
        (infinite, "JSON"),
        (pd.concat([readings, readings[["value"]]], axis=1), "two columns"),
        (readings.set_index("timestamp"), "reset_index"),
        (readings.assign(timestamp=range(6)), "to_datetime"),
        (readings.assign(timestamp=day), "to_datetime"),
        (pl.from_pandas(readings).with_columns(timestamp=1), "with a zone"),
        (pl.from_pandas(readings).with_columns(pl.col("timestamp").dt.date()), "with a zone"),
    ]
    for frame, words in cases:
        with pytest.raises(siteline.errors.ConfigError, match=words):
            sandbox.load(frame, bucket="1m")
    with pytest.raises(siteline.errors.ConfigError, match="bucket"):
        sandbox.load(readings)
    with pytest.raises(TypeError, match="plant"):
        sandbox.load(points(), plant="P")
    assert len(sandbox.client().discover()["sites"]) == 2, "the plant is unchanged"


def test_late_points_and_corrections_appear_at_their_times(sandbox):
    late = points(2)
    late["available_at"] = [pd.NaT, pd.Timestamp(NOW) + pd.Timedelta("10min")]
    sandbox.load(late)
    sandbox.revise(START, 9.5, at=pd.Timestamp(NOW) + pd.Timedelta("20min"))
    seen = []
    for _ in range(3):
        seen.append(list(read(sandbox)["value"]))
        sandbox.clock.advance("10m")
    assert seen == [[0.0], [0.0, 1.0], [9.5, 1.0]]
    assert list(sandbox.expected(at=NOW).to_pandas()["value"]) == [0.0]
    assert list(sandbox.expected(at="final").to_pandas()["value"]) == [9.5, 1.0]
    sandbox.withdraw(START)
    assert list(read(sandbox)["value"]) == [1.0]
    with pytest.raises(siteline.errors.ConfigError):
        sandbox.revise(START, 1.0, line="no such line")


def test_name_columns_become_the_names_of_discovery(sandbox):
    names = {"site_name": "Bern", "line_name": "Filling", "machine_name": "Press", "unit": "bar"}
    frame = points(4, tag_guid=["T1", "T1", "T2", "T2"], name=["old", "new", None, None], **names)
    for load in (frame, pl.from_pandas(frame)):
        sandbox.load(load)
        [site] = sandbox.client().discover()["sites"]
        [line] = site["lines"]
        [machine] = line["machines"]
        [device] = machine["devices"]
        assert [one["name"] for one in (site, line, machine)] == ["Bern", "Filling", "Press"]
        first, second = {"tagGuid": "T1", "name": "new"}, {"tagGuid": "T2"}
        tags = [{**first, "unit": "bar"}, {**second, "unit": "bar"}]
        assert device == {"deviceId": "D1", "tags": tags}
    # A later load of the same series without names keeps them.
    sandbox.load(frame.drop(columns=["name", *names]))
    assert sandbox.client().discover()["sites"] == [site]
    with pytest.raises(siteline.errors.ConfigError, match='"unit"'):
        sandbox.load(pl.from_pandas(frame.assign(unit=0.5)))


DISCOVERY = "/api/customer/v1/discovery"


def test_faults_apply_to_any_client(sandbox):
    def get():
        try:
            with urllib.request.urlopen(sandbox.base_url + DISCOVERY, timeout=60) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    more = {"headers": {"X-Pot": "1", "Date": None}, "delay": "5s"}
    sandbox.fault(on="discovery", status=418, error="teapot", retry_after=7, **more)
    sandbox.fault(on="discovery", nth=2, members={"error": [1, None]}, drop=["error_description"])
    status, headers, body = get()
    assert (status, headers["Retry-After"], headers["X-Pot"]) == (418, "7", "1")
    assert sandbox.clock.now().second == 5
    assert headers["Date"] is None
    assert json.loads(body) == {"error": "teapot"}
    assert json.loads(get()[2]) == {"error": [1, None]}
    for body in ("text", b"text", bytearray(b"text"), memoryview(b"text")):
        sandbox.fault(on="discovery", body=body)
        assert get()[::2] == (200, b"text")
    sandbox.fault(on="discovery", every=1, status=500)
    sandbox.clear_faults()
    assert get()[0] == 401
    assert sandbox.stats.requests["discovery"] == {200: 4, 401: 2, 418: 1}


WRONG_FAULTS = [
    ({}, "has no effect"),
    ({"on": "nowhere", "status": 500}, 'on= is "token" or "discovery"'),
    ({"status": 70_000}, "status=70000 is out of range"),
    ({"members": {"a": math.nan}}, "members= holds"),
]
WRONG_FAULT_TYPES = [
    ({"status": "500"}, "status"),
    ({"hang": 1}, "hang"),
    ({"drop": "scope"}, "drop"),
    ({"members": ["scope"]}, "members"),
    ({"body": 5}, "body"),
    ({"headers": {"A": 5}}, "headers"),
    ({"statu": 500}, "'statu': write status="),
]
WRONG_SETTINGS = [
    ({"daily_allowance": -1}, "daily_allowance=-1 is out of range"),
]
WRONG_FORMATS = [
    ({"interval": "1.5s"}, "interval= is not a whole number of seconds."),
    ({"order": "up"}, 'order= is "series" or "time"; this is "up".'),
]
WRONG_SETTING_TYPES = [
    ({"approved": 1}, "approved= is True or False"),
    ({"variant": {"array": "data"}}, "variant= is a siteline.testing.Variant; this is an object"),
    ({"tokn_rate": 5}, "'tokn_rate': write token_rate="),
    ({"array": "data"}, "variant=siteline.testing.Variant(array=...)"),
]


def test_invalid_faults_and_settings_are_refused(sandbox):
    def fault(**options):
        sandbox.fault(**{"on": "data", **options})

    def variant(**options):
        siteline.Sandbox(variant=Variant(**options))

    for call, cases, error in (
        (fault, WRONG_FAULTS, siteline.errors.ConfigError),
        (fault, WRONG_FAULT_TYPES, TypeError),
        (siteline.Sandbox, WRONG_SETTINGS, siteline.SitelineError),
        (variant, WRONG_FORMATS, siteline.errors.ConfigError),
        (siteline.Sandbox, WRONG_SETTING_TYPES, TypeError),
    ):
        for wrong, words in cases:
            with pytest.raises(error) as caught:
                call(**wrong)
            notes = getattr(caught.value, "__notes__", ())
            assert words in "\n".join([str(caught.value), *notes]), wrong
    with pytest.raises(TypeError, match="write site="):
        sandbox.revise(START, 1.0, sit="S1")


def test_a_port_is_that_of_the_service_and_a_taken_one_is_named():
    port = unused_port()
    with siteline.Sandbox(now=NOW, port=port) as first:
        first.client().discover()
        taken = rf"port={port} is taken on 127\.0\.0\.1: end what listens there, or leave out port="
        with pytest.raises(siteline.errors.ConfigError, match=taken):
            siteline.Sandbox(port=port)
    # The port can be used again at once.
    with siteline.Sandbox(now=NOW, port=port) as again:
        assert again.base_url == f"http://127.0.0.1:{port}"
        assert again.client().discover()["sites"]
    with siteline.Sandbox(now=NOW, port=None) as other, siteline.Sandbox(now=NOW, port=0) as third:
        assert len({other.base_url, third.base_url}) == 2
    with pytest.raises(siteline.errors.ConfigError, match="port=65536 is out of range"):
        siteline.Sandbox(port=65_536)
    with pytest.raises(TypeError):
        siteline.Sandbox(port="8080")


def test_a_client_works_only_while_its_key_is_approved():
    with siteline.Sandbox(now=NOW, approved=False) as sandbox:
        client = sandbox.client()
        with pytest.raises(siteline.errors.AuthenticationError):
            client.discover()
        assert "approved" in sandbox.stats.refusals[0]
        subject = sandbox.env()["SITELINE_SUBJECT"]
        sandbox.approve(subject)
        sandbox.clock.advance("2m")
        client.discover()
        sandbox.revoke(subject)
        with pytest.raises(siteline.errors.AuthenticationError):
            client.discover()
        jwk = keys.private_key().public_jwk
        assert sandbox.enroll(jwk) != sandbox.enroll(json.dumps(jwk))
        for wrong in (lambda: sandbox.approve("nobody"), lambda: sandbox.enroll("no JSON")):
            with pytest.raises(siteline.errors.ConfigError):
                wrong()


def test_a_closed_sandbox_keeps_its_stats_and_serves_no_more(sandbox):
    client = sandbox.client(http=siteline.types.Http(tries=1))
    client.discover()
    assert sandbox.base_url in repr(sandbox)
    sandbox.close()
    sandbox.close()
    assert "closed" in repr(sandbox)
    assert sandbox.stats.discovery_requests == 1
    assert len(sandbox.expected(start=START, end=END)) > 0
    with pytest.raises(siteline.errors.TransportError):
        client.discover()


@pytest.mark.siteline_sandbox(daily_allowance=1, variant=Variant(order="time"))
def test_the_fixtures_take_keywords_from_a_mark(siteline_sandbox, siteline_client):
    assert siteline_client.base_url == siteline_sandbox.base_url
    assert siteline_sandbox.clock.now().isoformat() == "2026-11-20T00:00:00+00:00"
    scan = siteline_client.scan(site="S1", start=START, end=END, interval="1m", page_size=10)
    with pytest.raises(siteline.errors.AllowanceExhausted):
        scan.collect()
    assert siteline_sandbox.stats.requests["data"] == {200: 1, 429: 1}


def test_subclasses_and_object_columns_of_pandas_are_loaded(sandbox):
    class Subclass(pd.DataFrame):
        pass

    times = [ORIGIN.to_pydatetime(), "2026-11-01T00:01:00Z", ORIGIN + pd.Timedelta("2min")]
    frame = Subclass({"timestamp": pd.Series(times, dtype=object), "value": [1, None, 2.5]})
    frame["site_id"] = pd.Series(["A", 1, None], dtype=object)
    assert sandbox.load(frame, bucket="1m") == 3
    truth = sandbox.expected().to_pandas()
    found = dict(zip(truth["timestamp"], truth["value"], strict=True))
    assert found == {ORIGIN: 1.0, ORIGIN + pd.Timedelta("2min"): 2.5}
    naive = frame.assign(timestamp=pd.Series([START, ORIGIN.tz_localize(None), START]))
    with pytest.raises(siteline.errors.ConfigError, match="a Timestamp, not a time with a zone"):
        sandbox.load(naive, bucket="1m")


@systems.FORK
def test_a_child_forked_during_a_reply_has_the_truth():
    script = f"""
        import itertools, os, signal, threading, siteline
        sandbox = siteline.Sandbox(now="{NOW}")
        client, over = sandbox.client(), threading.Event()
        points = len(sandbox.expected(site="S1", start="{START}", end="{END}"))

        def read():
            long = dict(site="S1", start="2026-10-01T00:00Z", end="{END}", page_size=10_000)
            while not over.is_set():
                list(itertools.islice(client.scan(**long).pages(), 2))

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(4):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                known = sandbox.expected(site="S1", start="{START}", end="{END}")
                sandbox.close()
                os._exit(0 if len(known) == points and sandbox.stats else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), end=" ")
        over.set()
        reader.join()
        print(len(client.discover()))
    """
    printed = run_script(script, *FORK_WITH_THREADS, timeout=300)
    assert printed.split()[:4] == ["0"] * 4


def test_times_may_be_of_numpy():
    now = np.datetime64("2026-11-20T12:00")
    with siteline.Sandbox(now=now) as sandbox:
        sandbox.clock.step(np.timedelta64(-1, "h"))
        assert sandbox.clock.now() == datetime(2026, 11, 20, 11, tzinfo=UTC)
        sandbox.clock.advance(np.timedelta64(1, "h"))
        assert sandbox.clock.now() == siteline.testing.Clock(now).now()
        day = {"site": "S1", "line": "L1", "start": np.datetime64("2026-11-19"), "interval": "1h"}
        points = sandbox.expected(**day, end=now, at=now)
        assert len(points) == len(sandbox.expected(**day, end="2026-11-20T12:00Z"))
