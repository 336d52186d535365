"""Errors say what to write instead."""

import logging
import re

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
    assert "SITELINE_AGENT" in caught.value.hint
    with pytest.raises(TypeError, match="base_url= is text; this is an object of type int"):
        make(7, credential=credential)


def test_none_for_a_text_is_explained(sandbox, client, store, key):
    for wrong in (
        lambda: siteline.Credential(None, key),
        lambda: siteline.Feed(None, start="2026-11-18"),
        lambda: siteline.Store(None),
        lambda: siteline.PrivateKey.load(None),
        lambda: key.save(None),
        lambda: store.backup(None),
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
    ("name", "instead"),
    [
        ("machine_id", "write machine="),
        ("from_", "write start="),
        ("to", "write end="),
        ("siteId", "write site="),
        ("pageSize", "write page_size="),
        ("colour", "it takes start, end, interval, "),
        ("limit", "scan(...).head(n)"),
        ("step", "write interval="),
        ("freq", "write interval="),
        ("tries", "http=Http(tries=...)"),
        ("sites", "write site="),
        ("intervall", "write interval="),
    ],
)
def test_an_unknown_keyword_has_an_alternative(sandbox, name, instead):
    for client in (sandbox.client(), sandbox.async_client()):
        with pytest.raises(TypeError) as caught:
            client.scan(**{**SIX_HOURS, name: "T1"})
        assert f"scan() has no argument '{name}': " in str(caught.value)
        assert instead in str(caught.value)


def test_what_the_hints_say_works(client):
    frame = client.scan(**SIX_HOURS).to_pandas()
    for column in ("machine_id", "device_id", "tag_guid"):
        assert len(frame[frame[column] == frame[column].iloc[0]]) > 0
    assert len(client.scan(**SIX_HOURS, filters={"machineId": ["M1", "M2"]}).collect()) > 0
    lines = [client.read(**SIX_HOURS, line=line) for line in ["L1", "L2"]]
    assert sum(map(len, lines)) == len(frame)


def test_deadlines_and_closed_objects_have_hints(sandbox, client, store):
    sandbox.fault(on="data", status=503, retry_after=50)
    with pytest.raises(siteline.errors.DeadlineExceeded) as caught:
        client.scan(site="S1", start=None, deadline="30s").collect()
    assert "deadline=" in caught.value.hint
    assert "scan.resume(error.bookmark, onto=error.partial)" in str(caught.value)
    client.close()
    store.close()
    for closed in (client.discover, lambda: store.feeds):
        with pytest.raises(siteline.errors.ClosedError) as caught:
            closed()
        assert "make a new one" in caught.value.hint


@pytest.mark.parametrize(
    ("start", "end", "hint"),
    [
        ("2026-11-01T00:00Z", "2026-11-01T00:00Z", "end is start plus the interval"),
        ("2026-11-02T00:00Z", "2026-11-01T00:00Z", "Are start and end swapped"),
        ("2030-11-02T00:00Z", None, "end was left out"),
    ],
)
def test_an_empty_range_has_a_hint(client, start, end, hint):
    with pytest.raises(siteline.errors.QueryError, match=hint):
        client.scan(site="S1", start=start, end=end)


@pytest.mark.parametrize("tries", [2, 4])
def test_the_last_repeat_is_a_warning(sandbox, caplog, tries):
    caplog.set_level(logging.INFO, "siteline.http")
    sandbox.fault(on="data", status=503, times=tries - 1)
    sandbox.client(http=siteline.types.Http(tries=tries)).scan(**SIX_HOURS).collect()
    repeats = [one for one in caplog.records if one.getMessage().startswith("try ")]
    assert [one.levelname for one in repeats] == ["INFO"] * (tries - 2) + ["WARNING"]
    assert f"try {tries - 1} of {tries} ended with 503" in repeats[-1].getMessage()
