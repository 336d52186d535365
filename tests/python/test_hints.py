"""Errors say what to write instead."""

import io
import re

import pandas as pd
import pytest
import siteline
from kit.ranges import SIX_HOURS

URL = "https://customer.example.com"
NONE = re.escape("None (is an environment variable unset?)")
CLIENTS = pytest.mark.parametrize("make", [siteline.Client, siteline.AsyncClient])


@pytest.fixture
def credential(key):
    return siteline.Credential("subject", key)


@CLIENTS
def test_a_credential_is_given_by_name(make, credential):
    for wrong in ((URL, credential), (URL, None)):
        with pytest.raises(TypeError, match=re.escape("Client(base_url, credential=siteline.")):
            make(*wrong)
    with pytest.raises(TypeError, match="credential by name"):
        make(URL, credential, credential=credential)
    assert make(base_url=URL, credential=credential).base_url == URL


@CLIENTS
def test_missing_settings_list_the_places_searched(make, credential):
    with pytest.raises(siteline.errors.ConfigError, match="base_url is missing"):
        make(None, credential=credential)
    with pytest.raises(siteline.errors.ConfigError, match="credential is missing") as caught:
        make(URL)
    assert 'credential=siteline.Credential("subject", "key.pem")' in caught.value.hint
    assert "SITELINE_AGENT" in caught.value.hint
    with pytest.raises(TypeError, match="base_url= is text; this is an object of type int"):
        make(7, credential=credential)


def test_none_for_a_text_is_explained(sandbox, client, store, key, tmp_path):
    made = siteline.Store(tmp_path / "made.siteline", share="group")
    for wrong in (
        lambda: siteline.Credential(None, key),
        lambda: siteline.Feed(None, start="2026-11-18"),
        lambda: siteline.Store(None),
        lambda: siteline.PrivateKey.load(None),
        lambda: key.save(None),
        lambda: made.backup(None),
        lambda: sandbox.revoke(None),
        lambda: sandbox.replace_key(None, key.public_jwk),
    ):
        with pytest.raises(TypeError, match=NONE):
            wrong()
    for wrong in (
        lambda: client.scan(start=None, filters={"machineId": None}),
        lambda: siteline.Feed("line-2", start=None),
        lambda: store.read(None),
    ):
        with pytest.raises(siteline.errors.QueryError, match=NONE):
            wrong()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda c, t, s: c.scan(start="-1d", machine_id="M1"), "'machine_id': write machine="),
        (lambda c, t, s: c.scan(start="-1d", to="now"), "'to': write end="),
        (lambda c, t, s: c.scan(start="-1d", pageSize=5), "'pageSize': write page_size="),
        (lambda c, t, s: c.scan(start="-1d", colour=5), "'colour': it takes start, end, interval"),
        (lambda c, t, s: c.scan(start="-1d", limit=5), "scan(...).head(n) returns"),
        (lambda c, t, s: c.scan(start="-1d", tries=5), "http=Http(tries=...)"),
        (lambda c, t, s: c.scan(start="-1d", sites="S1"), "'sites': write site="),
        (lambda c, t, s: c.read("S1"), "read() takes its arguments by name: start="),
        (lambda c, t, s: c.read(start="-1d", freq="1h"), "read() has no argument 'freq'"),
        (lambda c, t, s: c.read(start="-1d", settled_only=True), "final=True"),
        (lambda c, t, s: c.series("speed"), "series() takes no arguments"),
        (lambda c, t, s: t.resample("1d", value="mean"), "write agg="),
        (lambda c, t, s: t.resample("1d"), 'needs agg=, which is "mean" or "sum" or "first"'),
        (lambda c, t, s: t.resample("1d", "mean", partial=False), 'partial= is "null" or "keep"'),
        (lambda c, t, s: t.to_csv(io.BytesIO()), "open it for text"),
        (lambda c, t, s: s.apply("line-2", t, b""), "page= is a siteline.Page"),
        (lambda c, t, s: c.series(line="L2"), "series().find(...)"),
        (lambda c, t, s: c.plan(line="L2"), "plan(client.scan(line=...))"),
        (lambda c, t, s: c.sync(s), "sync() needs store=, after the feeds"),
        (lambda c, t, s: siteline.Client(URL, key="key.pem"), "write credential="),
        (lambda c, t, s: t.completeness(by="1d"), "write every="),
        (lambda c, t, s: t.plot(series="speed"), "table.find(...)"),
        (lambda c, t, s: t.find(name="speed"), "write text="),
        (lambda c, t, s: t.gaps("1h"), "gaps() takes its arguments by name: longer_than="),
        (lambda c, t, s: s.read("line-2", flagged="drop"), "write withdrawn="),
        (lambda c, t, s: s.forget("line-2"), "forget() needs before="),
        (lambda c, t, s: siteline.Feed("line-2", since="2026-11-01"), "write start="),
        (lambda c, t, s: siteline.Feed("line-2"), "Feed() needs start="),
        (lambda c, t, s: siteline.Feed("line-2", start="2026-11-01", tz="UTC"), "T00:00+01:00"),
        (lambda c, t, s: siteline.Feed("line-2", start="-1d", tag="T1"), "store.read(feed, "),
        (lambda c, t, s: siteline.Client(URL, subject="s"), "Credential(..., subject=...)"),
        (lambda c, t, s: siteline.AsyncClient(URL, typ=True), "Credential(..., typ=...)"),
        (lambda c, t, s: siteline.Sandbox(kid="K1"), "Credential(..., kid=...)"),
        (lambda c, t, s: siteline.Sandbox(tries=1), "http=Http(tries=...)"),
        (lambda c, t, s: siteline.Sandbox(spaced=True), "variant=siteline.testing.Variant("),
        (lambda c, t, s: siteline.types.Http(timeout=5), "write response_timeout="),
    ],
)  # fmt: skip
def test_wrong_arguments_name_what_to_write(client, store, wrong, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        wrong(client, client.scan(**SIX_HOURS).collect(), store)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("Client.data", "read(...)"),
        ("Table.wide", "pivot()"),
        ("Table.rebucket", "resample(every, agg)"),
        ("Table.df", "to_pandas()"),
        ("Store.points", "read(...)"),
        ("Store.scan", "read(feed).lazy()"),
        ("SyncReport.todo", "tasks"),
        ("FeedReport.set_aside", "skipped"),
        ("Coverage.to_svg", "plot()"),
        ("Sandbox.truth", "expected()"),
        ("Scan.to_csv", "collect() first, and then to_csv"),
        ("Store.sync", "client.sync(feeds, store)"),
    ],
)
def test_an_old_attribute_names_the_new_one(sandbox, client, store, name, instead):
    owner, _, attribute = name.partition(".")
    feed = siteline.Feed("line-2", site="S1", interval="1h", start="2026-11-18")
    report = client.sync(feed, store)
    scan = client.scan(**SIX_HOURS)
    found = [client, scan, scan.collect(), store, report, report["line-2"],
             store.coverage("line-2"), sandbox]  # fmt: skip
    one = next(one for one in found if type(one).__name__ == owner)
    with pytest.raises(AttributeError, match=re.escape(f"{attribute!r}: write {instead}")):
        getattr(one, attribute)
    with pytest.raises(AttributeError, match=r"has no attribute 'colour'$"):
        _ = one.colour


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ({"start": "7 days ago"}, 'use "-7 days"'),
        ({"start": "yesterday"}, 'or a time before now such as "-7d"'),
        ({"start": 20261101}, 'such as "-7d"'),
        ({"tz": "Europe/Berln"}, "Nearest: 'Europe/Berlin'"),
        ({"tz": "berlin"}, "Nearest: 'Europe/Berlin'"),
        ({"interval": "15T"}, 'Use "15m"'),
        ({"interval": "W-MON"}, 'Use "1w"'),
        ({"interval": "1M"}, "has no fixed length"),
        ({"interval": "soon"}, "a number and a unit"),
        ({"machine": "m1"}, "Nearest: 'M1'"),
        ({"tag": "temp"}, "Nearest: 'temperature'"),
        ({"machine": "L1"}, '"L1" is a line'),
        ({"end": SIX_HOURS["start"]}, "set end to start plus the interval"),
        ({"end": "2026-10-01"}, "Are start and end swapped"),
        ({"start": "2030-11-02", "end": None}, "Without end the range ends at now"),
    ],
)
def test_wrong_values_have_a_hint(client, wrong, hint):
    with pytest.raises(siteline.errors.QueryError) as caught:
        client.read(**{**SIX_HOURS, **wrong})
    assert hint in caught.value.hint


def test_an_id_in_another_case_is_named(client, store):
    with pytest.warns(siteline.SitelineWarning, match=r"""line "l1": .*Did you mean 'L1'\?"""):
        client.read(**SIX_HOURS, line="l1")
    client.sync(siteline.Feed("line-2", site="S1", interval="1h", start="2026-11-18"), store)
    with pytest.raises(siteline.errors.QueryError, match='no machine "m1", only "M1", "M2"'):
        store.read("line-2", machine="m1").to_pandas()
    with pytest.raises(siteline.errors.QueryError, match='has tag "temprature"') as caught:
        store.read("line-2", tag="temprature")
    assert "Nearest: 'temperature'. " in caught.value.hint


def test_only_loaded_points_can_be_changed(sandbox):
    at = "2026-11-01T00:00Z"
    with pytest.raises(siteline.errors.ConfigError, match="S1 / L1 / M1 / D1 / T1 is not loaded"):
        sandbox.revise(at, 1.0)
    frame = pd.DataFrame({"timestamp": [pd.Timestamp(at)], "value": [1.0]})
    sandbox.load(frame.assign(sample_count=1), bucket="1h", tag="T9")
    sandbox.load(frame, bucket="1h", tag="T8")
    for wrong, words in (
        (lambda: sandbox.withdraw(at), "S1 / L1 / M1 / D1 / T1 is not loaded"),
        (lambda: sandbox.withdraw(at, tag=1.5), "^tag= is"),
        (lambda: sandbox.withdraw(at, tag="T8"), "has raw readings"),
        (lambda: sandbox.withdraw("2026-11-01T01:00Z", tag="T9"), "has no point at 2026-11-01T01"),
        (lambda: sandbox.withdraw("2026-11-01T01:30Z", tag="T9"), "only multiples of 3600 s"),
    ):
        with pytest.raises(siteline.errors.ConfigError, match=words):
            wrong()
    sandbox.withdraw(at, tag="T9")
    assert len(sandbox.expected(start=at, end="2026-11-01T01:00Z").find(tag="T9")) == 0


def test_deadlines_and_closed_objects_have_hints(sandbox, client, store):
    sandbox.fault(on="data", status=503, retry_after=50)
    with pytest.raises(siteline.errors.DeadlineExceeded) as caught:
        client.scan(site="S1", start=None, deadline="30s").collect()
    assert "deadline=" in caught.value.hint
    client.close()
    store.close()
    for closed in (client.discover, lambda: store.feeds):
        with pytest.raises(siteline.errors.ClosedError) as caught:
            closed()
        assert "make a new one" in caught.value.hint
