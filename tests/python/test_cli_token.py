"""``siteline token --check``: whether a token can be had."""

import json
import re

import pytest
from kit.command import run_command, run_json

SCOPES = ["customer.discovery.read", "customer.data.read"]


def test_a_token_that_works_costs_one_token_request_and_no_data_request(sandbox):
    document = run_json("token", "--check", env=sandbox.env())
    assert document["command"] == "token"
    assert document["base_url"] == sandbox.base_url
    assert document["needs_token"] is True
    assert document["scopes_asked"] == document["scopes_granted"] == SCOPES
    assert document["lifetime_seconds"] == 600
    assert document["discovery_refused"] is None
    assert document["token_requests"] == 1
    stats = sandbox.stats
    assert (stats["token_requests"], stats["discovery_requests"]) == (1, 1)
    assert stats["data_requests"] == 0


def test_a_person_reads_the_lifetime_and_the_scopes(sandbox):
    sandbox.fault(on="token", members={"expires_in": 300})
    text = run_command("token", "--check", env=sandbox.env()).stdout
    assert re.search(r"^token +works, for 300 s$", text, re.MULTILINE)
    assert re.search(rf"^scopes asked for +{' '.join(SCOPES)}$", text, re.MULTILINE)
    assert re.search(r"^granted +all of them$", text, re.MULTILINE)


@pytest.mark.sandbox(record_wire=True)
def test_the_token_itself_is_never_printed(sandbox):
    refused = run_command("token", env=sandbox.env(), status=2)
    assert "never printed" in refused.stderr
    assert sandbox.stats["token_requests"] == 0
    shown = ""
    for more in ((), ("--json",), ("-vv",)):
        done = run_command("token", "--check", *more, env=sandbox.env())
        shown += done.stdout + done.stderr
    tokens = set(re.findall(r"authorization: Bearer (\S+)", "\n".join(sandbox.wire)))
    assert len(tokens) == 3
    assert not any(token in shown for token in tokens)


def test_a_scope_that_is_not_granted_is_named(sandbox):
    sandbox.fault(on="token", grant=SCOPES[:1])
    document = run_json("token", "--check", env=sandbox.env(), status=3)
    assert document["error"]["type"] == "ScopeError"
    assert document["error"]["missing"] == SCOPES[1:]


def test_scopes_that_the_service_does_not_name_are_not_said_to_be_granted(sandbox):
    sandbox.fault(on="token", drop=["scope"], times=2)
    document = run_json("token", "--check", env=sandbox.env())
    assert document["scopes_granted"] is None
    assert document["scopes_asked"] == SCOPES
    done = run_command("token", "--check", env=sandbox.env())
    assert "the service does not say" in done.stdout
    assert done.stderr == ""


def test_a_lifetime_that_the_service_does_not_state_is_warned_of(sandbox):
    sandbox.fault(on="token", drop=["expires_in"])
    done = run_command("token", "--check", env=sandbox.env())
    assert "works, for 60 s" in done.stdout
    assert "the token reply has no lifetime" in done.stderr


def test_a_token_without_the_scope_of_discovery_is_good_all_the_same(sandbox):
    env = {**sandbox.env(), "SITELINE_SCOPES": SCOPES[1]}
    document = run_json("token", "--check", env=env)
    assert document["scopes_granted"] == [SCOPES[1]]
    assert SCOPES[0] in document["discovery_refused"]
    # With the scope a refusal is one.
    sandbox.fault(on="discovery", status=403, body='{"error": "forbidden"}')
    run_json("token", "--check", env=sandbox.env(), status=3)


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        ({"status": 401, "error": "invalid_client"}, 3, "AuthenticationError"),
        ({"unavailable": True, "times": 9}, 4, "ServiceUnavailable"),
        ({"reset": True, "times": 9}, 4, "TransportError"),
        ({"body": "{}"}, 7, "ProtocolError"),
    ],
)
def test_a_token_that_cannot_be_had_is_an_error_with_its_status(
    sandbox, tmp_path, key, fault, status, kind
):
    sandbox.fault(on="token", **fault)
    key.save(tmp_path / "key.pem")
    profile = {
        **{"base_url": sandbox.base_url, "subject": sandbox.enroll(key.public_jwk)},
        **{"private_key_file": "key.pem", "tries": 1},
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in profile.items()]
    (tmp_path / "plants.toml").write_text("\n".join(["[a]", *lines]))
    env = {**sandbox.env(), "SITELINE_CONFIG": str(tmp_path / "plants.toml")}
    document = run_json("token", "--check", "--profile", "a", env=env, status=status)
    assert document["error"]["type"] == kind
    assert sandbox.stats["discovery_requests"] == 0


@pytest.mark.sandbox(mutual_tls="data")
def test_where_the_certificate_alone_authorises_no_token_is_needed(sandbox, tmp_path):
    (tmp_path / "plant.pem").write_bytes(sandbox.certificate("plant-7"))
    (tmp_path / "plant.pem").chmod(0o600)
    (tmp_path / "ca.pem").write_bytes(sandbox.ca)
    (tmp_path / "plants.toml").write_text(
        f'[a]\nbase_url = "{sandbox.base_url}"\ncertificate_file = "plant.pem"\n'
        'ca_bundle = "ca.pem"\n'
    )
    clock = sandbox.env()["SITELINE_SANDBOX_CLOCK"]
    env = {"SITELINE_CONFIG": str(tmp_path / "plants.toml"), "SITELINE_SANDBOX_CLOCK": clock}
    document = run_json("token", "--check", "--profile", "a", env=env)
    assert document["needs_token"] is False
    assert document["scopes_granted"] is document["lifetime_seconds"] is None
    assert document["token_requests"] == 0
    text = run_command("token", "--check", "--profile", "a", env=env).stdout
    assert "none is needed" in text
