"""The certificates and proxies of a connection, tested over real sockets with TLS on loopback."""

import base64
import logging
import os
import shutil
import sys
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.command import run_program
from kit.tls_service import HOST, SELF, Proxy, Server, Socks, unused_port
from siteline.types import Http

pytestmark = pytest.mark.sandbox(now=None)

PASSWORD = "hunter2"
OURS = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUEST_METHOD")
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
WORKS = "['sites', 'subject']"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in (*OURS, *PROXIES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def client_of(service, url=None, **options):
    url = url or f"https://127.0.0.1:{service.port}"
    return siteline.Client(url, credential=service.credential, **options)


def told(client):
    """Sends a request. Returns the names in its reply, or the error."""
    try:
        return str(sorted(client.discover()))
    except siteline.SitelineError as error:
        return f"{type(error).__name__} {error}"


def with_variables(service, url=None, **variables):
    """Does the same with a client that has these environment variables."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, str(value))
        return told(client_of(service, url))


def test_an_unknown_authority_is_a_tls_error_with_a_hint(service):
    with client_of(service) as client, pytest.raises(siteline.errors.TlsError) as caught:
        client.discover()
    assert "unknown authority" in str(caught.value)
    for way in ("ca_bundle=", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        assert way in caught.value.hint
    assert len(caught.value.attempts) <= 1
    assert service.connections == 1
    assert service.sandbox.stats.token_requests == 0


def test_ssl_cert_file_and_ssl_cert_dir_are_used(service, authority):
    assert with_variables(service, SSL_CERT_FILE=authority.file) == WORKS
    folders = os.pathsep.join(["", "absent", str(authority.folder)])
    assert with_variables(service, SSL_CERT_DIR=folders) == WORKS


def test_variables_without_a_certificate_fail_at_the_first_https_request(service, tmp_path):
    printed = with_variables(service, SSL_CERT_FILE=tmp_path / "absent")
    assert printed.startswith("TlsError")
    assert "ca_bundle=" in printed
    assert "SSL_CERT_FILE" in printed
    plain = service.sandbox.base_url
    assert with_variables(service, plain, SSL_CERT_FILE=tmp_path / "absent") == WORKS


STORES = ("/etc/ssl", "/usr/lib/ssl", "/etc/pki", "/usr/share/ssl", "/usr/local/ssl", "/etc/certs")


@pytest.fixture
def storeless(tmp_path):
    """The prefix of a command that hides the machine's certificate stores."""
    hide = "; ".join(f"mount -t tmpfs none {store}" for store in STORES if Path(store).is_dir())
    before = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{hide}; exec "$@"', "sh"]
    if not shutil.which("unshare") or run_program(*before, "true").returncode:
        pytest.skip("the certificate stores cannot be hidden: no mount namespace can be created")
    return before


STORELESS = """
import os, sys, siteline
from pathlib import Path
certifi, authority = Path(sys.argv[1]), Path(sys.argv[2])
def told():
    credential = siteline.Credential(
        os.environ["SUBJECT"], os.environ["KEY"], audience=os.environ["AUDIENCE"]
    )
    client = siteline.Client(os.environ["URL"], credential=credential, ledger="memory")
    try:
        print(sorted(client.discover()))
    except siteline.SitelineError as error:
        print(type(error).__name__, str(error).replace("\\n", " "))
told()
certifi.write_bytes(authority.read_bytes())
told()
# With an explicit SSL_CERT_FILE certifi is not used.
os.environ["SSL_CERT_FILE"] = "absent"
told()
"""


def test_without_a_certificate_store_certifi_is_used(
    service, authority, storeless, tmp_path, key_file
):
    package = tmp_path / "certifi"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('it must not be imported')")
    environment = {
        "PYTHONPATH": str(tmp_path),
        "SUBJECT": service.subject,
        "KEY": str(key_file),
        "AUDIENCE": service.audience,
        "URL": f"https://127.0.0.1:{service.port}",
    }
    files = [str(package / "cacert.pem"), str(authority.file)]
    program = (*storeless, sys.executable, "-c", STORELESS, *files)
    done = run_program(*program, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    without, with_certifi, with_variable = done.stdout.splitlines()
    for words in ("TlsError", "no store of trusted certificates", "ca_bundle=", "SSL_CERT_FILE"):
        assert words in without
    assert with_certifi == WORKS
    assert with_variable.startswith("TlsError")


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
def test_the_proxy_of_the_environment_is_used(service, authority, variable):
    with Proxy(service.port) as proxy:
        address = f"http://user:{PASSWORD}%40@127.0.0.1:{proxy.port}"
        variables = {variable: address, "SSL_CERT_FILE": authority.file}
        assert with_variables(service, f"https://{HOST}", **variables) == WORKS
        assert proxy.heads[0].startswith(f"CONNECT {HOST}:443 ")
        basic = base64.b64encode(f"user:{PASSWORD}@".encode()).decode()
        assert f"Basic {basic}" in proxy.heads[0]


def test_loopback_never_goes_through_a_proxy(service, authority):
    dead = f"http://127.0.0.1:{unused_port()}"
    variables = {"HTTPS_PROXY": dead, "HTTP_PROXY": dead, "ALL_PROXY": dead}
    assert with_variables(service, SSL_CERT_FILE=authority.file, **variables) == WORKS
    assert with_variables(service, service.sandbox.base_url, **variables) == WORKS
    with client_of(service, service.sandbox.base_url, proxy=dead) as client:
        client.discover()


def test_the_argument_takes_precedence_over_the_environment(service, authority, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{unused_port()}")
    with Proxy(service.port) as proxy:
        trusted = authority.pem.decode()
        options = {"ca_bundle": trusted, "proxy": f"http://127.0.0.1:{proxy.port}"}
        with client_of(service, f"https://{HOST}", **options) as client:
            client.discover()
        assert proxy.heads


@systems.XDG
def test_an_agents_client_remembers_a_refused_page_size(service, authority, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    query = {"start": "-2h", "end": "-1h", "interval": "1h", "labels": False}
    service.sandbox.fault(on="data", nth=1, status=400)
    with Proxy(service.port) as proxy:
        way = {"ca_bundle": authority.pem, "proxy": f"http://127.0.0.1:{proxy.port}"}
        url = f"https://{HOST}"
        with client_of(service, url, **way) as owner, siteline.Agent(owner) as agent:
            for requests in (2, 3):
                with siteline.Client(url, agent=agent.address, **way) as client:
                    assert client.read(**query).report.page_size_reason == "refused"
                assert service.sandbox.stats.data_requests == requests


def test_a_socks_proxy_carries_the_requests(service, authority):
    with Socks(service.port, user=("user", f"{PASSWORD}@")) as proxy:
        address = f"socks5h://user:{PASSWORD}%40@127.0.0.1:{proxy.port}"
        variables = {"ALL_PROXY": address, "SSL_CERT_FILE": authority.file}
        assert with_variables(service, f"https://{HOST}", **variables) == WORKS
        # The proxy resolves the name.
        assert set(proxy.targets) == {(HOST, 443)}


def test_socks5_resolves_the_name_here(service):
    port = service.sandbox_port
    with Socks(port) as proxy:
        options = {"http": Http(allow_http=True), "proxy": f"socks5://127.0.0.1:{proxy.port}"}
        with client_of(service, f"http://{SELF}:{port}", **options) as client:
            assert told(client) == WORKS
        assert set(proxy.targets) == {(SELF, port)}


@pytest.mark.parametrize(
    "why",
    ["cannot be reached", "another user or password", "rules forbid", "does not speak SOCKS 5"],
)
def test_a_failing_socks_proxy_is_a_proxy_error(service, authority, caplog, why):
    caplog.set_level(logging.DEBUG)
    with (
        Socks(service.port, user=("user", "other")) as secured,
        Socks(service.port, reply=2) as forbidding,
        Server(lambda request: request.sendall(b"HTTP/1.1 400 No\r\n\r\n")) as http,
    ):
        proxies = {"another": secured.port, "rules": forbidding.port, "does": http.port}
        port = proxies.get(why.split()[0]) or unused_port()
        user = "" if why.startswith("rules") else f"user:{PASSWORD}@"
        options = {"ca_bundle": authority.file, "proxy": f"socks5h://{user}127.0.0.1:{port}"}
        with client_of(service, f"https://{HOST}", **options) as client:
            with pytest.raises(siteline.errors.ProxyError, match=why) as caught:
                client.scan(site="S1", start="2026-11-01T00:00Z").collect()
            assert client.allowance.used == 0
        assert f"socks5h://127.0.0.1:{port} did not connect to {HOST}" in str(caught.value)
        assert PASSWORD not in "\n".join([repr(vars(caught.value)), repr(client), *caplog.messages])
        assert not secured.targets
