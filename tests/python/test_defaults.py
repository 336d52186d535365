"""The defaults in help(), and the requests that tries=, deadline= and the timeouts apply to."""

import inspect
import pickle
import re
import socket
import traceback
from itertools import product

import pytest
import siteline
from kit.ranges import SIX_HOURS

URL = "https://customer.example.com"


def documented(method):
    """Returns the parameters that the docstring of a method describes."""
    entries = method.__doc__.partition("Args:")[2].partition("Raises:")[0]
    names = re.findall(r"^ {12}(\w+(?:, \w+)*): ", entries, re.MULTILINE)
    return {name for entry in names for name in entry.split(", ")}


@pytest.mark.parametrize("client", [siteline.Client, siteline.AsyncClient])
def test_every_parameter_of_a_client_is_documented(client, key):
    parameters = inspect.signature(client).parameters
    assert {one.default for one in parameters.values()} == {None}
    assert documented(client.__init__) == {name for name in parameters if name[0] != "_"}
    given = dict.fromkeys(parameters)
    given |= {"base_url": URL, "credential": siteline.Credential("subject", key)}
    assert client(**given).base_url == URL


TIMES = "connect_timeout response_timeout idle_timeout"
# The parameters of a function by their least value.
LEAST = {
    "Http": {1: f"tries {TIMES} max_connections max_body_bytes", 0: "max_retry_after"},
    "client": {1: "daily_allowance", 0: "settle_lag"},
    "sync": {0: "deadline wait"},
    "Feed": {1: "interval page_size", 0: "lateness audit_pages"},
}


def test_a_number_that_cannot_work_is_refused(shared_sandbox, store):
    client = shared_sandbox.client()
    feed = siteline.Feed("line-1", start="2026-11-01")
    functions = {
        "Http": siteline.types.Http,
        "client": shared_sandbox.client,
        "sync": lambda **given: client.sync(feed, store, **given),
        "Feed": lambda **given: siteline.Feed("line-1", start="2026-11-01", **given),
    }
    for function, members in LEAST.items():
        for least, names in members.items():
            for name, wrong in product(names.split(), {least - 1, -1}):
                with pytest.raises(siteline.errors.ConfigError, match=f"^{name}="):
                    functions[function](**{name: wrong})


@pytest.mark.parametrize("tries", [1, 2])
def test_tries_apply_to_the_token_and_the_error_names_the_port(key, tries):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        # A bound socket that does not listen refuses connections.
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        credential = siteline.Credential("subject", key)
        clock = siteline.testing.Clock("2026-11-20")
        client = siteline.Client(f"http://{address}", credential=credential, clock=clock,
                                 http=siteline.types.Http(tries=tries))  # fmt: skip
        with pytest.raises(siteline.errors.TransportError) as caught:
            client.discover()
    assert caught.value.message == f"no connection to {address}: connection refused"
    assert caught.value.hint.startswith("check the host and port in base_url=")
    assert [one.outcome for one in caught.value.attempts] == ["not connected"] * tries


def test_the_hint_of_a_refused_assertion_is_shown_once(sandbox):
    client = sandbox.client()
    sandbox.revoke(client.subject)
    with pytest.raises(siteline.errors.AuthenticationError) as caught:
        client.discover()
    refused = caught.value
    assert refused.code == "invalid_client"
    causes = ("- kid ", "- aud http", f"- sub {client.subject}", "clock is ", "not be approved")
    assert [cause for cause in causes if cause not in refused.hint] == []
    assert str(refused) == f"{refused.message}\n{refused.hint}"
    assert "kid" not in repr(refused)
    assert str(pickle.loads(pickle.dumps(refused))) == str(refused)

    def count(error):
        return "".join(traceback.format_exception(error)).count("- kid ")

    with pytest.raises(RuntimeError) as chained:
        raise RuntimeError("the nightly job failed") from refused
    assert count(chained.value) == 1
    with pytest.raises(siteline.errors.AuthenticationError, match="remembered") as remembered:
        sandbox.client().scan(**SIX_HOURS).collect()
    assert count(remembered.value) == 1
    assert sandbox.stats.token_requests == 1
