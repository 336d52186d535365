"""`siteline doctor` finds faults: the first failed check sets the exit status.

Faults between this machine and the service are in test_doctor_way.py.
"""

import datetime
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import siteline
from kit.doctor import diagnosed
from kit.feeds import damaged_copy, make_feed
from kit.keys import other_private_key

DISCOVERY = "customer.discovery.read"


@pytest.fixture
def enrolled(key, key_file, sandbox):
    """The variables of a key that is enrolled."""
    env = {**sandbox.env(), "SITELINE_SUBJECT": sandbox.enroll(key.public_jwk)}
    del env["SITELINE_PRIVATE_KEY"]
    return {**env, "SITELINE_PRIVATE_KEY_FILE": str(key_file)}


def test_a_wrong_key_is_found(sandbox, enrolled, key, tmp_path):
    other_private_key().save(tmp_path / "other.pem")
    env = {**enrolled, "SITELINE_PRIVATE_KEY_FILE": str(tmp_path / "other.pem")}
    checks = diagnosed(env=env, status=3, first="token")
    assert checks["token"]["error"] == "AuthenticationError"
    assert other_private_key().thumbprint in checks["token"]["do"]
    assert "audience=" not in checks["token"]["do"]
    assert checks["discovery"]["seen"] == checks["data"]["seen"] == "token failed"
    # With the enrolled key given, no token is asked for.
    (tmp_path / "jwk.json").write_text(json.dumps(key.public_jwk))
    arguments = ("--enrolled-jwk", tmp_path / "jwk.json")
    checks = diagnosed(*arguments, env=env, status=2, first="key")
    assert key.thumbprint in checks["key"]["seen"]
    assert checks["token"]["seen"] == "key failed"
    assert sandbox.stats.token_requests == 1
    assert "which is enrolled" in diagnosed(*arguments, env=enrolled)["key"]["seen"]


def test_a_wrong_audience_explains_the_refusal(enrolled):
    env = {**enrolled, "SITELINE_AUDIENCE": "https://elsewhere.example.com/token"}
    checks = diagnosed(env=env, status=3, first="token")
    assert checks["token"]["do"].splitlines()[1].startswith("- audience= sets aud to https")


@pytest.mark.parametrize(
    ("seconds", "is_refused", "status", "words"),
    [
        (600, False, "fail", "ahead of"),
        (-600, False, "fail", "behind"),
        (-20, False, "warn", "this machine's clock is 20 s behind"),
        (3, True, "fail", "refused the assertion"),
        (28, True, "fail", "refused the assertion"),
        (1, True, "ok", ""),
    ],
)
def test_a_wrong_clock_is_reported(sandbox, seconds, is_refused, status, words):
    if is_refused:
        sandbox.fault(on="token", times=9, status=401, error="invalid_client")
    clock = sandbox.clock.machine(sandbox.clock.now() + datetime.timedelta(seconds=seconds))
    client = sandbox.client(clock=clock)
    diagnosis = siteline.doctor(client)
    check = diagnosis["clock"]
    assert (check.status, check.error) == (status, "ClockSkewError" if status == "fail" else None)
    assert words in check.seen
    # No request is repeated with a corrected clock. The client itself corrects for the clocks.
    assert sandbox.stats.token_requests == 1
    if not is_refused:
        assert (diagnosis["token"].status == "skipped") == (status == "fail")
        assert client.discover()


def test_a_missing_scope_is_named(sandbox, enrolled, key):
    subject = sandbox.enroll(key.public_jwk, scopes=[DISCOVERY])
    checks = diagnosed(env={**enrolled, "SITELINE_SUBJECT": subject}, status=3, first="token")
    assert "customer.data.read" in checks["token"]["seen"]
    sandbox.fault(on="token", grant=[DISCOVERY])
    checks = diagnosed(env=enrolled, status=3, first="token")
    assert checks["token"]["error"] == "ScopeError"
    assert "customer.data.read" in checks["token"]["seen"]


@pytest.mark.sandbox(approved=False)
def test_a_missing_approval_is_named(sandbox, enrolled):
    assert "approved" in diagnosed(env=enrolled, status=3, first="token")["token"]["do"]
    assert sandbox.stats.token_requests == 1


@pytest.mark.sandbox(now=None)
def test_a_spent_allowance_comes_before_the_network(sandbox, enrolled, key, tmp_path):
    options = {"ledger": str(tmp_path / "ledger.txt"), "daily_allowance": 1}
    credential = siteline.Credential(enrolled["SITELINE_SUBJECT"], key)
    client = siteline.Client(sandbox.base_url, credential=credential, **options)
    next(client.scan(site="S1", start="2026-11-01", interval="1h").pages())
    env = enrolled | {f"SITELINE_{name.upper()}": str(value) for name, value in options.items()}
    checks = diagnosed(env=env, status=5, first="allowance")
    assert "1 of 1 used, 0 left" in checks["allowance"]["seen"]
    assert checks["discovery"]["status"] == "ok"
    assert checks["data"]["seen"] == "allowance failed"
    assert sandbox.stats.data_requests == 1


def test_the_service_may_count_otherwise(sandbox, enrolled):
    sandbox.fault(on="data", status=429, retry_after=7_200)
    checks = diagnosed(env=enrolled, status=5, first="data")
    assert checks["data"]["error"] == "AllowanceExhausted"
    assert sandbox.stats.data_requests == 1


def test_an_unusable_ledger_stops_all_requests(sandbox, enrolled, tmp_path):
    env = {name: text for name, text in enrolled.items() if name != "SITELINE_SANDBOX_CLOCK"}
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "damaged.txt").write_text("siteline ledger 4\n")
    for name, status, error, first in (
        ("file/ledger.txt", 2, "StoreError", "ledger"),
        ("none/ledger.txt", 2, "StoreError", "token"),
        ("", 2, "StoreError", "ledger"),
        ("damaged.txt", 7, "StoreCorrupt", "ledger"),
    ):
        place = env | {"SITELINE_LEDGER": str(tmp_path / name)}
        checks = diagnosed(env=place, status=status, first=first)
        assert checks[first]["error"] == error
        assert checks["data"]["seen"] == f"{first} failed"
    assert not (tmp_path / "none").exists()
    assert sandbox.stats.token_requests == 0


def test_a_damaged_store_is_found(sandbox, enrolled, tmp_path):
    path = tmp_path / "plant.siteline"
    with siteline.Store(path) as store:
        sandbox.client().sync(make_feed(page_size=2_000), store)
    other = damaged_copy(path, tmp_path)
    arguments = ("--store", path, "--store", other)
    checks = diagnosed(*arguments, env=enrolled, status=7, first="store")
    assert checks["store"]["error"] == "StoreCorrupt"
    assert str(other) in checks["store"]["title"]
    missing = diagnosed("--store", tmp_path / "none", env=enrolled, status=2, first="store")
    assert missing["store"]["error"] == "StoreError"
    assert not (tmp_path / "none").exists()


class Another(BaseHTTPRequestHandler):
    """A service that is not the expected one."""

    def answer(self):
        status, body, headers = self.server.answer
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(status)
        for name, text in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


PAGE = b"<html><title>Welcome</title>hunter2</html>"


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        ((200, PAGE, {"Content-Type": "text/html"}), 7, "ProtocolError"),
        ((404, PAGE, {}), 3, "RequestRejected"),
        ((200, b'{"hello": "world"}', {"Content-Type": "application/json"}), 7, "ProtocolError"),
        ((302, b"", {"Location": "https://login.example.com/"}), 2, "RedirectRefused"),
    ],
    ids=["page", "not found", "json", "redirect"],
)
def test_another_service_is_recognised(answer, status, error, enrolled):
    with ThreadingHTTPServer(("127.0.0.1", 0), Another) as server:
        server.answer = answer
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        env = enrolled | {"SITELINE_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}"}
        checks = diagnosed(env=env, status=status, first="service")
        server.shutdown()
    assert checks["service"]["error"] == error
    assert re.search("[Aa]nother service|login page|base_url=", checks["service"]["do"])
    assert checks["clock"]["seen"] == checks["data"]["seen"] == "service failed"
