"""`Client.read`, calls of the core, and subclasses of a client."""

import asyncio
import copy
import gc
import pickle

import pytest
import siteline
from kit.ranges import SIX_HOURS
from siteline.types import Http


def test_a_read_is_a_collected_scan(sandbox):
    client = sandbox.client()
    table = client.read(**SIX_HOURS)
    assert table.to_pandas().equals(client.scan(**SIX_HOURS).collect().to_pandas())

    async def main():
        async with sandbox.async_client() as waiting:
            return await waiting.read(**SIX_HOURS)

    assert asyncio.run(main()).to_pandas().equals(table.to_pandas())


def test_a_call_sends_nothing_before_it_is_used(sandbox):
    handle = sandbox.client()._handle

    async def main():
        handle.discover()
        gc.collect()
        await asyncio.sleep(0.05)

    asyncio.run(main())
    assert sandbox.stats.token_requests == 0


def test_a_call_is_used_once(sandbox):
    handle = sandbox.client()._handle
    call = handle.discover()
    assert call.wait() == handle.discover().wait()
    with pytest.raises(RuntimeError, match="already used"):
        call.wait()

    async def main():
        again = handle.discover()
        found = await again
        with pytest.raises(RuntimeError, match="already used"):
            await again
        return found

    assert asyncio.run(main()) == handle.discover().wait()
    assert sandbox.stats.discovery_requests == 4


class Plant(siteline.Client):
    """A subclass with other parameters."""

    def __init__(self, subject, key_file, url):
        super().__init__(url, credential=siteline.Credential(subject, key_file), ledger="memory")


def test_a_subclass_of_a_client_works(sandbox, key, tmp_path):
    key.save(tmp_path / "key.pem")
    plant = Plant(sandbox.enroll(key.public_jwk), tmp_path / "key.pem", sandbox.base_url)
    again = pickle.loads(pickle.dumps(plant))
    for client in (plant, again, copy.deepcopy(plant)):
        assert type(client) is Plant
        assert repr(client).startswith(f"<Plant {sandbox.base_url} subject=")
        assert "Plant" in client._repr_html_()
    assert again.base_url == plant.base_url
    with pytest.raises(AttributeError, match="read-only"):
        plant.tz = "UTC"


def test_a_default_of_http_leaves_the_value_of_a_profile(sandbox, key, tmp_path, monkeypatch):
    key.save(tmp_path / "key.pem")
    (tmp_path / "config.toml").write_text(
        f'[default]\nbase_url = "{sandbox.base_url}"\nprivate_key_file = "key.pem"\ntries = 2\n'
        f'subject = "{sandbox.enroll(key.public_jwk)}"\nledger = "memory"\n'
    )
    monkeypatch.setenv("SITELINE_CONFIG", str(tmp_path / "config.toml"))
    for http, attempts in ((Http(response_timeout="9s"), 2), (Http(tries=3), 3)):
        sandbox.clear_faults()
        sandbox.fault(on="token", status=503, times=9)
        sandbox.clock.advance("5m")
        client = siteline.Client(http=http, clock=sandbox.clock)
        with pytest.raises(siteline.errors.ServiceUnavailable) as caught:
            client.discover()
        assert len(caught.value.attempts) == attempts
