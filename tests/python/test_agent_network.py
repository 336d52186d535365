"""An agent over a network: TLS, with client certificates or with a secret."""

import base64
import os
import socket
import ssl

import pytest
import siteline
from kit import systems
from kit.agents import ONE_PAGE, agent_process, ask, lease, printed, user_of
from kit.certificates import Issuer
from kit.command import run_command
from kit.ranges import SIX_HOURS

pytestmark = [pytest.mark.once]


@pytest.fixture
def client_files(tmp_path):
    """Certificates of clients: of the right authority, and of another."""
    issuers = Issuer("clients"), Issuer("others")
    (tmp_path / "clients.pem").write_bytes(issuers[0].pem)
    files = []
    for name, issuer in zip(("ours", "theirs"), issuers, strict=True):
        issued = issuer.issue(name)
        (tmp_path / f"{name}.pem").write_bytes(issued.pem)
        (tmp_path / f"{name}-key.pem").write_bytes(issued.key_pem())
        files.append((tmp_path / f"{name}.pem", tmp_path / f"{name}-key.pem"))
    return files


def listening(client, authority, **options):
    options |= {"tls_certificate": authority.chain, "tls_key": authority.chain}
    return siteline.Agent(client, listen="https://127.0.0.1:0", **options)


def test_clients_with_a_certificate_of_the_authority_are_served_and_no_others(
    sandbox, client, authority, client_files, tmp_path, monkeypatch
):
    with listening(client, authority, client_authority=tmp_path / "clients.pem") as agent:
        assert list(agent.env()) == ["SITELINE_AGENT"]

        def read(identity, ca=authority.file):
            options = {"agent": agent.address, "clock": sandbox.clock}
            with monkeypatch.context() as patch:
                if ca:
                    patch.setenv("SITELINE_AGENT_CA", str(ca))
                if identity:
                    patch.setenv("SITELINE_AGENT_CERTIFICATE_FILE", str(identity[0]))
                    patch.setenv("SITELINE_AGENT_KEY_FILE", str(identity[1]))
                with siteline.Client(sandbox.base_url, **options) as one:
                    return len(one.scan(**SIX_HOURS).collect())

        assert read(client_files[0]) == 72
        for identity, ca in (
            (None, authority.file),
            (client_files[1], authority.file),
            (client_files[0], None),
        ):
            with pytest.raises((siteline.errors.TlsError, siteline.errors.AgentUnavailable)):
                read(identity, ca)
        monkeypatch.setenv("SITELINE_AGENT_KEY_FILE", str(client_files[0][1]))
        with pytest.raises(siteline.errors.ConfigError, match="belong together"):
            siteline.Client(sandbox.base_url, agent=agent.address)
    assert sandbox.stats.token_requests == 1
    assert sandbox.stats.data_requests == 3


def test_clients_without_certificates_tell_a_secret(
    sandbox, client, authority, tmp_path, monkeypatch
):
    with listening(client, authority) as agent:
        variables = agent.env()
        secret = variables["SITELINE_AGENT_SECRET"]
        assert len(base64.urlsafe_b64decode(secret + "=")) == 32
        assert secret not in repr(agent) + str(agent.state) + agent.address
        context = ssl.create_default_context(cafile=authority.file)
        port = int(agent.address.split("#")[0].rsplit(":", 1)[1])

        wanted = lease(agent.address, "token", scopes="customer.data.read")

        def told(secret):
            plain = socket.create_connection(("127.0.0.1", port), timeout=60)
            connection = context.wrap_socket(plain, server_hostname="127.0.0.1")
            greeting = f"siteline-agent 1 {secret}"
            return ask(agent.address, wanted, greeting=greeting, connection=connection)[0]

        assert [told(text) for text in ("", secret[:-1], secret + "=")] == ["Err"] * 3
        assert sandbox.stats.token_requests == 0
        assert told(secret) == "Ok"
        monkeypatch.setenv("SITELINE_AGENT_CA", str(authority.file))
        with pytest.raises(siteline.errors.ConfigError, match="SITELINE_AGENT_SECRET") as caught:
            siteline.Client(sandbox.base_url, agent=agent.address).discover()
        assert secret not in str(caught.value)
        monkeypatch.setenv("SITELINE_AGENT_SECRET", secret)
        with siteline.Client(sandbox.base_url, agent=agent.address, clock=sandbox.clock) as one:
            assert len(one.scan(**SIX_HOURS).collect()) == 72
    monkeypatch.setenv("SITELINE_AGENT_SECRET", "short")
    with pytest.raises(siteline.errors.ConfigError, match="256 bits"):
        listening(client, authority)


@systems.SIGNALS
@pytest.mark.sandbox(now=None)
def test_the_command_serves_other_machines(sandbox, authority, tmp_path):
    secret = base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    options = ["--listen", "https://127.0.0.1:0", "--name", "localhost"]
    options += ["--tls-cert", authority.chain, "--tls-key", authority.chain]
    refused = run_command("agent", *options, env=sandbox.env(), status=2)
    assert "--client-ca" in refused.stderr
    told = {"SITELINE_AGENT_SECRET": secret}
    with agent_process({**sandbox.env(), **told}, *options) as (agent, _):
        assert agent.startswith("https://localhost:")
        told["SITELINE_AGENT_CA"] = str(authority.file)
        assert printed(ONE_PAGE, user_of(agent, **told)) == "72"
    assert sandbox.stats.token_requests == 1
