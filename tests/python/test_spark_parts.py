"""What a read of Spark costs and how it is divided: without an engine."""

import itertools
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import pyarrow as pa
import pytest
import siteline
from kit.tls_service import Authority
from siteline.spark._access import Access
from siteline.spark._options import Options
from siteline.spark._partitions import Density, measure, parts, shared
from siteline.spark._reading import Reading

RANGE = {"start": "2026-11-01T00:00:00Z", "end": "2026-11-15T00:00:00Z"}
SITE = {"site": "S1", **RANGE, "interval": "1h", "page_size": "40"}
KEY = ["site_id", "line_id", "machine_id", "device_id", "tag_guid", "timestamp"]


@pytest.fixture
def client(sandbox, monkeypatch):
    """A client whose key a variable has, so that its settings can travel."""
    for name, value in sandbox.env().items():
        monkeypatch.setenv(name, value)
    return siteline.Client.from_env(daily_allowance=1000)


@pytest.fixture
def agent(client):
    with siteline.Agent(client) as agent:
        yield agent


@pytest.fixture
def reading(client, agent):
    """Options to a read, as the driver prepares it."""
    access = Access.of(client, agent)
    return lambda **options: Reading(Options.parse({**SITE, **options}), access).fixed()


def rows(table):
    text = [name for name in table.schema.names if name.endswith(("_id", "_guid"))]
    for name in text:
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].cast(pa.string()))
    return table.sort_by([(name, "ascending") for name in KEY]).combine_chunks().to_pylist()


def read(one, found, **how):
    batches = [batch for part in found for batch in one.read(part, True, is_bounded=False, **how)]
    return rows(pa.Table.from_batches(batches))


@pytest.mark.parametrize("name", ["private_key", "accessToken", "Passphrase", "agent_secret"])
def test_an_option_that_may_be_a_secret_is_refused_and_its_value_not_shown(name):
    with pytest.raises(siteline.ConfigError, match="options show in plans") as caught:
        Options.parse({**SITE, name: "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"machine": "M1"}, "'machine' is no option"),
        ({"start": ""}, "start is missing"),
        ({"pageSize": "5"}, "page_size is given twice"),
        ({"page_size": "0"}, "page_size='0' is not a whole number above 0"),
        ({"maxPages": "many"}, "maxPages='many'"),
        ({"filters": "M1"}, "filters is not a JSON object"),
    ],
)
def test_a_wrong_option_is_told(options, told):
    with pytest.raises(siteline.ConfigError, match=told):
        Options.parse({**SITE, **options})


def test_names_of_options_may_be_written_in_any_case_and_with_or_without_underscores():
    given = {name.replace("_", "").upper(): value for name, value in SITE.items()}
    more = {"MAXPAGES": "7", "filters": '{"machineId": ["M1", "M2"]}', "settleLag": "1m"}
    found = Options.parse({**given, **more})
    assert found.query == {**SITE, "page_size": 40, "filters": {"machineId": ["M1", "M2"]}}
    assert (found.max_pages, found.times, found.by) == (7, {"settle_lag": "1m"}, None)
    with pytest.raises(siteline.ConfigError, match="settle_lag are for streams"):
        found.refuse_times()


@pytest.mark.parametrize("by", [None, "1", "3", "7", "1d", "2d", "6h"])
def test_partitions_adjoin_lie_between_buckets_and_have_ten_pages(sandbox, client, by, reading):
    one = reading(by=by)
    plan, found, _ = one.planned(client)
    start, end = one.scan(client).query.start, one.scan(client).query.end
    assert (found[0].start, found[-1].end) == (start, end)
    for before, after in itertools.pairwise(found):
        assert before.end == after.start
        assert (after.start - start).total_seconds() % 3600 == 0
    length = [part.pages for part in found]
    assert min(length[:-1] or length) >= 10
    assert len(found) == {None: len(found), "1": 1, "3": 3, "7": 7}.get(by, len(found))
    assert plan.pages == sum(length) == sum(task.pages for task in plan.tasks)
    assert sandbox.stats["data_requests"] == 1


@pytest.mark.parametrize("by", ["1", "7"])
def test_two_weeks_of_a_site_are_one_scan_and_cost_what_the_plan_says(sandbox, client, by, reading):
    one = reading(by=by)
    plan, found, _ = one.planned(client)
    before = sandbox.stats["data_requests"]
    points = read(one, found)
    assert sandbox.stats["data_requests"] - before == plan.pages
    assert points == rows(one.scan(client).to_arrow()) != []


@pytest.mark.parametrize(
    "_",
    [
        pytest.param(
            0, marks=pytest.mark.sandbox(end_inclusive=True, late=False), id="end_inclusive"
        ),
        pytest.param(
            0, marks=pytest.mark.sandbox(order="time", timestamps="epoch_ms"), id="by time"
        ),
        pytest.param(
            0, marks=pytest.mark.sandbox(page_counts="envelopes", array="items"), id="envelopes"
        ),
    ],
)
def test_points_are_unique_over_partitions_in_every_shape_of_the_service(client, _, reading):
    one = reading(page_size="20", by="1d")
    _, found, _ = one.planned(client)
    found = found if len(found) > 1 else parts(one.scan(client), Density(24, 1), "1d")
    assert len(found) > 1
    assert read(one, found) == rows(one.scan(client).to_arrow()) != []


def test_a_point_that_comes_twice_in_a_chain_has_its_later_value(sandbox, client, reading):
    one = reading(by="1")
    _, found, _ = one.planned(client)
    pages = client.data(**one.options.query, keep_raw=True).pages()
    first, second = (json.loads(next(pages).raw) for _ in range(2))
    before = read(one, found)
    for point in first["series"][0]["points"]:
        point["value"] = 1e6
    second["series"] = first["series"] + second["series"]
    sandbox.fault(on="data", nth=2, body=json.dumps(second))
    after = read(one, found)
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert [row["value"] for row in changed] == [1e6] * len(first["series"][0]["points"])


def test_a_batch_has_as_many_points_as_a_page(client, reading):
    one = reading(by="1")
    _, [part], _ = one.planned(client)
    lengths = [len(batch) for batch in one.read(part, True, is_bounded=False)]
    assert set(lengths[:-1]) == {40}


def test_the_density_is_measured_in_the_middle_and_where_something_is(sandbox, client, reading):
    one = reading()
    density, cost = measure(client, one.scan(client), one.options.query)
    assert (round(density.rate), density.full, cost) == (12, 40.0, 1)
    empty = reading(line="none", filters=None)
    density, cost = measure(client, empty.scan(client), empty.options.query)
    assert (density.rate, cost) == (0.0, 3)
    wide = reading(page_size="5")
    density, cost = measure(client, wide.scan(client), wide.options.query)
    assert (density.rate, density.full, cost) == (12.0, 5.0, 4)


@pytest.mark.parametrize(("most", "error"), [(50, siteline.QueryError), (None, None)])
def test_more_pages_than_allowed_are_refused_with_both_numbers_and_no_request(
    sandbox, client, reading, most, error
):
    client = siteline.Client.from_env(daily_allowance=60)
    one = replace(reading(by="7"), density=Density(12, 40))
    plan, found, _ = one.planned(client)
    with pytest.raises(error or siteline.AllowanceExhausted) as caught:
        shared(plan, found, most)
    assert str(plan.pages) in str(caught.value)
    assert str(most or 60) in str(caught.value)
    assert sandbox.stats["data_requests"] == 0


def test_shares_add_up_to_what_may_be_requested_at_most(client, reading):
    plan, found, _ = reading(by="7").planned(client)
    for most, limit in ((None, 999), (200, 200)):
        shares = [part.share for part in shared(plan, found, most)]
        assert sum(shares) <= limit
        assert all(share >= part.pages for share, part in zip(shares, found, strict=True))


def test_a_task_on_another_host_has_its_share_as_an_allowance_and_no_more(
    client, agent, reading, monkeypatch
):
    one = reading(by="7")
    plan, found, _ = one.planned(client)
    [part, *_] = shared(plan, found, None)
    used = agent.state["allowance"]["used"]
    monkeypatch.setattr("siteline.spark._access.this_host", lambda: "another")
    assert read(one, [part])
    with one.access.client(part.share) as own:
        assert own.allowance.limit == part.share
    with pytest.raises(siteline.AllowanceExhausted):
        read(one, [replace(part, share=3)])
    assert agent.state["allowance"]["used"] == used


def test_a_task_on_another_host_uses_an_agent_over_a_network_with_its_secret(
    sandbox, client, tmp_path, monkeypatch
):
    authority = Authority(tmp_path / "agent")
    text = authority.chain.read_text()
    begin = text.index("-----BEGIN PRIVATE")
    (tmp_path / "cert.pem").write_text(text[:begin])
    (tmp_path / "key.pem").write_text(text[begin:])
    monkeypatch.setenv("SITELINE_AGENT_CA", str(authority.file))
    files = {"tls_certificate": tmp_path / "cert.pem", "tls_key": tmp_path / "key.pem"}
    with siteline.Agent(client, listen="https://127.0.0.1:0", **files) as agent:
        access = Access.of(client, agent)
        assert access.is_for_all_hosts
        assert agent.env()["SITELINE_AGENT_SECRET"] not in repr(access)
        for name in [*sandbox.env(), "SITELINE_AGENT_CA"]:
            monkeypatch.delenv(name, raising=False)  # as on another host
        monkeypatch.setattr("siteline.spark._access.this_host", lambda: "another")
        one = Reading(Options.parse(SITE), pickle.loads(pickle.dumps(access))).fixed()
        with one.access.client() as own:
            _, found, _ = one.planned(own)
        assert read(one, found[:1])
        assert agent.state["allowance"]["used"] == sandbox.stats["data_requests"] > 10
    assert sandbox.stats["token_requests"] == 1
    assert "SITELINE_AGENT_SECRET" not in os.environ


def test_a_key_that_was_given_itself_stays_in_the_driver(sandbox, monkeypatch):
    client = sandbox.client()  # the key as bytes
    with siteline.Agent(client) as agent:
        access = Access.of(client, agent)
        assert access.own is None
        assert b"PRIVATE KEY" not in pickle.dumps(access)
        with access.client() as own:
            assert own.data(**{**SITE, "page_size": 40}).query
        monkeypatch.setattr("siteline.spark._access.this_host", lambda: "another")
        with pytest.raises(siteline.ConfigError, match="stays there"):
            access.client()


def test_a_setting_that_cannot_travel_is_refused_and_not_left_out(sandbox):
    client = sandbox.client(settle_lag="7m")  # its clock stays in this process
    with pytest.raises(siteline.ConfigError, match="settle_lag of the client cannot travel"):
        Access.of(client, None)


def test_the_secret_of_an_agent_travels_and_is_not_shown(client, monkeypatch):
    monkeypatch.setenv("SITELINE_AGENT_SECRET", "of-256-bits")
    access = Access.of(client, None)
    assert access.variables["SITELINE_AGENT_SECRET"] == "of-256-bits"
    assert "of-256-bits" not in repr(access)
    monkeypatch.delenv("SITELINE_AGENT_SECRET")
    with access.client():
        pass
    assert "SITELINE_AGENT_SECRET" not in os.environ


def test_siteline_imports_no_engine():
    script = "import siteline.spark, sys; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]
