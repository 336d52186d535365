"""Settings: invalid ones are rejected before any request, and no message contains a secret."""

import re
from datetime import time
from zoneinfo import ZoneInfo

import pytest
import siteline

URL = "https://customer.example.com"
INVALID = [
    {"base_url": "http://customer.example.com"},
    {"base_url": "https://u:hunter2@customer.example.com"},
    {"scopes": []},
    {"scopes": ['a"b']},
    {"daily_allowance": "x"},
    {"settle_lag": 1e19},
    {"allowance_resets": "noon"},
    {"allowance_resets": time(6)},
    {"allowance_resets": time(6, tzinfo=ZoneInfo("Europe/Berlin"))},
    {"ledger": ""},
    {"ca_bundle": "absent.pem"},
]
WORDS = {"base_url": "allow_http|user name or password", "scopes": "[Ss]cope"}


@pytest.mark.parametrize("setting", INVALID, ids=str)
def test_an_invalid_setting_is_a_config_error_that_names_it(key, setting):
    (name,) = setting
    with pytest.raises(siteline.errors.ConfigError, match=WORDS.get(name, name)) as caught:
        siteline.Client(**{"base_url": URL, **setting}, credential=siteline.Credential("s", key))
    assert type(caught.value) is siteline.errors.ConfigError
    assert "hunter2" not in str(caught.value)


def test_addresses_on_loopback_with_a_prefix_or_allowed_are_accepted(key):
    credential = siteline.Credential("s", key)
    siteline.Client(
        "http://customer.example.com",
        credential=credential,
        http=siteline.types.Http(allow_http=True),
    )
    for url in ("http://127.0.0.1:8080", f"{URL}/prefix", "https://[::1]", f"{URL}:443/"):
        assert siteline.Client(url, credential=credential).base_url == url.rstrip("/")


@pytest.mark.sandbox(record_wire=True)
def test_the_user_agent_names_siteline_and_the_application(sandbox):
    with pytest.raises(siteline.errors.ConfigError, match="application"):
        siteline.types.Http(application="a\r\nX-Forged: b")
    sandbox.client(http=siteline.types.Http(application="plant-report/2.1")).discover()
    agents = re.findall(r"(?im)^user-agent: (.*?)\r?$", "\n".join(sandbox.wire))
    assert len(agents) == 2
    assert all(f"siteline/{siteline.__version__} plant-report/2.1" in one for one in agents)
