"""Client certificates while a client exists: renewal, wrong clocks, refusals, asyncio."""

import asyncio
import urllib.parse
from contextlib import ExitStack

import pytest
import siteline
from kit.ranges import NOW
from kit.tls_service import Relay

pytestmark = pytest.mark.once

HOUR = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T01:00Z", "interval": "1h"}
MODES = pytest.mark.parametrize("mode", ["data", "token"])


@pytest.fixture
def platform(tmp_path):
    """Starts a sandbox and makes clients. A relay counts their connections."""
    with ExitStack() as stack:

        def begin(mode: str, **options):
            sandbox = stack.enter_context(siteline.Sandbox(now=NOW, mutual_tls=mode, **options))
            port = urllib.parse.urlsplit(sandbox.base_url).port
            counter = stack.enter_context(Relay(port, lambda data: None))

            def connect(certificate, *, make=siteline.Client, **options):
                plant = certificate
                if not isinstance(certificate, siteline.MutualTls):
                    client_id = "plant-7" if mode == "token" else None
                    plant = siteline.MutualTls(certificate, client_id=client_id)
                options = {"clock": sandbox.clock, **options}
                url = f"https://127.0.0.1:{counter.port}"
                client = make(url, credential=plant, ca_bundle=sandbox.ca, **options)
                return client if make is not siteline.Client else stack.enter_context(client)

            return sandbox, counter, connect

        yield begin


@pytest.fixture
def put(tmp_path):
    """Replaces the certificate file, as programs for renewal do."""
    path = tmp_path / "plant.pem"

    def replace(content: bytes, mode: int = 0o600):
        new = path.with_suffix(".new")
        new.write_bytes(content)
        new.chmod(mode)
        new.replace(path)
        return path

    return replace


@MODES
def test_m3_a_wrong_clock_of_this_machine_decides_nothing_once_the_service_s_is_known(
    platform, put, mode
):
    sandbox, counter, connect = platform(mode)
    # This machine's clock is 20 hours ahead of the service's.
    clock = siteline.testing.Clock("2026-11-20T20:00Z")
    assert NOW.startswith("2026-11-20T00:00")
    client = connect(put(sandbox.certificate("plant-7")), clock=clock)
    client.discover()
    # It has expired only by the machine's clock.
    put(sandbox.certificate("plant-7", lifetime="10h"))
    assert client.discover()["subject"] == "plant-7"
    # It is valid only by the machine's clock.
    put(sandbox.certificate("plant-7", begins="2026-11-20T10:00Z"))
    before = counter.connections
    for ask in (client.discover, client.scan(**HOUR).collect):
        with pytest.raises(siteline.errors.CredentialError, match="is not valid before"):
            ask()
    assert counter.connections == before
    assert client.allowance.used == 0


def test_m5_a_certificate_that_was_refused_is_used_no_more_when_it_is_replaced(platform, put):
    sandbox, _, connect = platform("token")
    client = connect(put(sandbox.certificate("plant-7", registered=False)))
    with pytest.raises(siteline.errors.AuthenticationError, match="client certificate"):
        client.discover()
    put(sandbox.certificate("plant-7"))
    # The client forgets the refusal of the other certificate.
    assert client.discover()["subject"] == "plant-7"


@MODES
def test_an_async_client_presents_the_certificate(platform, put, mode):
    sandbox, counter, connect = platform(mode)

    async def use():
        path = put(sandbox.certificate("plant-7", lifetime="1h"))
        async with connect(path, make=siteline.AsyncClient) as client:
            assert (await client.discover())["subject"] == "plant-7"
            table = await client.scan(**HOUR).collect()
            assert len(table) == len(sandbox.expected(**HOUR))
            put(sandbox.certificate("plant-7"))
            assert (await client.discover())["subject"] == "plant-7"
            assert counter.connections >= 2
            # By now the service refuses the first certificate on every connection.
            sandbox.clock.advance("2h")
            assert (await client.discover())["subject"] == "plant-7"
            sandbox.unregister("plant-7")
            refused = siteline.errors.AuthenticationError
            with pytest.raises(refused, match="client certificate") as caught:
                await client.discover()
            assert len(caught.value.attempts) == (2 if mode == "token" else 1)

    asyncio.run(use())


def test_a_relative_path_is_that_of_the_folder_in_which_it_was_written(
    platform, put, tmp_path, monkeypatch
):
    sandbox, _, connect = platform("data")
    put(sandbox.certificate("plant-7"))
    monkeypatch.chdir(tmp_path)
    client = connect("plant.pem")
    monkeypatch.chdir("/")
    client.discover()
    put(sandbox.certificate("plant-7"))
    assert client.discover()["subject"] == "plant-7"
