"""The output of the command contains no secret, also with ``-vv``."""

import base64
import json
import re
import urllib.parse

import pytest
import siteline
from kit.command import run_command
from kit.ranges import NOW
from kit.secret_forms import found

pytestmark = pytest.mark.once

PASSPHRASE = "correct horse battery staple"
QUERY = ("--site", "S1", "--line", "L2", "--interval", "5m", "--page-size", "300")
RANGE = ("--start", "2026-11-01", "--end", "2026-11-02")
FEEDS = """
[defaults]
interval = "1h"
start = "2026-11-18"
page_size = 200
[feeds.line-2]
site = "S1"
line = "L2"
"""
TOKEN = re.compile(r"(?i)authorization: bearer (\S+)")
ASSERTION = re.compile(r"client_assertion=([^&\s]+)")
CURSOR = re.compile(r"[?&]cursor=([^&\s]+)")


@pytest.fixture(scope="module")
def printed(tmp_path_factory, key):
    """The output of all commands, and the secrets that they used."""
    folder = tmp_path_factory.mktemp("secrets")
    key.save(folder / "key.pem", passphrase=PASSPHRASE)
    key.save(folder / "plain.pem")
    (folder / "feeds.toml").write_text(FEEDS)
    with siteline.Sandbox(now=NOW, record_wire=True) as sandbox:
        env = {
            **sandbox.env(),
            "SITELINE_SUBJECT": sandbox.enroll(key.public_jwk),
            "SITELINE_PRIVATE_KEY_FILE": str(folder / "key.pem"),
            "SITELINE_PASSPHRASE": PASSPHRASE,
            "SITELINE_CONFIG": str(folder / "config.toml"),
        }
        del env["SITELINE_PRIVATE_KEY"]
        texts = list(_outputs(sandbox, env, folder))
        wire = "\n".join(sandbox.wire)
    cursors = {urllib.parse.unquote(one) for one in CURSOR.findall(wire)}
    tokens, assertions = set(TOKEN.findall(wire)), set(ASSERTION.findall(wire))
    assert len(texts) > 30
    assert min(len(tokens), len(assertions), len(cursors)) > 3
    plain = base64.b64decode("".join((folder / "plain.pem").read_text().splitlines()[1:-1]))
    # The public modulus is in the first third.
    parts = [plain[start : start + 24] for start in range(len(plain) // 2, len(plain) - 24, 24)]
    secrets = [one.encode() for one in (*tokens, *assertions, *cursors, PASSPHRASE)] + parts
    return "\n".join(texts).encode(), secrets


def _outputs(sandbox, env, folder):
    """The output of each command as text and as a document, with and without an error."""
    feeds, store = folder / "feeds.toml", folder / "plant.siteline"

    def outputs(*arguments, status=0):
        for more in (["-vv"], ["-vv", "--json"]):
            done = run_command(*arguments, *more, env=env, status=status, folder=folder)
            yield done.stdout + done.stderr

    profile = ("--base-url", sandbox.base_url, "--subject", "s", "--private-key-file", "key.pem")
    yield run_command("profile", "init", "plant-a", *profile, env=env, folder=folder).stdout
    yield from outputs("profile", "show", "plant-a")
    yield from outputs("profile", "list")
    yield from outputs("keygen", "other.pem", "--bits", "2048", "--overwrite")
    # Another subject has another token.
    jwk = siteline.PrivateKey(folder / "plain.pem").public_jwk
    env["SITELINE_SUBJECT"] = sandbox.enroll(jwk)
    yield from _diagnoses(sandbox, outputs, env, folder)
    yield from outputs("series", "--diff")
    yield from outputs("read", *QUERY, *RANGE, "--dry-run")
    sandbox.fault(on="data", nth=2, status=503)
    yield from outputs("sync", feeds, store)
    sandbox.clear_faults()
    sandbox.clock.advance("2d")
    sandbox.fault(on="data", skip=1, status=410)
    yield run_command("sync", feeds, store, "-vv", env=env, status=3, folder=folder).stderr
    sandbox.clear_faults()
    yield from outputs("read", *QUERY, *RANGE, "-o", "out.csv")
    sandbox.fault(on="data", skip=2, times=99, status=503)
    yield from outputs("read", *QUERY, *RANGE, "-o", "late.csv", "--resume", status=4)
    sandbox.clear_faults()
    sandbox.forget_cursors()
    yield from outputs("read", *QUERY, *RANGE, "-o", "late.csv", "--resume")
    yield from outputs("coverage", store)
    yield from outputs("coverage", store, "--lateness")
    yield run_command("changes", store, "line-2", "--since", "0", "-vv", env=env).stdout
    for action in ("info", "check"):
        yield from outputs("store", action, store)
    yield from outputs("allowance")
    sandbox.revoke(env["SITELINE_SUBJECT"])
    yield from outputs("series", status=3)
    yield from outputs("doctor", "--store", store, status=3)
    yield from outputs("completion", "bash")


def _diagnoses(sandbox, outputs, env, folder):
    """The output of the doctor, with and without a refused request."""
    jwk = siteline.PrivateKey(folder / "plain.pem").public_jwk
    (folder / "jwk.json").write_text(json.dumps(jwk))
    yield from outputs("doctor", "--enrolled-jwk", "jwk.json")
    yield from outputs("doctor", "--offline")
    for on, status in (("token", 401), ("discovery", 401), ("data", 503)):
        body = '{"error": "invalid_client", "error_description": "no"}'
        env["SITELINE_SUBJECT"] = sandbox.enroll(jwk)
        sandbox.fault(on=on, times=2, status=status, body=body)
        yield from outputs("doctor", status=3 if status == 401 else 4)
        sandbox.clear_faults()


def test_no_output_of_a_command_has_a_secret(printed):
    text, secrets = printed
    assert [one[:12] for one in secrets if found(one, text)] == []


def test_no_secret_is_taken_as_an_argument():
    for command in (["keygen"], ["profile", "init"], ["read"], ["sync"]):
        shown = run_command(*command, "--help").stdout
        assert not re.search(r"--(passphrase|password|token|key|secret) ", shown), shown
