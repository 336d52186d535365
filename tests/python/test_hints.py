"""Errors say what to write instead."""

import logging
import re

import pytest
import siteline
from kit.ranges import DAY, SIX_HOURS

URL = "https://customer.example.com"


@pytest.fixture(scope="module")
def credential(key):
    return siteline.Credential("subject", key)


@pytest.mark.parametrize("make", [siteline.Client, siteline.AsyncClient])
def test_a_credential_that_is_given_by_position_or_not_at_all_is_told(make, credential):
    for wrong in ((URL, credential), (URL,), (URL, None)):
        with pytest.raises(TypeError, match=re.escape("Client(base_url, credential=siteline.")):
            make(*wrong)
    with pytest.raises(TypeError, match="credential by name"):
        make(URL, credential, credential=credential)
    assert make(URL, credential=credential).base_url == URL
    assert make(base_url=URL, credential=credential).base_url == URL


def test_none_where_text_is_wanted_is_told_in_our_words(client, credential, key):
    unset = re.escape("this is None (is an environment variable unset?), not text")
    for wrong in (
        lambda: siteline.Client(None, credential=credential),
        lambda: siteline.AsyncClient(None, credential=credential),
        lambda: siteline.Credential(None, key),
        lambda: siteline.Client.from_profile(None),
    ):
        with pytest.raises(TypeError, match=unset) as caught:
            wrong()
        assert caught.value.__notes__[0] in {
            f"while processing '{name}'" for name in ("base_url", "subject", "name")
        }
    with pytest.raises(siteline.QueryError, match=re.escape("None (is an environment variable")):
        client.data(start=None, filters={"machineId": None})
    with pytest.raises(TypeError, match="this is an object of type int, not text"):
        siteline.Client(7, credential=credential)


def test_none_is_told_in_our_words_by_stores_feeds_and_keys(sandbox, store):
    none = re.escape("None (is an environment variable unset?)")
    key = siteline.PrivateKey.generate()
    for wrong in (
        lambda: siteline.Feed(None, since="2026-11-18"),
        lambda: siteline.Store(None),
        lambda: siteline.PrivateKey.load(None),
        lambda: key.save(None),
        lambda: store.backup(None),
        lambda: sandbox.revoke(None),
        lambda: sandbox.approve(None),
        lambda: sandbox.replace_key(None, key.public_jwk),
    ):
        with pytest.raises(TypeError, match=none):
            wrong()
    for wrong in (
        lambda: siteline.Feed("line-2", since=None),
        lambda: store.points(None),
        lambda: store.coverage(None),
    ):
        with pytest.raises(siteline.QueryError, match=none):
            wrong()
    with pytest.raises(TypeError, match="an object of type int, not text"):
        siteline.Credential("subject", key, kid=7)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("tag", 'frame[frame["tag_guid"] == ...]'),
        ("tagGuid", 'frame[frame["tag_guid"] == ...]'),
        ("machine", 'frame[frame["machine_id"] == ...]'),
        ("machine_id", 'filters={"machineId": ["M1", "M2"]}'),
        ("device", 'frame[frame["device_id"] == ...]'),
        ("from_", "write start="),
        ("to", "write end="),
        ("siteId", "write site="),
        ("pageSize", "write page_size="),
        ("colour", "help(siteline.Client.data)"),
    ],
)
def test_a_keyword_that_data_does_not_have_is_told_with_what_to_write(sandbox, name, instead):
    for client in (sandbox.client(), sandbox.async_client()):
        with pytest.raises(TypeError) as caught:
            client.data(**{**SIX_HOURS, name: "T1"})
        assert f"data() has no argument '{name}': " in str(caught.value)
        assert instead in str(caught.value)


def test_what_the_error_of_an_unknown_keyword_says_works(client):
    frame = client.data(**SIX_HOURS).to_pandas()
    for column in ("machine_id", "device_id", "tag_guid"):
        assert len(frame[frame[column] == frame[column].iloc[0]]) > 0
    assert len(client.data(**SIX_HOURS, filters={"machineId": ["M1", "M2"]}).collect()) > 0


@pytest.mark.parametrize("name", ["site", "line"])
@pytest.mark.parametrize("given", [["L1", "L2"], ("L1",), {"L1"}])
def test_a_list_where_one_text_is_wanted_is_told_with_how_to_read_several(client, name, given):
    with pytest.raises(siteline.QueryError, match=f"{name}= is an object of type") as caught:
        client.data(**{**DAY, name: given})
    assert 'client.gather([client.data(line=line, ...) for line in ["L1", "L2"]])' in str(
        caught.value
    )


def test_what_the_error_of_a_list_says_works(client):
    gathered = client.gather([client.data(**SIX_HOURS, line=line) for line in ["L1", "L2"]])
    assert len(gathered.table) == len(client.data(**SIX_HOURS).collect())


def test_a_deadline_that_passed_and_a_closed_object_have_a_hint(sandbox, client, store):
    sandbox.fault(on="data", status=503, retry_after=50)
    with pytest.raises(siteline.DeadlineExceeded) as caught:
        client.data(site="S1", start=None, deadline="30s").collect()
    assert "deadline=" in caught.value.hint
    assert "scan.resume(error.bookmark, onto=error.partial)" in str(caught.value)
    client.close()
    store.close()
    for closed in (client.discover, lambda: store.feeds):
        with pytest.raises(siteline.ClosedError) as caught:
            closed()
        assert "make a new one" in caught.value.hint
        assert "make a new one" in str(caught.value)


def test_an_empty_range_has_a_hint(client):
    at = "2026-11-01T00:00Z"
    with pytest.raises(siteline.QueryError, match="end is start plus the interval"):
        client.data(site="S1", start=at, end=at)
    with pytest.raises(siteline.QueryError, match="Are start and end swapped"):
        client.data(site="S1", start="2026-11-02T00:00Z", end=at)
    with pytest.raises(siteline.QueryError, match="end was left out"):
        client.data(site="S1", start="2030-11-02T00:00Z")


@pytest.mark.parametrize(
    ("tries", "levels"),
    [(2, ["WARNING"]), (3, ["INFO", "WARNING"]), (4, ["INFO", "INFO", "WARNING"])],
)
def test_the_repeat_after_the_last_but_one_attempt_is_a_warning(sandbox, caplog, tries, levels):
    caplog.set_level(logging.INFO, "siteline.http")
    sandbox.fault(on="data", status=503, times=tries - 1)
    sandbox.client(tries=tries).data(**SIX_HOURS).collect()
    repeats = [one for one in caplog.records if one.getMessage().startswith("try ")]
    assert [one.levelname for one in repeats] == levels
    assert f"try {tries - 1} of {tries} ended with 503" in repeats[-1].getMessage()
