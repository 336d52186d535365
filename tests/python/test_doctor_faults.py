"""`siteline doctor` where something is wrong: the first fail names it, with its exit status.

What is wrong on the way to the service is in test_doctor_way.py.
"""

import datetime
import json
import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import siteline
from kit.doctor import diagnosed, profile
from kit.feeds import make_feed
from kit.ranges import NOW

MINUTES = datetime.timedelta(minutes=10)
DISCOVERY = "customer.discovery.read"


@pytest.fixture
def enrolled(key, key_file, sandbox):
    """The variables of a key that is enrolled, and their subject."""
    subject = sandbox.enroll(key.public_jwk)
    env = sandbox.env()
    del env["SITELINE_PRIVATE_KEY"]
    return {**env, "SITELINE_SUBJECT": subject, "SITELINE_PRIVATE_KEY_FILE": str(key_file)}


@pytest.fixture
def other_key(tmp_path):
    """The file of a key that is not enrolled."""
    siteline.PrivateKey.generate(2048).save(tmp_path / "other.pem")
    return tmp_path / "other.pem"


def test_a_wrong_key_is_a_refused_token_and_with_the_enrolled_one_beside_it_a_wrong_key(
    sandbox, enrolled, other_key, key, tmp_path
):
    env = {**enrolled, "SITELINE_PRIVATE_KEY_FILE": str(other_key)}
    checks = diagnosed(env=env, status=3, first="token")
    assert checks["token"]["error"] == "AuthenticationError"
    assert siteline.PrivateKey(other_key).thumbprint in checks["token"]["do"]
    assert checks["scopes"]["seen"] == checks["data"]["seen"] == "token failed"
    assert sandbox.stats["token_requests"] == 1

    (tmp_path / "jwk.json").write_text(json.dumps(key.public_jwk))
    arguments = ("--enrolled-jwk", tmp_path / "jwk.json")
    checks = diagnosed(*arguments, env=env, status=2, first="key")
    assert key.thumbprint in checks["key"]["seen"]
    assert checks["token"]["seen"] == "key failed"
    assert checks["tcp"]["status"] == "ok"
    assert sandbox.stats["token_requests"] == 1
    assert "which is enrolled" in diagnosed(*arguments, env=enrolled)["key"]["seen"]


def test_a_wrong_kid_is_a_wrong_key(sandbox, enrolled, key_file, other_key, tmp_path):
    members = {
        "base_url": sandbox.base_url,
        "subject": enrolled["SITELINE_SUBJECT"],
        "private_key_file": str(key_file),
        "kid": siteline.PrivateKey(other_key).thumbprint,
    }
    checks = diagnosed(env=profile(tmp_path, **members), status=2, first="key")
    assert checks["key"]["error"] == "CredentialError"
    assert checks["settings"]["status"] == "ok"
    assert enrolled["SITELINE_SUBJECT"] in checks["settings"]["seen"]
    # What does not need the key is looked at all the same.
    assert [checks[one]["status"] for one in ("ledger", "name", "tcp")] == ["ok"] * 3
    assert sandbox.stats["token_requests"] == 0


def test_a_wrong_aud_is_the_first_cause_of_a_refused_token(sandbox, enrolled):
    env = {**enrolled, "SITELINE_AUDIENCE": "https://elsewhere.example.com/token"}
    checks = diagnosed(env=env, status=3, first="token")
    assert checks["assertion"]["status"] == "warn"
    assert "in the place of" in checks["assertion"]["seen"]
    assert checks["token"]["do"].splitlines()[1].startswith("- aud is set by audience= to https")


@pytest.mark.parametrize("ahead", [1, -1], ids=["ahead", "behind"])
def test_a_clock_that_is_ten_minutes_wrong_is_the_cause_of_the_refusal(ahead, key, key_file):
    service_time = datetime.datetime.now(datetime.UTC) - ahead * MINUTES
    with siteline.Sandbox(now=service_time) as sandbox:
        env = {
            "SITELINE_BASE_URL": sandbox.base_url,
            "SITELINE_SUBJECT": sandbox.enroll(key.public_jwk),
            "SITELINE_PRIVATE_KEY_FILE": str(key_file),
        }
        checks = diagnosed(env=env, status=3, first="clock")
        assert checks["clock"]["error"] == "ClockSkewError"
        assert ("ahead of" if ahead > 0 else "behind") in checks["clock"]["seen"]
        assert checks["token"] | {"seen": ""} == {
            **{"id": "token", "title": "access token", "status": "skipped"},
            **{"seen": "", "do": None, "error": None},
        }
        # It is not repeated with a corrected clock.
        assert sandbox.stats["token_requests"] == 1


def test_a_clock_that_is_a_little_wrong_is_told(sandbox):
    clock = sandbox.clock.machine(sandbox.clock.now() - datetime.timedelta(seconds=20))
    check = siteline.doctor(sandbox.client(clock=clock))["clock"]
    assert check.status == "warn"
    assert check.seen.startswith("this machine's clock is 20 s behind")


@pytest.mark.parametrize("seconds", [3, 12, 28])
def test_a_refusal_with_a_small_skew_names_the_clock(sandbox, seconds):
    now = sandbox.clock.now()
    sandbox.fault(on="token", times=9, status=401, error="invalid_client")
    clock = sandbox.clock.machine(now + datetime.timedelta(seconds=seconds))
    check = siteline.doctor(sandbox.client(clock=clock))["clock"]
    assert (check.status, check.error) == ("fail", "ClockSkewError")
    assert "refused the assertion" in check.seen
    clock = sandbox.clock.machine(now + datetime.timedelta(seconds=1))
    assert siteline.doctor(sandbox.client(clock=clock))["clock"].status == "ok"


def test_a_scope_that_is_not_allowed_is_named(sandbox, enrolled, key):
    subject = sandbox.enroll(key.public_jwk, scopes=[DISCOVERY])
    checks = diagnosed(env={**enrolled, "SITELINE_SUBJECT": subject}, status=3, first="scopes")
    assert "customer.data.read" in checks["scopes"]["seen"]
    assert checks["token"]["status"] == "ok"
    sandbox.fault(on="token", grant=[DISCOVERY])
    checks = diagnosed(env=enrolled, status=3, first="scopes")
    assert "customer.data.read" in checks["scopes"]["seen"]


def test_an_integration_that_is_not_approved_is_refused(key, key_file):
    with siteline.Sandbox(now=NOW, approved=False) as sandbox:
        env = {
            **sandbox.env(),
            "SITELINE_SUBJECT": sandbox.enroll(key.public_jwk),
            "SITELINE_PRIVATE_KEY_FILE": str(key_file),
        }
        del env["SITELINE_PRIVATE_KEY"]
        checks = diagnosed(env=env, status=3, first="token")
        assert "approved" in checks["token"]["do"]
        assert sandbox.stats["token_requests"] == 1


def test_an_allowance_that_is_spent_stands_before_the_network(key, key_file, tmp_path):
    with siteline.Sandbox() as sandbox:
        env = {
            "SITELINE_BASE_URL": sandbox.base_url,
            "SITELINE_SUBJECT": sandbox.enroll(key.public_jwk),
            "SITELINE_PRIVATE_KEY_FILE": str(key_file),
            "SITELINE_LEDGER": str(tmp_path / "ledger.txt"),
            "SITELINE_DAILY_ALLOWANCE": "1",
        }
        credential = siteline.Credential(env["SITELINE_SUBJECT"], key)
        client = siteline.Client(
            sandbox.base_url,
            credential=credential,
            ledger=tmp_path / "ledger.txt",
            daily_allowance=1,
        )
        next(client.data(site="S1", start="2026-11-01", interval="1h").pages())
        sent = sandbox.stats["data_requests"]
        checks = diagnosed(env=env, status=5, first="allowance")
        assert "1 of 1 used, 0 left" in checks["allowance"]["seen"]
        assert checks["discovery"]["status"] == "ok"
        assert checks["data"]["seen"] == "allowance failed"
        assert sandbox.stats["data_requests"] == sent


def test_an_allowance_that_the_service_says_is_spent_is_found_by_the_page(sandbox, enrolled):
    sandbox.fault(on="data", status=429, retry_after=7_200)
    checks = diagnosed(env=enrolled, status=5, first="data")
    assert checks["data"]["error"] == "AllowanceExhausted"
    assert sandbox.stats["data_requests"] == 1


def test_a_ledger_that_cannot_be_written_stops_all_requests(sandbox, enrolled, key_file, tmp_path):
    env = {name: text for name, text in enrolled.items() if name != "SITELINE_SANDBOX_CLOCK"}
    (tmp_path / "file").write_text("no folder")
    for place in (tmp_path / "file" / "ledger.txt", tmp_path / "none" / "ledger.txt", tmp_path):
        checks = diagnosed(env={**env, "SITELINE_LEDGER": str(place)}, status=2, first="ledger")
        assert checks["ledger"]["error"] == "StoreError"
        assert checks["token"]["seen"] == "ledger failed"
    assert not (tmp_path / "none").exists()
    (tmp_path / "damaged.txt").write_text("siteline ledger 4\n")
    env["SITELINE_LEDGER"] = str(tmp_path / "damaged.txt")
    assert diagnosed(env=env, status=7, first="ledger")["ledger"]["error"] == "StoreCorrupt"
    assert sandbox.stats["token_requests"] == 0


def test_a_damaged_store_is_found(sandbox, enrolled, tmp_path):
    path = tmp_path / "plant.siteline"
    with siteline.Store(path) as store:
        sandbox.client().sync(make_feed(page_size=2_000), store)
    other = tmp_path / "damaged.siteline"
    shutil.copy(path, other)
    found = bytearray(path.read_bytes())
    for at in range(4_096 + 2_000, len(found), 4_096):
        found[at] ^= 1
    other.write_bytes(found)
    arguments = ("--store", path, "--store", other)
    checks = diagnosed(*arguments, env=enrolled, status=7, first="store")
    assert checks["store"]["error"] == "StoreCorrupt"
    assert str(other) in checks["store"]["title"]
    missing = diagnosed("--store", tmp_path / "none", env=enrolled, status=2, first="store")
    assert missing["store"]["error"] == "FileNotFoundError"
    assert not (tmp_path / "none").exists()


class Another(BaseHTTPRequestHandler):
    """A service that is not the one: it answers everything in its own way."""

    def answer(self):
        """Reply as the server was told to."""
        status, body, headers = self.server.answer
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        """Nothing."""


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
def test_another_service_at_the_address_is_recognised(answer, status, error, key_file):
    with ThreadingHTTPServer(("127.0.0.1", 0), Another) as server:
        server.answer = answer
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        env = {
            "SITELINE_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}",
            "SITELINE_SUBJECT": "integration-1",
            "SITELINE_PRIVATE_KEY_FILE": str(key_file),
        }
        checks = diagnosed(env=env, status=status, first="service")
        server.shutdown()
    assert checks["service"]["error"] == error
    assert "Another service" in checks["service"]["do"]
    assert checks["clock"]["seen"] == checks["data"]["seen"] == "service failed"
