"""The main job, end to end: sign, exchange, discover, page, merge, count requests."""

import json

import pandas as pd
import pytest
import siteline
from kit.ranges import NOW

pytestmark = pytest.mark.sandbox(seed=11)

START, END = "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"


def test_a_day_read_in_pages_equals_the_truth(sandbox):
    client = sandbox.client()
    scan = client.data(site="S1", line="L1", start=START, end=END, interval="1m", page_size=500)
    truth = sandbox.truth(site="S1", line="L1", start=START, end=END, interval="1m")
    frame = scan.to_pandas()
    assert len(frame) > 1_000
    pd.testing.assert_frame_equal(frame, truth.to_pandas(), check_exact=True)


@pytest.mark.fault("P11")
def test_series_on_many_pages_are_one_series_each(sandbox):
    client = sandbox.client()
    scan = client.data(site="S1", line="L1", start=START, end=END, interval="1m", page_size=97)
    pages = list(scan.pages())
    assert len(pages) > 20
    report = scan.collect().report
    identities = {row[:5] for row in scan.collect().records(named=True)}
    assert report["series"] == len(identities)
    assert report["points"] == sum(len(page) for page in pages)


def test_pages_records_and_frame_agree(sandbox):
    client = sandbox.client()
    scan = client.data(
        site="S1", start=START, end="2026-11-01T03:00:00Z", interval="5m", page_size=50
    )
    pages = pd.concat([page.to_pandas() for page in scan.pages()], ignore_index=True)
    records = pd.DataFrame(list(scan.records()))
    named = pd.DataFrame(list(scan.records(named=True)))
    order = [*siteline.Record._fields[:6]]
    complete = scan.to_pandas()
    for other in (pages, records, named):
        other = other.sort_values(order, ignore_index=True)
        assert list(other.columns) == list(complete.columns)
        for column in ("timestamp", "value", "minimum", "maximum"):
            expected = complete.sort_values(order, ignore_index=True)[column]
            assert (other[column].reset_index(drop=True) == expected).all(), column


def test_nothing_is_requested_until_a_scan_is_read(sandbox):
    client = sandbox.client()
    scan = client.data(site="S1", start=START, end=END, interval="1h")
    assert client.allowance.used == 0
    scan.to_pandas()
    assert client.allowance.used == 1


def test_a_scan_is_read_once_for_all_its_results(sandbox):
    client = sandbox.client()
    scan = client.data(site="S1", start=START, end=END, interval="1h")
    scan.to_pandas(), scan.to_polars(), scan.to_arrow(), scan.collect()
    assert client.allowance.used == 1


def test_parameters_that_are_not_set_are_not_sent():
    with siteline.Sandbox(now=NOW, record_wire=True) as sandbox:
        client = sandbox.client()
        list(client.data(start=START, end=END).pages())
        line = next(text for text in sandbox.wire if "/api/customer/v1/data" in text)
        path = line.split(" ", 2)[1]
        assert path.startswith(
            "/api/customer/v1/data?from=2026-11-01T00%3A00%3A00Z&to=2026-11-02T00%3A00%3A00Z"
        )
        assert "pageSize" not in path
        assert "siteId" not in path


def test_the_default_end_is_now_less_the_settle_lag_floored_to_the_bucket(sandbox):
    client = sandbox.client()
    scan = client.data(site="S1", start="2026-11-19T00:00:00Z", interval="1h")
    assert scan.query.end.isoformat() == "2026-11-19T23:00:00+00:00"
    sandbox.clock.advance("1d")
    assert scan.query.end.isoformat() == "2026-11-19T23:00:00+00:00"


def test_discovery_is_the_unchanged_body(sandbox):
    resources = sandbox.client().discover()
    assert dict(resources) == json.loads(resources.raw)


def test_frames_have_their_provenance(sandbox):
    client = sandbox.client()
    frame = client.data(site="S1", start=START, end=END, interval="1h").to_pandas()
    origin = frame.attrs["siteline"]
    assert origin["host"] == "127.0.0.1"
    assert origin["pages"] == 1
    assert "S1" in origin["query"]


def test_from_env_runs_unmodified_code_against_the_sandbox(sandbox, monkeypatch):
    for name, value in sandbox.env().items():
        monkeypatch.setenv(name, value)
    client = siteline.Client.from_env(clock=sandbox.clock)
    assert len(client.data(site="S1", start=START, end=END, interval="1h").to_pandas()) > 0


def test_the_user_agent_names_siteline_and_the_application():
    with siteline.Sandbox(now=NOW, record_wire=True) as sandbox:
        sandbox.client(application="plant-report/2.1").discover()
        agents = [
            line
            for text in sandbox.wire
            for line in text.splitlines()
            if line.lower().startswith("user-agent")
        ]
        assert agents
        assert all(f"siteline/{siteline.__version__} plant-report/2.1" in line for line in agents)


def test_a_closed_client_raises_closed_error(sandbox):
    with sandbox.client() as client:
        client.discover()
    with pytest.raises(siteline.ClosedError):
        client.discover()
    client.close()
