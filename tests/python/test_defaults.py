"""The defaults that help() shows, and what tries=, deadline= and the timeouts apply to."""

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


def documents_none(thing, name):
    """Whether the docstring's entry of a parameter explains None."""
    entries = [part for part in thing.__doc__.split("\n- ") if part.startswith(f"``{name}``")]
    return len(entries) == 1 and "``None``" in entries[0]


@pytest.mark.parametrize("client", [siteline.Client, siteline.AsyncClient])
def test_help_shows_the_defaults_of_a_client(client, key):
    parameters = inspect.signature(client).parameters.values()
    assert [one.name for one in parameters if one.default is one.empty] == ["base_url"]
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
    assert {name: given for name, given in defaults.items() if given is not None} == SHOWN
    undocumented = [
        name for name, given in defaults.items()
        if given is None and not documents_none(siteline.Client, name)
    ]  # fmt: skip
    assert undocumented == []
    defaults["credential"] = siteline.Credential("subject", key)
    assert client(URL, **defaults).base_url == URL


def test_the_methods_of_both_clients_have_the_same_signatures():
    for name in ("scan", "sync", "plan"):
        signature, other = (
            inspect.signature(getattr(one, name)) for one in (siteline.AsyncClient, siteline.Client)
        )
        assert signature == other
        assert "**" not in str(signature)
    parameters = inspect.signature(siteline.Client.scan).parameters
    assert parameters["start"].default is inspect.Parameter.empty
    for name in ("interval", "page_size", "lag", "shape", "max_pages", "deadline", "progress"):
        assert parameters[name].default is None
        assert documents_none(siteline.Client.scan, name), name


@pytest.mark.parametrize("tries", [1, 2])
def test_tries_apply_to_the_token_and_the_error_names_the_port(key, tries):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        # A bound socket that does not listen refuses connections.
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        credential = siteline.Credential("subject", key)
        clock = siteline.Clock("2026-11-20")
        client = siteline.Client(f"http://{address}", credential=credential, clock=clock,
                                 tries=tries)  # fmt: skip
        with pytest.raises(siteline.errors.TransportError) as caught:
            client.discover()
    assert caught.value.message == f"no connection to {address}: connection refused"
    assert [one.outcome for one in caught.value.attempts] == ["not connected"] * tries


@pytest.mark.parametrize(("options", "attempts"), [({}, 4), ({"tries": 1}, 1)])
def test_a_token_has_as_many_attempts_as_tries(sandbox, options, attempts):
    sandbox.fault(on="token", status=503, times=9)
    with pytest.raises(siteline.errors.ServiceUnavailable) as caught:
        sandbox.client(**options).discover()
    assert len(caught.value.attempts) == sandbox.stats["token_requests"] == attempts


def test_timeouts_deadlines_and_pauses_apply_to_the_token(sandbox):
    sandbox.fault(on="token", hang=True, times=2)
    with pytest.raises(siteline.errors.TransportTimeout) as caught:
        sandbox.client(tries=1, response_timeout=0.01).discover()
    assert caught.value.phase == "response"
    assert len(caught.value.attempts) == 1
    sandbox.clock.advance("1m")  # the error is remembered for half a minute
    with pytest.raises(siteline.errors.DeadlineExceeded):
        sandbox.client().scan(**SIX_HOURS, deadline=0.01).collect()
    sandbox.clear_faults()
    sandbox.clock.advance("1m")
    sandbox.fault(on="token", status=429, retry_after=50)
    with pytest.raises(siteline.errors.RateLimited) as limited:
        sandbox.client(max_retry_after="10s").discover()
    assert limited.value.retry_at - sandbox.clock.now() == timedelta(seconds=50)


def test_the_hint_of_a_refused_assertion_is_a_list_shown_once(sandbox):
    client = sandbox.client()
    sandbox.revoke(client.subject)
    with pytest.raises(siteline.errors.AuthenticationError) as caught:
        client.discover()
    refused = caught.value
    assert refused.code == "invalid_client"
    causes = refused.hint.splitlines()[1:]
    beginnings = ["- kid ", "- aud ", "- sub ", "- the service's clock ", "- the integration "]
    assert [line.startswith(begin) for line, begin in zip(causes, beginnings, strict=True)]
    assert str(refused) == f"{refused.message}\n{refused.hint}"
    assert "kid" not in repr(refused)
    assert str(pickle.loads(pickle.dumps(refused))) == str(refused)

    def count(error):
        return "".join(traceback.format_exception(error)).count("- kid ")

    with pytest.raises(RuntimeError) as chained:
        raise RuntimeError("the nightly job failed") from refused
    assert count(chained.value) == 1
    client = sandbox.client()
    for call in (
        client.discover,
        client.scan(**SIX_HOURS).collect,
        lambda: client.gather([client.scan(**SIX_HOURS)]),
        lambda: asyncio.run(siteline.AsyncClient._over(client).discover()),
    ):
        with pytest.raises(siteline.errors.AuthenticationError, match="remembered") as remembered:
            call()
        assert count(remembered.value) == 1
    assert sandbox.stats["token_requests"] == 1
