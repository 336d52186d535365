"""Replies in unexpected formats: messages do not show their content, and parsing stays cheap."""

import gzip
import json
import logging
import pickle
import traceback
import warnings

import pytest
import siteline

pytestmark = pytest.mark.sandbox(now=None)

SECRET = "q7Zk-Xv93_bTw2Lm8RdY5cHs"
"""An opaque token. No message may contain eight consecutive characters of it."""
HOUR = {"start": "2026-11-01T00:00Z", "end": "2026-11-01T01:00Z"}


def forms():
    grant = json.dumps({"access_token": SECRET, "token_type": "Bearer", "expires_in": 600})
    yield "array", f"[{grant}]"
    yield "form", f"access_token={SECRET}&token_type=Bearer"
    yield "page", f"<html><title>{SECRET}</title>certificate {SECRET}</html>"
    yield "JSON text", json.dumps(SECRET)
    yield "twice", grant + grant
    yield "member", json.dumps({SECRET: {SECRET: SECRET}})
    yield "gzip", gzip.compress(grant.encode())


def texts_of(error):
    """Yields each text that a program may show for an exception."""
    yield from (str(error), repr(error), repr(vars(error)), repr(error.args))
    yield from traceback.format_exception(error)
    yield from (str(getattr(error, name, "")) for name in ("hint", "detail", "code", "attempts"))
    yield pickle.dumps(error).decode("latin-1")


def shown_by(call, caplog):
    """Returns the error texts, warnings and log records of a call."""
    caplog.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except siteline.SitelineError as error:
            texts = list(texts_of(error))
        else:
            texts = []
    return "\n".join([*texts, *(str(one.message) for one in caught), caplog.text])


@pytest.mark.parametrize(("name", "body"), list(forms()), ids=[name for name, _ in forms()])
@pytest.mark.parametrize("on", ["token", "discovery", "data"])
def test_a_secret_in_an_unexpected_reply_is_not_shown(sandbox, caplog, on, name, body):
    caplog.set_level(logging.DEBUG)
    headers = {"Content-Encoding": "gzip"} if name == "gzip" else {}
    headers |= {"Content-Type": f"text/{SECRET}", "X-Reason": SECRET}
    # Messages show the member names of a page, because users need them for Shape().
    first = 200 if (on, name) != ("data", "member") else 201
    for status in (first, 400, 401, 500):
        sandbox.clear_faults()
        sandbox.fault(on=on, status=status, body=body, headers=headers, times=20)
        with sandbox.client(
            http=siteline.types.Http(tries=1), on_request=lambda note: logging.info(note)
        ) as client:
            for call in (client.discover, client.scan(site="S1", **HOUR).collect):
                text = shown_by(call, caplog)
                pieces = {SECRET[at : at + 8] for at in range(len(SECRET) - 7)}
                assert [piece for piece in pieces if piece in text] == [], (status, text)


@pytest.fixture(scope="module")
def bomb():
    """A gzip body that inflates to 63 MB and contains the most possible values."""
    return gzip.compress(b'{"a":[' + b"[]," * 21_000_000 + b"0]}", 1)


@pytest.mark.parametrize("on", ["token", "discovery", "data"])
def test_a_reply_that_inflates_takes_little_memory(sandbox, on, bomb):
    resource = pytest.importorskip("resource")
    sandbox.fault(on=on, status=200, body=bomb, headers={"Content-Encoding": "gzip"}, times=20)
    with sandbox.client(http=siteline.types.Http(tries=1)) as client:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises((siteline.errors.BodyTooLarge, siteline.errors.ProtocolError)):
            client.scan(site="S1", **HOUR).collect() if on == "data" else client.discover()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    # In kB. The parsed values would take more than 700 MB.
    assert grown < (50_000 if on == "token" else 300_000)


def test_a_discovery_reply_is_a_mapping(sandbox):
    with sandbox.client() as client:
        resources = client.discover()
    assert dict(resources) == json.loads(resources.raw)
    assert dict(pickle.loads(pickle.dumps(resources))) == dict(resources)
    with pytest.raises(ValueError, match="Expecting"):
        siteline.types.Discovery(b"no JSON")
