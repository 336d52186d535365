"""``siteline token --check``: whether a token can be had."""

import json
import re

import pytest
from kit.command import run_command, run_json
from kit.doctor import profile

SCOPES = ["customer.discovery.read", "customer.data.read"]


@pytest.mark.sandbox(record_wire=True)
def test_a_token_costs_one_request(sandbox):
    document = run_json("token", "--check", env=sandbox.env())
    expected = {
        "command": "token",
        "base_url": sandbox.base_url,
        "needs_token": True,
        "scopes_asked": SCOPES,
        "scopes_granted": SCOPES,
        "lifetime_seconds": 600,
        "discovery_refused": None,
        "token_requests": 1,
    }
    assert document | expected == document
    stats = sandbox.stats
    assert (stats.token_requests, stats.discovery_requests, stats.data_requests) == (1, 1, 0)
    # The token itself is never printed.
    refused = run_command("token", env=sandbox.env(), status=2)
    assert "never printed" in refused.stderr
    shown = run_command("token", "--check", "-vv", env=sandbox.env())
    tokens = set(re.findall(r"authorization: Bearer (\S+)", "\n".join(sandbox.wire)))
    assert tokens
    for token in tokens:
        assert token not in json.dumps(document) + shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("fault", "granted", "shown", "told"),
    [
        ({"members": {"expires_in": 300}}, SCOPES, r"^token +works, for 300 s$", ""),
        ({"members": {"expires_in": 300}}, SCOPES, r"^granted +all of them$", ""),
        ({"drop": ["scope"]}, None, "the service does not say", ""),
        ({"drop": ["expires_in"]}, SCOPES, "works, for 60 s", "the token reply has no lifetime"),
    ],
)
def test_a_person_reads_lifetime_and_scopes(sandbox, fault, granted, shown, told):
    sandbox.fault(on="token", **fault, times=2)
    assert run_json("token", "--check", env=sandbox.env())["scopes_granted"] == granted
    sandbox.forget_tokens()
    done = run_command("token", "--check", env=sandbox.env())
    assert re.search(shown, done.stdout, re.MULTILINE)
    assert re.search(rf"^scopes asked for +{' '.join(SCOPES)}$", done.stdout, re.MULTILINE)
    assert told in done.stderr if told else done.stderr == ""


def test_a_scope_that_is_not_granted_is_named(sandbox):
    sandbox.fault(on="token", grant=SCOPES[:1])
    document = run_json("token", "--check", env=sandbox.env(), status=3)
    assert document["error"]["type"] == "ScopeError"
    assert document["error"]["missing"] == SCOPES[1:]


def test_a_token_may_lack_the_discovery_scope(sandbox):
    env = {**sandbox.env(), "SITELINE_SCOPES": SCOPES[1]}
    document = run_json("token", "--check", env=env)
    assert document["scopes_granted"] == [SCOPES[1]]
    assert SCOPES[0] in document["discovery_refused"]
    # With the scope a refusal is one.
    sandbox.fault(on="discovery", status=403, body='{"error": "forbidden"}')
    run_json("token", "--check", env=sandbox.env(), status=3)


@pytest.mark.sandbox(mutual_tls="data")
def test_a_certificate_may_need_no_token(sandbox, tmp_path):
    (tmp_path / "plant.pem").write_bytes(sandbox.certificate("plant-7"))
    (tmp_path / "plant.pem").chmod(0o600)
    (tmp_path / "ca.pem").write_bytes(sandbox.ca)
    files = {"certificate_file": "plant.pem", "ca_bundle": "ca.pem"}
    env = profile(tmp_path, base_url=sandbox.base_url, **files)
    env["SITELINE_SANDBOX_CLOCK"] = sandbox.env()["SITELINE_SANDBOX_CLOCK"]
    document = run_json("token", "--check", env=env)
    assert document["needs_token"] is False
    assert document["scopes_granted"] is document["lifetime_seconds"] is None
    assert document["token_requests"] == 0
    assert "none is needed" in run_command("token", "--check", env=env).stdout
