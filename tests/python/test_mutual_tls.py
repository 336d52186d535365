"""Mutual TLS (§1, §5.6): `siteline.MutualTls` with nginx, and with the refusals of OpenSSL."""

import json
import pickle
import socket
import ssl
import sys
import threading
from contextlib import ExitStack

import pytest
import siteline
from kit.certificates import Issuer
from kit.command import run_program
from kit.platform_service import Platform, Terminator
from kit.tls_service import Server

pytestmark = pytest.mark.once

SECRET = b"hunter2 hunter2"
HOUR = {"start": "2026-11-01T00:00Z", "end": "2026-11-01T01:00Z", "interval": "1m"}
VERSIONS = ("TLSv1.2", "TLSv1.3")
REFUSED = siteline.errors.AuthenticationError


@pytest.fixture(scope="module")
def issuer():
    """The authority of accepted client certificates."""
    return Issuer()


@pytest.fixture(scope="module")
def pem(issuer):
    """The registered certificate, with its key."""
    return issuer.issue().both


@pytest.fixture
def start(request, tmp_path, authority, issuer):
    """Starts a platform behind nginx."""
    with ExitStack() as stack:

        def begin(protocols="TLSv1.2 TLSv1.3", *, tokens=False):
            service = stack.enter_context(Platform(tokens=tokens))
            folder = tmp_path / f"nginx-{service.port}"
            front = Terminator(folder, service.port, authority.chain, issuer.pem, protocols)
            service.front = stack.enter_context(front)
            common = {"ca_bundle": authority.pem, "labels": False}
            service.client = lambda credential, **options: siteline.Client(
                service.front.url, credential=credential, **common, **options
            )
            return service

        yield begin


@pytest.mark.parametrize("protocols", VERSIONS)
def test_the_certificate_alone_authorises_discovery_and_data(start, pem, protocols):
    service = start(protocols)
    with service.client(siteline.MutualTls(pem)) as client:
        assert client.discover()["sites"] == ["S1"]
        assert client.scan(**HOUR).collect().to_pandas().value.tolist() == [1.0, 2.0, 3.0]
        assert (client.allowance.used, client.allowance.token_requests) == (3, 0)
        assert client.subject == "CN=plant-7"
    assert service.sent("/token") == 0
    assert {(subject, token) for _, subject, token, _ in service.requests} == {("CN=plant-7", None)}


def test_with_a_client_id_it_authenticates_the_token_request(start, pem):
    service = start(tokens=True)
    with service.client(siteline.MutualTls(pem, client_id="integration-7")) as client:
        assert len(client.scan(**HOUR).collect()) == 3
        assert len(client.discover()) == 1
        assert client.allowance.token_requests == 1
    forms = [form for path, *_, form in service.requests if path.endswith("/token")]
    scope = "customer.discovery.read customer.data.read"
    form = {"grant_type": "client_credentials", "client_id": "integration-7", "scope": scope}
    assert forms == [form]
    assert len({token for _, _, token, _ in service.requests[1:]}) == 1


@pytest.mark.parametrize(("protocols", "tokens"), [("TLSv1.2", True), ("TLSv1.3", False)])
def test_m2_a_certificate_that_is_refused_is_told_and_not_tried_again(
    start, issuer, protocols, tokens
):
    service = start(protocols, tokens=tokens)
    client_id = "integration-7" if tokens else None
    untrusted, unknown = Issuer("another authority").issue(), issuer.issue("plant-8")
    expired = issuer.issue(begins=-9, ends=-2)
    for issued, status, clock in (
        (untrusted, 400, None),
        (expired, 400, siteline.testing.Clock(expired.certificate.not_valid_before_utc)),
        (unknown, 401, None),
    ):
        options = {"clock": clock} if clock else {}
        plant = siteline.MutualTls(issued.both, client_id=client_id)
        with service.client(plant, **options) as client:
            with pytest.raises(REFUSED, match="client certificate") as caught:
                client.scan(**HOUR).collect()
            assert (caught.value.status, len(caught.value.attempts)) == (status, 1)
            assert "refused the client certificate" in str(caught.value)
            assert client.allowance.used == (0 if tokens else 1)
    assert service.front.total() == 3


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


def test_m4_a_bound_token_that_is_refused_is_replaced_once(start, pem):
    service = start(tokens=True)
    with service.client(siteline.MutualTls(pem, client_id="integration-7")) as client:
        client.discover()
        service.tokens.clear()
        client.discover()
        assert (service.sent("/token"), service.sent("/discovery")) == (2, 3)

        class Forgetful(dict):
            def get(self, *_):
                return "another certificate"

        service.tokens = Forgetful()
        with pytest.raises(REFUSED, match="client certificate") as caught:
            client.discover()
        assert (caught.value.status, len(caught.value.attempts)) == (401, 2)
        assert (service.sent("/token"), service.sent("/discovery")) == (3, 5)


def test_m5_requests_under_way_end_undisturbed(start, issuer, tmp_path):
    service = start()
    path = tmp_path / "plant.pem"
    path.write_bytes(issuer.issue().both)
    path.chmod(0o600)
    held, going = threading.Event(), threading.Event()
    usual = service.RequestHandlerClass.do_GET

    def wait(handler):
        if handler.path.endswith("/discovery"):
            going.set()
            held.wait(60)
        usual(handler)

    service.RequestHandlerClass = type("Held", (service.RequestHandlerClass,), {"do_GET": wait})
    with service.client(siteline.MutualTls(path)) as client:
        found = []
        thread = threading.Thread(target=lambda: found.append(client.discover()))
        thread.start()
        assert going.wait(60)
        path.write_bytes(issuer.issue().both)
        assert len(client.scan(**HOUR).collect()) == 3
        held.set()
        thread.join(60)
        assert found == [{"sites": ["S1"]}]


def test_other_types_and_addresses_are_refused(pem):
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
    print(client.subject, dict(client.discover()))
"""


def test_another_process_finds_the_certificate(start, issuer, tmp_path, authority):
    service = start(tokens=True)
    path, ran = tmp_path / "plant.p12", tmp_path / "ran"
    path.write_bytes(issuer.issue().p12(SECRET))
    path.chmod(0o600)
    script = tmp_path / "show.py"
    script.write_text(
        f"import pathlib; pathlib.Path({str(ran)!r}).touch(); print({SECRET.decode()!r})"
    )
    command = [sys.executable, str(script)]
    plant = siteline.MutualTls(path, password_command=command, client_id="integration-7")
    dumped = pickle.dumps(service.client(plant))
    assert SECRET not in dumped
    ran.unlink()
    assert pickle.loads(dumped).subject == "CN=plant-7"
    assert not ran.exists(), "loading a pickle runs nothing"

    profile = tmp_path / "plants.toml"
    profile.write_text(
        f"[plant]\nbase_url = '{service.front.url}'\ncertificate_file = 'plant.p12'\n"
        f"password_command = {json.dumps(command)}\nca_bundle = '{authority.file}'\n"
        "client_id = 'integration-7'\n"
    )
    profile.chmod(0o600)
    variables = {
        **{"SITELINE_BASE_URL": service.front.url, "SITELINE_CERTIFICATE_FILE": str(path)},
        **{"SITELINE_PASSPHRASE": SECRET.decode(), "SITELINE_CLIENT_ID": "integration-7"},
        **{"SITELINE_CONFIG": str(profile), "CA": str(authority.file)},
    }
    ended = run_program(sys.executable, "-c", CHILD, env=variables, input=dumped, text=False)
    found = ended.stdout.decode().splitlines()
    assert found == ["CN=plant-7 {'sites': ['S1']}"] * 3, ended.stderr.decode()


def test_what_was_given_itself_is_not_pickled(issuer, tmp_path):
    issued, path = issuer.issue(), tmp_path / "plant.pem"
    path.write_bytes(issued.pem + issued.key_pem(SECRET))
    path.chmod(0o600)
    for plant in (
        siteline.MutualTls(issued.both),
        siteline.MutualTls(path, passphrase=SECRET),
        siteline.MutualTls(path, key=issued.key_pem(), passphrase=SECRET),
    ):
        with pytest.raises(TypeError, match="given itself"):
            pickle.dumps(plant)
