"""Tokens, retries and the allowance, compared with what the sandbox counts."""

from datetime import UTC, datetime

import pytest
import siteline
from kit.ranges import DAY, NOW
from kit.threads import run_in_threads


@pytest.mark.fault("T19")
def test_500_threads_that_start_at_once_cost_one_exchange(sandbox):
    client = sandbox.client()
    assert len(run_in_threads(500, client.discover)) == 500
    assert sandbox.stats["token_requests"] == 1


def test_a_second_client_of_the_same_credential_costs_no_exchange(sandbox):
    sandbox.client().discover()
    sandbox.client().discover()
    assert sandbox.stats["token_requests"] == 1


@pytest.mark.fault("T1")
@pytest.mark.parametrize("status", [400, 401])
def test_invalid_client_is_not_repeated_and_the_hint_lists_the_causes(status):
    with siteline.Sandbox(now=NOW, approved=False, invalid_client_status=status) as sandbox:
        client = sandbox.client()
        with pytest.raises(siteline.AuthenticationError) as caught:
            client.discover()
        for word in ("kid", "aud", "clock", "approv"):
            assert word in caught.value.hint
        assert caught.value.code == "invalid_client"
        assert sandbox.stats["token_requests"] == 1


@pytest.mark.fault("T7")
@pytest.mark.parametrize("status", [503, 400, 500])
def test_temporarily_unavailable_is_retried_with_a_fresh_assertion(status):
    with siteline.Sandbox(now=NOW, unavailable_status=status) as sandbox:
        sandbox.fault(on="token", times=2, unavailable=True)
        sandbox.client().discover()
        assert len(set(sandbox.stats["jtis"])) == 3


@pytest.mark.fault("T4")
def test_a_narrower_grant_is_an_error_before_any_data_request(sandbox):
    sandbox.fault(on="token", grant=["customer.discovery.read"])
    with pytest.raises(siteline.ScopeError) as caught:
        sandbox.client().data(**DAY).to_pandas()
    assert caught.value.missing == ("customer.data.read",)
    assert sandbox.stats["data_requests"] == 0


@pytest.mark.fault("D1")
def test_a_refused_token_is_replaced_once(sandbox):
    client = sandbox.client()
    client.discover()
    sandbox.clock.advance("1m")
    sandbox.forget_tokens()
    client.data(**DAY, page_size=10_000).to_pandas()
    assert sandbox.stats["token_requests"] == 2
    assert client.allowance.used == sandbox.stats["data_requests"] == 2


@pytest.mark.fault("D3")
def test_a_missing_scope_on_data_is_a_scope_error(sandbox):
    key = siteline.PrivateKey.generate(2048)
    subject = sandbox.enroll(key.public_jwk, scopes=["customer.discovery.read"])
    client = siteline.Client(
        sandbox.base_url,
        credential=siteline.Credential(subject, key),
        clock=sandbox.clock,
        scopes="customer.discovery.read",
    )
    client.discover()
    with pytest.raises(siteline.ScopeError) as caught:
        client.data(**DAY).to_pandas()
    assert isinstance(caught.value, PermissionError)
    assert sandbox.stats["token_requests"] == 1


@pytest.mark.fault("B1")
def test_a_short_retry_after_is_obeyed(sandbox):
    client = sandbox.client()
    client.discover()
    before = sandbox.clock.now()
    sandbox.fault(on="data", status=429, retry_after=2)
    client.data(**DAY).to_pandas()
    assert 2 <= (sandbox.clock.now() - before).total_seconds() <= 3


@pytest.mark.fault("B2")
def test_a_long_retry_after_is_the_daily_allowance_and_raises_at_once(sandbox):
    client = sandbox.client()
    sandbox.fault(on="data", status=429, retry_after=53_578)
    with pytest.raises(siteline.AllowanceExhausted) as caught:
        client.data(**DAY).to_pandas()
    assert caught.value.retry_at == datetime(2026, 11, 20, 14, 52, 58, tzinfo=UTC)
    with pytest.raises(siteline.AllowanceExhausted):
        client.data(**DAY).to_pandas()
    assert sandbox.stats["data_requests"] == 1


@pytest.mark.fault("B5")
def test_the_request_that_would_exceed_the_allowance_is_not_sent(sandbox):
    client = sandbox.client(daily_allowance=3)
    with pytest.raises(siteline.AllowanceExhausted) as caught:
        client.data(**DAY, page_size=100).to_pandas()
    assert (client.allowance.used, client.allowance.left) == (3, 0)
    assert sandbox.stats["data_requests"] == 3
    assert len(caught.value.partial) == 300
    assert caught.value.retry_at == client.allowance.resets_at
    sandbox.clock.advance("1d")
    rest = client.data(**DAY, page_size=10_000).to_pandas()
    assert len(rest) == len(sandbox.truth(**DAY))


def test_the_count_equals_the_services_count_under_faults(sandbox):
    client = sandbox.client()
    sandbox.fault(on="data", chance=0.05, seed=4, status=503)
    sandbox.fault(on="data", chance=0.05, seed=5, cut=40)
    for page in client.data(**DAY, page_size=40).pages():
        assert len(page) <= 40
    assert client.allowance.used == sandbox.stats["data_requests"] > 43


def test_a_deadline_bounds_a_complete_read(sandbox):
    client = sandbox.client()
    sandbox.fault(on="data", times=3, status=429, retry_after=30)
    with pytest.raises(siteline.DeadlineExceeded) as caught:
        client.data(**DAY, deadline="45s").to_pandas()
    assert isinstance(caught.value, TimeoutError)


@pytest.mark.fault("T26")
def test_a_clock_two_minutes_slow_is_corrected_from_the_service(caplog):
    with siteline.Sandbox(now=NOW) as sandbox:
        slow = siteline.Clock("2026-11-19T23:58:00Z")
        client = sandbox.client(clock=slow)
        with caplog.at_level("WARNING"):
            client.discover()
        assert client.clock_skew == pytest.approx(120, abs=1)
        assert any("120" in record.getMessage() for record in caplog.records)
        scan = client.data(site="S1", start="2026-11-01T00:00Z", interval="1m")
        assert scan.query.end.isoformat() == "2026-11-19T23:55:00+00:00"
