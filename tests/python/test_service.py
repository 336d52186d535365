"""Tokens, refusals and the allowance, compared with the counts of the sandbox."""

from datetime import UTC, datetime

import pytest
import siteline
from kit.ranges import DAY
from kit.threads import run_in_threads


def test_threads_and_clients_of_a_credential_share_one_token(sandbox):
    client = sandbox.client()
    assert len(run_in_threads(50, client.discover)) == 50
    sandbox.client().discover()
    assert sandbox.stats.token_requests == 1


def test_a_long_retry_after_is_the_daily_allowance_and_raises_at_once(sandbox):
    client = sandbox.client()
    sandbox.fault(on="data", status=429, retry_after=53_578)
    for _ in range(2):
        with pytest.raises(siteline.errors.AllowanceExhausted) as caught:
            client.scan(**DAY).to_pandas()
        assert caught.value.retry_at == datetime(2026, 11, 20, 14, 52, 58, tzinfo=UTC)
        assert str(caught.value).count("used up") == 1
    assert sandbox.stats.data_requests == 1


def test_the_request_that_would_exceed_the_allowance_is_not_sent(sandbox):
    client = sandbox.client(daily_allowance=3)
    with pytest.raises(siteline.errors.AllowanceExhausted) as caught:
        client.scan(**DAY, page_size=100).to_pandas()
    assert (client.allowance.used, client.allowance.left) == (3, 0)
    assert sandbox.stats.data_requests == 3
    assert len(caught.value.partial) == 300
    assert caught.value.retry_at == client.allowance.resets_at
    sandbox.clock.advance("1d")
    rest = client.scan(**DAY, page_size=10_000).to_pandas()
    assert len(rest) == len(sandbox.expected(**DAY))
