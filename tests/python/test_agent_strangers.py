"""An agent rejects users without access before it reads their requests."""

import json
import os
import tempfile
import textwrap

import pytest
import siteline
from kit import systems
from kit.agents import ask
from kit.interpreter import run_script

pytestmark = pytest.mark.skipif(os.name != "posix", reason="agents of this machine have a socket")

STRANGER = 65_534


@pytest.fixture
def agent(client, request):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        listen = f"unix:{folder}/agent.sock"
        with siteline.Agent(client, listen=listen, allow_uids=[request.param]) as agent:
            yield agent


def of_a_stranger(script, agent):
    """Runs a script as another user and returns its output. The script connects with `connect()`.

    The modules are imported first, because the other user may not read them.
    """
    head = f"""
        import json, logging, os, socket, siteline, siteline.errors
        for name in siteline.__all__:
            getattr(siteline, name)
        os.setuid({STRANGER})
        def connect():
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(60)
            s.connect({agent.address.split("#")[0].removeprefix("unix:")!r})
            return s
    """
    return json.loads(run_script(textwrap.dedent(head) + textwrap.dedent(script)))


@systems.ROOT
@pytest.mark.parametrize("agent", [STRANGER - 1], indirect=True)
def test_a_stranger_is_refused_before_anything_is_read(agent):
    script = f"""
        told = []
        for s in [connect() for _ in range(60)]:
            answer = b""
            while more := s.recv(4096):
                answer += more
            told.append(answer.decode())
        try:
            siteline.Client({agent.address.split("#")[1]!r}, agent={agent.address!r}).discover()
        except siteline.errors.ConfigError as error:
            print(json.dumps([len(told), sorted(set(told)), str(error)]))
    """
    count, [told], reason = of_a_stranger(script, agent)
    assert count == 60
    assert "--allow-uid" in json.loads(told)["Err"]["message"]
    assert "--allow-uid" in reason
    assert ask(agent.address)[0] == "Ok"


@systems.ROOT
@pytest.mark.parametrize("agent", [STRANGER], indirect=True)
def test_a_user_who_is_allowed_is_served(agent):
    script = """
        s = connect()
        s.sendall(b'siteline-agent 1 \\n"state"\\n')
        print(json.dumps(s.recv(5).decode()))
    """
    assert of_a_stranger(script, agent) == '{"Ok"'
