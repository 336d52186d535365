"""Mutual TLS (§1, §5.6): `siteline.MutualTls` with a sandbox, and with the refusals of OpenSSL."""

import asyncio
import json
import pickle
import socket
import ssl
import sys
import threading
import urllib.parse
from contextlib import ExitStack

import pytest
import siteline
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from kit.certificates import Issuer
from kit.command import run_program
from kit.ranges import NOW
from kit.tls_service import Relay, Server
from test_assertions import token_requests

pytestmark = pytest.mark.once

SECRET = b"hunter2 hunter2"
HOUR = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T01:00Z", "interval": "1h"}
MODES = pytest.mark.parametrize("mode", ["data", "token"])
REFUSED = siteline.errors.AuthenticationError


@pytest.fixture
def platform():
    """Starts a sandbox and makes clients. A relay counts their connections and can delay them."""
    with ExitStack() as stack:

        def begin(mode: str, inspect=lambda data: None, **options):
            sandbox = stack.enter_context(
                siteline.Sandbox(**{"now": NOW, "mutual_tls": mode, **options})
            )
            port = urllib.parse.urlsplit(sandbox.base_url).port
            counter = stack.enter_context(Relay(port, inspect))

            def connect(certificate, *, make=siteline.Client, **options):
                plant = certificate
                if not isinstance(certificate, siteline.Credential | siteline.MutualTls):
                    client_id = "plant-7" if mode == "token" else None
                    plant = siteline.MutualTls(certificate, client_id=client_id)
                options = {"clock": sandbox.clock, "labels": False, **options}
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


@pytest.fixture(scope="module")
def issuer():
    """The authority of accepted client certificates."""
    return Issuer()


def test_with_a_client_id_it_authenticates_the_token_request(platform, put):
    sandbox, _, connect = platform("token", record_wire=True)
    client = connect(put(sandbox.certificate("plant-7")))
    assert len(client.scan(**HOUR).collect()) == len(sandbox.expected(**HOUR))
    client.discover()
    [(_, form)] = token_requests(sandbox)
    scope = ["customer.discovery.read customer.data.read"]
    grant = {"grant_type": ["client_credentials"], "client_id": ["plant-7"], "scope": scope}
    assert form == grant
    assert client.allowance.token_requests == 1


@pytest.mark.parametrize(("tls", "mode"), [("1.2", "token"), ("1.3", "data")])
def test_m2_a_certificate_that_is_refused_is_told_and_not_tried_again(platform, put, tls, mode):
    sandbox, _, connect = platform(mode, tls=tls, record_wire=True)
    past = {"begins": "2026-10-31T00:00Z", "lifetime": "2d"}
    for made, status, options in (
        ({"trusted": False}, 400, {}),
        (past, 400, {"clock": siteline.testing.Clock("2026-11-01T12:00Z")}),
        ({"registered": False}, 401, {}),
    ):
        client = connect(put(sandbox.certificate("plant-7", **made)), **options)
        with pytest.raises(REFUSED, match="refused the client certificate") as caught:
            client.scan(**HOUR).collect()
        assert (caught.value.status, len(caught.value.attempts)) == (status, 1)
        assert client.allowance.used == (0 if mode == "token" else 1)
    assert len(sandbox.wire) == 3


def test_m1_a_page_that_requires_a_certificate_is_told(platform, key):
    _, _, connect = platform("data")
    client = connect(siteline.Credential("plant-7", key))
    with pytest.raises(REFUSED, match=r"requires a client certificate for .*, but there is none"):
        client.discover()


class Strict(Server):
    """A server that requires a certificate in the handshake, and refuses others as OpenSSL does."""

    def __init__(self, authority, issuer, version, protocol) -> None:
        context = authority.offering(protocol)
        context.minimum_version = context.maximum_version = version
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=issuer.pem.decode())

        def serve(request):
            with request.dup() as tcp:
                try:
                    with context.wrap_socket(request, server_side=True) as connection:
                        connection.recv(65536)
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                except ssl.SSLError:
                    # Closing with unread bytes resets the connection, which may overtake the alert.
                    tcp.shutdown(socket.SHUT_WR)
                    while tcp.recv(65536):
                        pass

        super().__init__(serve)


TLS_1_2, TLS_1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("version", "protocol"), [(TLS_1_2, "http/1.1"), (TLS_1_3, "http/1.1"), (TLS_1_3, "h2")]
)
def test_m2_a_refusal_by_an_alert_speaks_of_the_client_certificate(
    authority, issuer, version, key_file, protocol
):
    good, other = issuer.issue(), Issuer("another authority").issue()
    with Strict(authority, issuer, version, protocol) as server:
        url = f"https://127.0.0.1:{server.port}"
        for credential, words in (
            (siteline.Credential("s", key_file), "requires a client certificate"),
            (siteline.MutualTls(other.both), "refused the client certificate"),
        ):
            before = server.connections
            with siteline.Client(url, credential=credential, ca_bundle=authority.pem) as client:
                with pytest.raises(REFUSED, match=words) as caught:
                    client.discover()
                assert len(caught.value.attempts) == 1
                with pytest.raises(REFUSED, match=words):
                    client.scan(**HOUR).collect()
                # The handshake failed, so the service read no request.
                assert client.allowance.used == 0
            # TLS 1.3 may lose the alert. Then the client opens another connection to get it.
            most = 4 if version == TLS_1_3 else 2
            assert before + 2 <= server.connections <= before + most
        if protocol == "h2":
            return  # this server does not speak HTTP/2
        plant = siteline.MutualTls(good.both)
        with siteline.Client(url, credential=plant, ca_bundle=authority.pem) as client:
            assert client.discover() == {}


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


def test_m4_a_bound_token_that_is_refused_is_replaced_once(platform, put):
    sandbox, _, connect = platform("token")
    client = connect(put(sandbox.certificate("plant-7")))
    client.discover()
    sandbox.forget_tokens()
    client.discover()
    assert (sandbox.stats.token_requests, sandbox.stats.discovery_requests) == (2, 3)
    sandbox.fault(on="discovery", times=9, forget_tokens=True)
    with pytest.raises(REFUSED, match="client certificate") as caught:
        client.discover()
    assert (caught.value.status, len(caught.value.attempts)) == (401, 2)
    assert (sandbox.stats.token_requests, sandbox.stats.discovery_requests) == (3, 5)


def test_m5_requests_under_way_end_undisturbed(platform, put):
    going, release = threading.Event(), threading.Event()
    release.set()

    def delay(data):
        if not release.is_set() and not going.is_set():
            going.set()
            release.wait(60)

    sandbox, counter, connect = platform("data", delay)
    client = connect(put(sandbox.certificate("plant-7")))
    found = [client.discover()]
    release.clear()
    thread = threading.Thread(target=lambda: found.append(client.discover()))
    thread.start()
    assert going.wait(60)
    put(sandbox.certificate("plant-7"))
    assert len(client.scan(**HOUR).collect()) == len(sandbox.expected(**HOUR))
    assert (len(found), counter.connections) == (1, 2)
    release.set()
    thread.join(60)
    assert found[0] == found[1]


def test_m5_a_certificate_that_was_refused_is_used_no_more_when_it_is_replaced(platform, put):
    sandbox, _, connect = platform("token")
    client = connect(put(sandbox.certificate("plant-7", registered=False)))
    with pytest.raises(REFUSED, match="client certificate"):
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
            with pytest.raises(REFUSED, match="client certificate") as caught:
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


def test_other_types_and_addresses_are_refused(issuer):
    pem = issuer.issue().both
    with pytest.raises(siteline.errors.ConfigError, match="https://"):
        siteline.Client("http://127.0.0.1:9", credential=siteline.MutualTls(pem))
    with pytest.raises(TypeError, match="certificate= is text, a path"):
        siteline.MutualTls(7)
    with pytest.raises(TypeError, match=r"siteline\.MutualTls; this is"):
        siteline.Client("https://127.0.0.1:9", credential=7)
    with pytest.raises(siteline.errors.ConfigError, match="client_id"):
        siteline.MutualTls(pem, client_id=" ")
    with pytest.raises(siteline.errors.CredentialError, match="both given"):
        siteline.MutualTls(pem, passphrase="a", password_command="b")


CHILD = """
import os, pickle, sys, siteline
for client in (
    pickle.load(sys.stdin.buffer),
    siteline.Client(ca_bundle=os.environ["CA"]),
    siteline.Client(profile="plant"),
):
    print(client.subject, client.discover()["subject"])
"""


def test_another_process_finds_the_certificate(platform, tmp_path):
    sandbox, _, _ = platform("token", now=None)
    pem, url = sandbox.certificate("plant-7"), sandbox.base_url
    key = serialization.load_pem_private_key(pem, None)
    path, ran, authority = (tmp_path / name for name in ("plant.p12", "ran", "ca.pem"))
    certificate = x509.load_pem_x509_certificate(pem)
    how = serialization.BestAvailableEncryption(SECRET)
    path.write_bytes(pkcs12.serialize_key_and_certificates(None, key, certificate, None, how))
    path.chmod(0o600)
    authority.write_bytes(sandbox.ca)
    script = tmp_path / "show.py"
    script.write_text(
        f"import pathlib; pathlib.Path({str(ran)!r}).touch(); print({SECRET.decode()!r})"
    )
    command = [sys.executable, str(script)]
    plant = siteline.MutualTls(path, password_command=command, client_id="plant-7")
    dumped = pickle.dumps(siteline.Client(url, credential=plant, ca_bundle=authority))
    assert SECRET not in dumped
    ran.unlink()
    assert pickle.loads(dumped).subject == plant.subject
    assert not ran.exists(), "loading a pickle runs nothing"

    profile = tmp_path / "plants.toml"
    profile.write_text(
        f"[plant]\nbase_url = '{url}'\ncertificate_file = 'plant.p12'\n"
        f"password_command = {json.dumps(command)}\nca_bundle = '{authority}'\n"
        "client_id = 'plant-7'\n"
    )
    profile.chmod(0o600)
    variables = {
        **{"SITELINE_BASE_URL": url, "SITELINE_CERTIFICATE_FILE": str(path)},
        **{"SITELINE_PASSPHRASE": SECRET.decode(), "SITELINE_CLIENT_ID": "plant-7"},
        **{"SITELINE_CONFIG": str(profile), "CA": str(authority)},
    }
    ended = run_program(sys.executable, "-c", CHILD, env=variables, input=dumped, text=False)
    found = ended.stdout.decode().splitlines()
    assert found == [f"{plant.subject} plant-7"] * 3, ended.stderr.decode()


def test_what_was_given_itself_is_not_pickled(issuer, tmp_path):
    issued, path = issuer.issue(), tmp_path / "plant.pem"
    path.write_bytes(issued.pem + issued.key_pem(SECRET))
    path.chmod(0o600)
    for plant in (
        siteline.MutualTls(issued.both),
        siteline.MutualTls(path, passphrase=SECRET),
        siteline.MutualTls(path, key=issued.key_pem(), passphrase=SECRET),
    ):
        with pytest.raises(TypeError, match="was given as"):
            pickle.dumps(plant)
