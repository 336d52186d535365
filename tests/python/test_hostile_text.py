"""External text in siteline's output cannot clear a screen or forge a line."""

import json
import logging
import tomllib
import warnings

import pytest
import siteline
from kit.command import run_here
from siteline._escape import escaped, escaped_json

pd = pytest.importorskip("pandas")

MARK = "forged"
EVIL = f"x\x00\x07\x1b[2J\x7f\x9b1m\r\n{MARK}: fine\t\u202e\u2066\u200b\u2028{MARK}\u2029\ufeff"
EVIL += "\U000e0041<script>alert(1)</script>"
# The name of a feed must not contain control characters. The name of a file may contain them.
MARKS = "x\u202e\u2066\u200b\u2028forged\ufeff<script>"
FILE = "x\x1b[2J\r\nforged\u202e\x9b"

DAY = {"start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z"}


def check(text, *, is_html=False):
    """Asserts that a text contains no unprintable character and no forged line."""
    raw = {one for one in text if not one.isprintable()} - {"\n"}
    assert not raw, (raw, text)
    assert not any(line.startswith(MARK) for line in text.splitlines()), text
    if is_html:
        assert "<script" not in text
    return text


def check_shown(*objects):
    for one in objects:
        check(repr(one))
        check(str(one))
        if hasattr(one, "_repr_html_"):
            check(one._repr_html_(), is_html=True)


def check_error(error):
    for one in (error, *vars(error).values()):
        check(str(one) if isinstance(one, str) else repr(one))
    check(str(error))


def series(name=EVIL):
    times = pd.date_range("2026-11-01T00:00Z", periods=24, freq="h")
    ids = dict.fromkeys(siteline.types.Record._fields[:5], name)
    values = {"value": 1.0, "minimum": 0.0, "maximum": 2.0, "sample_count": 4}
    return pd.DataFrame({**ids, "timestamp": times, **values})


def listed(name=EVIL):
    tag = {"tagGuid": name, "name": name, "unit": name, name: name}
    devices = [{"deviceId": name, "name": name, "tags": [tag]}]
    machines = [{"machineId": name, "name": name, "devices": devices}]
    return {"sites": [{"siteId": name, "lines": [{"lineId": name, "machines": machines}]}], name: 1}


@pytest.fixture(autouse=True)
def records(caplog):
    """Checks each log record and each warning of a test."""
    caplog.set_level(logging.DEBUG, "siteline")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield
    for record in caplog.records:
        check(record.getMessage())
    for warning in warned:
        check(str(warning.message))


@pytest.fixture
def evil(sandbox):
    """A service with hostile ids and names."""
    sandbox.load(series())
    sandbox.fault(on="discovery", status=200, body=json.dumps(listed()))
    return sandbox


def test_the_rule_is_that_of_python():
    assert escaped("µ °C 温度 \\ '") == "µ °C 温度 \\ '"
    assert escaped(1.5) == "1.5"
    assert escaped(EVIL + "\ud800").isprintable()
    assert escaped("\x1b\r\n\x9b\u202e\ud800") == r"\x1b\r\n\x9b\u202e\ud800"
    text = json.dumps({EVIL: [EVIL, "\ud800"]}, ensure_ascii=False, indent=1)
    assert json.loads(check(escaped_json(text))) == json.loads(text)


def test_tables_and_series_of_hostile_names(evil):
    with evil.client() as client:
        scan = client.scan(site=EVIL, line=EVIL, filters={"tagGuid": EVIL}, interval="1h", **DAY)
        table = scan.collect()
        resources, series = client.discover(), client.series()
        means = table.resample("2h", "mean")
        check_shown(client, scan, scan.query, table, next(scan.pages()), client.plan(scan))
        check_shown(means, means.pivot(), table.completeness())
        check_shown(resources, series, series.report, resources.diff({}))
        assert {row["tag_guid"] for row in series.records()} == {EVIL}
        assert {record["tag_guid"] for record in table.records()} == {EVIL}
        assert table.to_pandas()["tag_guid"].unique().tolist() == [EVIL]
        labelled = table.to_pandas(labels="machine")
        assert MARK in labelled["label"].iloc[0]
        for plot in (table.plot(), table.plot(labels=series, title=EVIL)):
            check(plot.description)


def read(sandbox):
    """Sends each kind of request, then raises an error as another program may do."""
    with sandbox.client(http=siteline.types.Http(tries=1)) as client:
        client.discover()
        client.scan(site="S1", interval="1h", **DAY).collect()
    # siteline writes hints itself, so it does not escape their line breaks.
    raise siteline.errors.QueryError(EVIL, hint=EVIL.replace("\n", ""))


MEMBERS = ("error", "error_description", "detail", "title", "message", "type", "instance")


@pytest.mark.parametrize("on", ["token", "discovery", "data"])
def test_replies_with_hostile_members(sandbox, on):
    header = "x\x1b[2J".replace("\x1b", "\x9b") + "\u202e"
    headers = {"x-request-id": header, "retry-after": header, "content-type": f"text/{header}"}
    members = json.dumps(dict.fromkeys(MEMBERS, EVIL))
    for status in (200, 301, 400, 401, 403, 429, 500):
        for body, more in ((members, headers), (json.dumps({EVIL: EVIL}), None), (EVIL, None)):
            sandbox.clear_faults()
            sandbox.fault(on=on, status=status, body=body, headers=more)
            with pytest.raises(siteline.SitelineError) as caught:
                read(sandbox)
            check_error(caught.value)


def test_arguments_that_are_quoted(sandbox, tmp_path):
    wrong = [
        lambda: siteline.Client(EVIL, credential=None),
        lambda: siteline.Client(profile=EVIL),
        lambda: siteline.Store(tmp_path / "no" / FILE),
        lambda: siteline.Store(tmp_path / FILE, read_only=True),
        lambda: siteline.Credential("subject", FILE),
        lambda: sandbox.client().scan(site="S1", interval=EVIL, **DAY),
        lambda: sandbox.client().scan(site="S1", interval="1h", start=EVIL),
        lambda: sandbox.client().scan(site="S1", filters={EVIL: ""}, interval="1h", **DAY),
        lambda: siteline.Feed(EVIL, site="S1", interval="1h", start="2026-11-01"),
        lambda: siteline.Agent(sandbox.client(), listen=EVIL),
        lambda: sandbox.client().scan(site="S1", interval="1h", tz=EVIL, **DAY),
        lambda: sandbox.load(pd.DataFrame({EVIL: [1]})),
    ]
    for one in wrong:
        with pytest.raises((siteline.SitelineError, ValueError, TypeError, OSError)) as caught:
            one()
        if isinstance(caught.value, siteline.SitelineError):
            check_error(caught.value)


def test_feeds_and_stores_of_hostile_names(evil, tmp_path):
    with evil.client() as client, siteline.Store(tmp_path / f"{FILE}.siteline") as store:
        ids = {"site": EVIL, "line": EVIL, "filters": {"tagGuid": EVIL}}
        feed = siteline.Feed(MARKS, **ids, interval="1h", start="2026-11-01T00:00Z")
        plan = client.plan(feed, store)
        report = client.sync(feed, store, until="2026-11-02T00:00Z")
        check_shown(feed, store, plan, *plan.tasks, report, report[MARKS])
        check_shown(store.coverage(MARKS), store.lateness(MARKS), store.read(MARKS))
        check(store.coverage(MARKS).plot().description)
        assert {record["tag_guid"] for record in store.read(MARKS).records()} == {EVIL}
        with pytest.raises(siteline.SitelineError) as caught:
            store.read(MARKS, start="2026-10-01T00:00Z", end="2026-10-02T00:00Z").to_pandas()
        check_error(caught.value)


FEEDS = """
[feeds."x\\u202e\\u2028forged"]
site = "x\\u001b[2J\\r\\nforged\\u009b"
interval = "1h"
start = 2026-11-01T00:00:00Z
"""


@pytest.fixture
def run(sandbox, tmp_path):
    """Runs the command in this process and checks its output."""

    def run(*arguments, is_right=False, **more):
        done = run_here(*arguments, env={**sandbox.env(), **more}, folder=tmp_path)
        assert not is_right or done.returncode != 2, done.stderr
        check(done.stdout)
        check(done.stderr)

    return run


def test_commands_of_hostile_names(evil, run, tmp_path):
    def told(*words):
        run(*words, is_right=True)

    (tmp_path / "feeds.toml").write_text(FEEDS, encoding="utf-8")
    [(name, feed)] = tomllib.loads(FEEDS)["feeds"].items()
    site = feed["site"]
    evil.load(series(site))
    for more in ((), ("--json",)):
        told("series", *more)
        told("series", "--diff", *more)
        evil.fault(on="discovery", status=200, body=json.dumps(listed("y" + EVIL)), times=1)
        told("series", "--diff", *more)
        told("doctor", *more)
        told("allowance", *more)
        store = "s.siteline" if not more else f"{FILE}.siteline"
        for verbose in ((), ("-v",), ("-vv",)):
            told("sync", "feeds.toml", store, "--dry-run", *more, *verbose)
            told("sync", "feeds.toml", store, *more, *verbose)
        for words in (("coverage",), ("store", "check"), ("store", "info")):
            told(*words, store, *more)
        told("changes", store, name, "--since", "0", "-o", f"{FILE}.jsonl", *more)
        pull = ("--site", site, "--interval", "1h", "--start", DAY["start"], "--end", DAY["end"])
        told("read", *pull, "--output", f"{FILE}.csv", *more)
        told("read", "--site", f"{EVIL[2:]}none", *pull[2:], "--output", "none.csv", *more)


def test_commands_with_hostile_arguments(run, tmp_path):
    (tmp_path / FILE).write_text(f'["{MARKS}"]\nx = 1\n', encoding="utf-8")
    for words in (
        *([FILE], ["series", f"--{FILE}"], ["series", "--profile", FILE], ["coverage", FILE]),
        *(["profile", "show", FILE], ["store", "check", FILE], ["sync", FILE, f"{FILE}2"]),
        ["sync", FILE, f"{FILE}2", "--dry-run"],
        ["read", "--site", FILE, "--interval", FILE, "--start", FILE, "--end", FILE],
        ["read", "--site", "S1", "--start", DAY["start"], "--output", f"{FILE}/{FILE}.csv"],
        *(["agent", FILE], ["agent", "--listen", FILE], ["sandbox", "--data", FILE]),
        ["doctor", "--store", FILE],
    ):
        run(*words)
    run("profile", "list", SITELINE_CONFIG=str(tmp_path / FILE))
    run("series", SITELINE_BASE_URL=FILE)
    run("series", SITELINE_PRIVATE_KEY_FILE=FILE, SITELINE_SUBJECT=FILE)
