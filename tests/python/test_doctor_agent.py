"""`siteline doctor` when an agent has the key and the count."""

import os

import pytest
import siteline
from kit import systems
from kit.agents import agent_process, path_of
from kit.doctor import diagnosed

pytestmark = [systems.SIGNALS, pytest.mark.sandbox(now=None)]


def test_an_agent_replaces_key_and_ledger(sandbox, tmp_path):
    env = {**sandbox.env(), "SITELINE_LEDGER": str(tmp_path / "ledger.txt")}
    with agent_process(env, "--listen", f"unix:{tmp_path}/a/s") as (agent, _):
        for address in (agent, agent.split("#")[0]):
            checks = diagnosed(env={"SITELINE_AGENT": address})
            assert checks["agent"]["status"] == "ok"
            assert path_of(agent) in checks["agent"]["seen"]
            assert all("agent" in checks[one]["seen"] for one in ("key", "ledger"))
            assert [checks[one]["status"] for one in ("tcp", "token", "data")] == ["ok"] * 3
        # Offline too: it is a socket of the machine.
        assert diagnosed("--offline", env={"SITELINE_AGENT": agent})["agent"]["status"] == "ok"
    assert (sandbox.stats.token_requests, sandbox.stats.data_requests) == (1, 2)


def test_an_absent_agent_sends_nothing(sandbox, tmp_path):
    address = f"unix:{tmp_path}/none.sock"
    for more in ("", f"#{sandbox.base_url}#integration-1"):
        checks = diagnosed(env={"SITELINE_AGENT": address + more}, status=4, first="agent")
        assert checks["agent"]["error"] == "AgentUnavailable"
        assert "siteline agent" in checks["agent"]["do"]
        later = {checks[one]["seen"] for one in ("key", "ledger", "tcp", "token")}
        assert later == {"agent failed"}
    assert sandbox.stats.token_requests == 0


def test_an_agent_in_the_program(sandbox, client, tmp_path):
    with siteline.Agent(client, listen=f"unix:{tmp_path}/a/s") as agent:
        # An agent of another subject fails first.
        wrong = f"{agent.address.split('#')[0]}#{sandbox.base_url}#another"
        checks = diagnosed(env={"SITELINE_AGENT": wrong}, status=2, first="agent")
        assert client.subject in checks["agent"]["seen"]
        assert os.path.exists(path_of(agent.address))
        assert sandbox.stats.token_requests == 0
        with siteline.Client(sandbox.base_url, agent=agent.address) as one:
            diagnosis = siteline.doctor(one)
    assert diagnosis.ok
    assert diagnosis["agent"].status == "ok"
    assert (sandbox.stats.token_requests, sandbox.stats.data_requests) == (1, 1)
