"""`siteline doctor` where an agent has the key and the count."""

import os

import pytest
import siteline
from kit import systems
from kit.agents import agent_process, path_of
from kit.doctor import diagnosed

pytestmark = [systems.SIGNALS, pytest.mark.sandbox(now=None)]
SKIPPED = ("key", "assertion", "ledger")


def user(agent):
    return {"SITELINE_AGENT": agent}


def test_an_agent_is_looked_at_in_the_place_of_a_key_and_a_ledger(sandbox, tmp_path):
    ledger = {"SITELINE_LEDGER": str(tmp_path / "ledger.txt")}
    with agent_process({**sandbox.env(), **ledger}, "--listen", f"unix:{tmp_path}/a/s") as (
        agent,
        _,
    ):
        for address in (agent, agent.split("#")[0]):
            checks = diagnosed(env=user(address))
            assert checks["agent"]["status"] == "ok"
            assert path_of(agent) in checks["agent"]["seen"]
            assert all("agent" in checks[one]["seen"] for one in SKIPPED)
            assert [checks[one]["status"] for one in ("tcp", "token", "data")] == ["ok"] * 3
        offline = diagnosed("--offline", env=user(agent))
        assert offline["agent"]["status"] == "ok", "a socket of the machine"
    # At most three requests for the first, and no token for the second.
    assert (sandbox.stats["token_requests"], sandbox.stats["data_requests"]) == (1, 2)


@pytest.mark.parametrize("says_whose", [True, False])
def test_no_agent_is_the_first_fail_and_nothing_is_sent(sandbox, tmp_path, says_whose):
    address = f"unix:{tmp_path}/none.sock"
    if says_whose:
        address += f"#{sandbox.base_url}#integration-1"
    checks = diagnosed(env=user(address), status=4, first="agent")
    assert checks["agent"]["error"] == "AgentUnavailable"
    assert "siteline agent" in checks["agent"]["do"]
    assert {checks[one]["seen"] for one in ("key", "ledger", "tcp", "token")} == {"agent failed"}
    assert sandbox.stats["token_requests"] == 0


def test_an_agent_of_another_subject_is_the_first_fail(sandbox, client, tmp_path):
    with siteline.Agent(client, listen=f"unix:{tmp_path}/a/s") as agent:
        place = agent.address.split("#")[0]
        wrong = f"{place}#{sandbox.base_url}#another"
        checks = diagnosed(env=user(wrong), status=2, first="agent")
        assert client.subject in checks["agent"]["seen"]
        assert os.path.exists(path_of(agent.address))
    assert sandbox.stats["token_requests"] == 0


def test_an_object_of_the_program_is_looked_at_through_its_agent(sandbox, client):
    with (
        siteline.Agent(client) as agent,
        siteline.Client(sandbox.base_url, agent=agent.address) as one,
    ):
        diagnosis = siteline.doctor(one)
    assert diagnosis.ok
    assert {check.id: check.status for check in diagnosis.checks}["agent"] == "ok"
    assert (sandbox.stats["token_requests"], sandbox.stats["data_requests"]) == (1, 1)
