"""Settings: invalid ones are refused before any request, without a secret in the message."""

from datetime import time
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
import siteline

KEY = Path(__file__).parent.parent / "keys" / "pkcs8.pem"


@pytest.fixture(scope="module")
def credential():
    return siteline.Credential("subject", KEY.read_text())


@pytest.mark.fault("K9")
def test_plain_http_beyond_loopback_must_be_allowed(credential):
    with pytest.raises(siteline.ConfigError, match="allow_http"):
        siteline.Client("http://customer.example.com", credential=credential)
    siteline.Client("http://customer.example.com", credential=credential, allow_http=True)
    siteline.Client("http://127.0.0.1:8080", credential=credential)


@pytest.mark.fault("K10")
def test_an_address_with_userinfo_query_or_fragment_is_refused(credential):
    for wrong in ("https://u:secret@h.example", "https://h.example?a=1", "https://h.example#f"):
        with pytest.raises(siteline.ConfigError) as caught:
            siteline.Client(wrong, credential=credential)
        assert "secret" not in str(caught.value)
    for right in (
        "https://h.example/",
        "https://h.example/prefix",
        "https://[::1]",
        "https://h.example:443",
    ):
        client = siteline.Client(right, credential=credential)
        assert client.base_url == right.rstrip("/")


@pytest.mark.fault("K11")
def test_scopes_are_checked_and_merged(credential):
    for wrong in ([], "", ['a"b'], ["a\nb"]):
        with pytest.raises(siteline.ConfigError):
            siteline.Client("https://h.example", credential=credential, scopes=wrong)
    with siteline.Sandbox(record_wire=True) as sandbox:
        sandbox.client(
            scopes=["customer.data.read", "customer.discovery.read", "customer.data.read"]
        ).discover()
        assert any(
            "scope=customer.data.read+customer.discovery.read" in text
            or "scope=customer.data.read%20customer.discovery.read" in text
            for text in sandbox.wire
        )


@pytest.mark.parametrize(
    "setting",
    [
        {"daily_allowance": -1},
        {"daily_allowance": "x"},
        {"tries": 0},
        {"tries": -1},
        {"max_connections": 0},
        {"max_body_bytes": 0},
        {"max_body_bytes": -1},
        {"connect_timeout": -1},
        {"connect_timeout": "soon"},
        {"settle_lag": 1e19},
        {"response_timeout": pd.NaT},
        {"allowance_resets": "06:00"},
        {"allowance_resets": "noon"},
        {"allowance_resets": time(6)},
        {"allowance_resets": time(6, tzinfo=ZoneInfo("Europe/Berlin"))},
        {"ledger": ""},
    ],
    ids=str,
)
def test_an_invalid_setting_is_a_config_error_that_names_it(credential, setting):
    (name,) = setting
    with pytest.raises(siteline.ConfigError, match=name) as caught:
        siteline.Client("https://customer.example.com", credential=credential, **setting)
    assert type(caught.value) is siteline.ConfigError
