"""The sandbox with TLS, tested with Python's `ssl` and `http.client`."""

import http.client
import json
import ssl
import stat
import urllib.parse
from contextlib import ExitStack
from pathlib import Path

import pytest
import siteline
from kit import keys, systems
from kit.interpreter import run_script
from kit.ranges import HOURLY, NOW
from siteline.testing import Variant

DISCOVERY = "/api/customer/v1/discovery"
DATA = "/api/customer/v1/data?" + urllib.parse.urlencode(
    {
        "siteId": "S1",
        "from": "2026-11-01T00:00:00Z",
        "to": "2026-11-01T01:00:00Z",
        "aggregationIntervalSeconds": 3600,
    }
)
TOKEN = "/api/customer/oauth/token"
BOTH = "customer.discovery.read customer.data.read"
HOUR = {**HOURLY, "end": "2026-11-01T01:00Z"}


class Browser:
    """A client without siteline."""

    def __init__(self, sandbox, tmp_path, pem: bytes | None = None) -> None:
        self.context = ssl.create_default_context(cadata=sandbox.ca.decode())
        # Python 3.13 checks extensions that test certificates need not have.
        self.context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
        if pem is not None:
            path = tmp_path / f"browser-{id(self)}.pem"
            path.write_bytes(pem)
            self.context.load_cert_chain(path)
        url = urllib.parse.urlsplit(sandbox.base_url)
        self.connection = http.client.HTTPSConnection(
            url.hostname, url.port, context=self.context, timeout=60
        )

    def ask(self, path: str, token: str | None = None, form: dict | None = None):
        headers = {"Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        body = None if form is None else urllib.parse.urlencode(form)
        self.connection.request("GET" if form is None else "POST", path, body, headers)
        reply = self.connection.getresponse()
        kind, body = reply.headers["Content-Type"] or "", reply.read().decode()
        return reply.status, (json.loads(body) if "json" in kind else body)

    def token(self, client_id: str = "plant-7", **other):
        form = {"grant_type": "client_credentials", "client_id": client_id, "scope": BOTH}
        return self.ask(TOKEN, form={**form, **other})


@pytest.fixture
def browse(tmp_path):
    """Makes browsers. Their connections are closed after the test."""
    with ExitStack() as stack:

        def make(sandbox, pem=None):
            browser = Browser(sandbox, tmp_path, pem)
            stack.callback(browser.connection.close)
            return browser

        yield make


@pytest.mark.parametrize("tls", [True, "1.2", "1.3"])
def test_a_sandbox_speaks_tls_with_a_certificate_of_its_own_authority(tls, browse):
    with siteline.Sandbox(now=NOW, tls=tls) as sandbox:
        assert sandbox.base_url.startswith("https://127.0.0.1:")
        connection = browse(sandbox).connection
        connection.connect()
        assert connection.sock.version() == ("TLSv1.2" if tls == "1.2" else "TLSv1.3")
        with sandbox.client() as client:
            assert len(client.scan(**HOUR).collect()) == len(sandbox.expected(**HOUR))
        credential = siteline.Credential("plant-7", keys.private_key())
        stranger = siteline.Client(sandbox.base_url, credential=credential)
        with pytest.raises(siteline.errors.TlsError, match="unknown authority"):
            stranger.discover()


def test_a_certificate_alone_authorises_where_there_are_no_tokens(browse):
    with siteline.Sandbox(now=NOW, mutual_tls="data", daily_allowance=2) as sandbox:
        browser = browse(sandbox, sandbox.certificate("plant-7", lifetime="1h"))
        assert browser.ask(DISCOVERY)[1]["subject"] == "plant-7"
        assert browser.ask(DATA)[0] == 200
        status, body = browser.ask(DATA, token="sandbox.token")
        assert (status, body["error"]) == (400, "invalid_request")
        assert browser.ask(DATA)[0] == 429
        assert browser.token() == (400, {"error": "unauthorized_client"})
        # Another integration has its own allowance.
        assert browse(sandbox, sandbox.certificate("plant-8")).ask(DATA)[0] == 200
        assert list(sandbox.stats.refusals) == [
            "data: an Authorization header, although the certificate authorises",
            "data: the daily allowance is used up",
            "token: the certificate authorises requests, and there are no tokens",
        ]
        sandbox.clock.advance("1h")
        assert browser.ask(DISCOVERY)[0] == 400, "each request checks the validity"


def test_a_token_is_bound_to_the_certificate_that_requested_it(browse):
    with siteline.Sandbox(now=NOW, mutual_tls="token") as sandbox:
        first = browse(sandbox, sandbox.certificate("plant-7"))
        status, grant = first.token()
        assert (status, grant["scope"], grant["expires_in"]) == (200, BOTH, 600)
        token = grant["access_token"]
        assert first.ask(DATA, token)[0] == 200
        for other in ("plant-7", "plant-8"):
            renewed = browse(sandbox, sandbox.certificate(other))
            status, body = renewed.ask(DATA, token)
            assert (status, body["error"]) == (401, "invalid_token")
        assert first.ask(DATA)[0] == 401
        assert first.token("plant-8") == (401, {"error": "invalid_client"})
        assert first.token(client_assertion="x") == (400, {"error": "invalid_request"})
        sandbox.clock.advance("10m")
        assert first.ask(DATA, token)[0] == 401
        for _ in range(30):
            status = first.token()[0]
        assert status == 200
        assert first.token()[0] == 429
        sandbox.clock.advance("1h")
        token = first.token()[1]["access_token"]
        sandbox.unregister("plant-7")
        assert first.ask(DATA, token)[1]["error"] == "invalid_client"


@pytest.mark.parametrize(("mode", "tls"), [("data", "1.2"), ("token", "1.3")])
def test_a_terminator_answers_with_a_page_what_it_does_not_trust(mode, tls, browse):
    with siteline.Sandbox(now=NOW, mutual_tls=mode, tls=tls) as sandbox:
        for pem, status, words in (
            (None, 400, "400 No required SSL certificate was sent"),
            (sandbox.certificate("plant-7", trusted=False), 400, "400 The SSL certificate error"),
            (sandbox.certificate("plant-7", client_auth=False), 400, "SSL certificate error"),
            (sandbox.certificate(begins="2026-11-21T00:00Z"), 400, "SSL certificate error"),
            (sandbox.certificate(begins="2026-10-01T00:00Z", lifetime="1d"), 400, "certificate"),
            (sandbox.certificate("plant-7", registered=False), 401, "invalid_client"),
        ):
            browser = browse(sandbox, pem)
            for reply in (browser.ask(DISCOVERY), browser.ask(DATA), browser.token()):
                assert reply[0] == status
                assert words in str(reply[1])
        assert sandbox.stats.tokens_issued == 0
        assert sandbox.stats.points_sent == 0


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_or_it_refuses_the_handshake(tls, browse):
    variant = Variant(certificate_refusal="alert")
    with siteline.Sandbox(now=NOW, mutual_tls="data", tls=tls, variant=variant) as sandbox:
        good = browse(sandbox, sandbox.certificate("plant-7", chain=True))
        assert good.ask(DISCOVERY)[0] == 200
        for pem in (
            None,
            sandbox.certificate(trusted=False),
            sandbox.certificate(begins="2026-10-01T00:00Z", lifetime="1d"),
        ):
            with pytest.raises((ssl.SSLError, ConnectionError), match=r"alert|reset|pipe|EOF"):
                browse(sandbox, pem).ask(DISCOVERY)
        assert sandbox.stats.discovery_requests == 1


@pytest.mark.parametrize("mode", ["data", "token"])
@systems.MODES
def test_its_clients_and_its_variables_have_the_certificate(mode, browse):
    program = "import siteline; print(dict(siteline.Client().discover())['subject'])"
    with siteline.Sandbox(now=NOW, mutual_tls=mode) as sandbox:
        with sandbox.client(daily_allowance=5) as client:
            assert len(client.scan(**HOUR).collect()) == len(sandbox.expected(**HOUR))
            assert client.subject == "CN=sandbox-client,O=siteline sandbox"
            assert client.allowance.used == 1
        variables = sandbox.env()
        assert "SITELINE_SUBJECT" not in variables
        assert ("SITELINE_CLIENT_ID" in variables) == (mode == "token")
        files = [Path(variables[n]) for n in ("SITELINE_CERTIFICATE_FILE", "SSL_CERT_FILE")]
        assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
        assert sandbox.env() == variables
        assert run_script(program, environment=variables) == "sandbox-client"
    assert not files[0].parent.exists()


def test_faults_and_the_record_of_requests_are_within_tls(browse):
    with siteline.Sandbox(now=NOW, mutual_tls="data", record_wire=True) as sandbox:
        sandbox.fault(on="discovery", status=503)
        assert browse(sandbox, sandbox.certificate("plant-7")).ask(DISCOVERY)[0] == 503
        sandbox.fault(on="data", cut=100)
        sandbox.fault(on="data", skip=1, reset=True)
        with sandbox.client() as client:
            assert len(client.scan(**HOUR).collect()) == len(sandbox.expected(**HOUR))
            assert client.allowance.used == 3
        assert all(text.startswith("GET /api/customer/v1/") for text in sandbox.wire)


def test_what_a_sandbox_does_not_have_is_said():
    with siteline.Sandbox() as plain:
        for ask in (lambda: plain.ca, plain.certificate, lambda: plain.unregister("x")):
            with pytest.raises(siteline.errors.ConfigError, match="mutual_tls"):
                ask()
    with siteline.Sandbox(mutual_tls="token") as sandbox:
        with pytest.raises(siteline.errors.ConfigError, match="certificate"):
            sandbox.enroll(keys.private_key().public_jwk)
        with pytest.raises(siteline.errors.ConfigError, match="ASCII"):
            sandbox.certificate("Prüfstand")
    alert = Variant(certificate_refusal="alert")
    for wrong in ({"mutual_tls": "yes"}, {"tls": "1.1"}, {"variant": alert}):
        with pytest.raises((siteline.errors.ConfigError, TypeError, ValueError)):
            siteline.Sandbox(**wrong)
