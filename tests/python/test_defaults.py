"""What help() shows, and what tries=, deadline= and the timeouts hold for."""

import asyncio
import inspect
import pickle
import socket
import traceback
from datetime import timedelta

import pytest
import siteline
from kit.ranges import SIX_HOURS

URL = "https://customer.example.com"
SHOWN = {
    "scopes": ("customer.discovery.read", "customer.data.read"),
    "settle_lag": "5m",
    "assertion_lifetime": "2m",
    "clock_tolerance": "0s",
    "typ": False,
    "max_retry_after": "1m",
    "tries": 4,
    "connect_timeout": "5s",
    "response_timeout": "30s",
    "idle_timeout": "15s",
    "max_connections": 64,
    "max_body_bytes": 64 * 1024 * 1024,
    "allow_http": False,
}
DECIDED_ELSEWHERE = {
    "agent",
    "credential",
    "audience",
    "daily_allowance",
    "allowance_resets",
    "ledger",
    "application",
    "ca_bundle",
    "proxy",
    "clock",
    "on_request",
}


@pytest.mark.parametrize("client", [siteline.Client, siteline.AsyncClient])
def test_k21_help_shows_the_defaults_of_a_client_and_the_docstring_says_what_none_is(client, key):
    parameters = inspect.signature(client).parameters.values()
    needed = [one.name for one in parameters if one.default is one.empty]
    assert needed == ["base_url"]
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
    assert {name: given for name, given in defaults.items() if given is not None} == SHOWN
    assert {name for name, given in defaults.items() if given is None} == DECIDED_ELSEWHERE
    for name in DECIDED_ELSEWHERE:
        [line] = [
            part for part in siteline.Client.__doc__.split("\n- ") if part.startswith(f"``{name}``")
        ]
        assert "``None``" in line, name
    defaults["credential"] = siteline.Credential("subject", key)
    assert client(URL, **defaults).base_url == URL


@pytest.mark.parametrize("name", ["data", "sync", "plan"])
def test_k21_the_methods_of_both_clients_show_the_same_arguments(name):
    shown, known = (getattr(one, name) for one in (siteline.AsyncClient, siteline.Client))
    assert inspect.signature(shown) == inspect.signature(known)
    assert "**" not in str(inspect.signature(shown))


def test_k21_data_shows_that_start_must_be_written_and_says_what_none_is():
    signature = inspect.signature(siteline.Client.data)
    assert signature.parameters["start"].default is inspect.Parameter.empty
    text = siteline.Client.data.__doc__
    for name in ("interval", "page_size", "lag", "shape", "max_pages", "deadline", "progress"):
        assert signature.parameters[name].default is None
        [line] = [part for part in text.split("\n- ") if part.startswith(f"``{name}``")]
        assert "``None``" in line, name


def closed_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


@pytest.fixture
def unreachable(key):
    address = f"http://127.0.0.1:{closed_port()}"

    def make(**options):
        credential, clock = siteline.Credential("subject", key), siteline.Clock("2026-11-20")
        return siteline.Client(address, credential=credential, clock=clock, **options)

    return make


@pytest.mark.parametrize("tries", [1, 2])
def test_k20_tries_holds_for_the_token_and_the_text_names_the_port(unreachable, tries):
    client = unreachable(tries=tries)
    with pytest.raises(siteline.TransportError) as caught:
        client.discover()
    address = client.base_url.removeprefix("http://")
    assert caught.value.message == f"no connection to {address}: connection refused"
    assert [one.outcome for one in caught.value.attempts] == ["not connected"] * tries


def test_k20_without_tries_a_token_has_four_attempts(sandbox):
    sandbox.fault(on="token", status=503, times=9)
    with pytest.raises(siteline.ServiceUnavailable) as caught:
        sandbox.client().discover()
    assert len(caught.value.attempts) == 4


def test_k20_tries_holds_for_a_token_that_the_service_fails_to_give(sandbox):
    sandbox.fault(on="token", status=503)
    with pytest.raises(siteline.ServiceUnavailable) as caught:
        sandbox.client(tries=1).discover()
    assert len(caught.value.attempts) == 1
    assert sandbox.stats["token_requests"] == 1


def test_k20_a_timeout_and_a_deadline_hold_for_the_token(sandbox):
    sandbox.fault(on="token", hang=True, times=2)
    with pytest.raises(siteline.TransportTimeout) as caught:
        sandbox.client(tries=1, response_timeout=0.01).discover()
    assert caught.value.phase == "response"
    assert len(caught.value.attempts) == 1
    sandbox.clock.advance("1m")  # the error is remembered for half a minute
    with pytest.raises(siteline.DeadlineExceeded):
        sandbox.client().data(**SIX_HOURS, deadline=0.01).collect()


def test_k20_a_longer_pause_than_max_retry_after_is_raised_for_the_token_too(sandbox):
    sandbox.fault(on="token", status=429, retry_after=50)
    with pytest.raises(siteline.RateLimited) as caught:
        sandbox.client(max_retry_after="10s").discover()
    assert caught.value.retry_at - sandbox.clock.now() == timedelta(seconds=50)


@pytest.fixture
def refused(sandbox):
    client = sandbox.client()
    sandbox.revoke(client.subject)
    with pytest.raises(siteline.AuthenticationError) as caught:
        client.discover()
    return caught.value


def test_the_hint_of_a_refused_assertion_is_a_list_of_lines(refused):
    first, *causes = refused.hint.splitlines()
    assert first == "The service does not say which check failed. Compare:"
    beginnings = ["- kid ", "- aud ", "- sub ", "- the service's clock ", "- the integration "]
    assert [line.startswith(begin) for line, begin in zip(causes, beginnings, strict=True)]
    assert max(map(len, causes)) < 120
    assert str(refused) == f"{refused.message}\n{refused.hint}"
    assert "kid" not in repr(refused), "the message alone"
    assert str(pickle.loads(pickle.dumps(refused))) == str(refused)


def test_the_hint_stands_once_in_a_traceback_also_of_chained_and_remembered_errors(
    sandbox, refused
):
    def shown(error):
        return "".join(traceback.format_exception(error)).count("Compare:")

    assert shown(refused) == 1
    with pytest.raises(RuntimeError) as chained:
        raise RuntimeError("the nightly job failed") from refused
    assert shown(chained.value) == 1
    client = sandbox.client()
    for call in (
        client.discover,
        client.data(**SIX_HOURS).collect,
        lambda: client.gather([client.data(**SIX_HOURS)]),
        lambda: asyncio.run(siteline.AsyncClient._over(client).discover()),
    ):
        with pytest.raises(siteline.AuthenticationError, match="remembered") as caught:
            call()
        assert shown(caught.value) == 1
