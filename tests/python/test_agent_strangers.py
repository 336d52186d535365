"""An agent rejects users without access before it reads their requests."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap

import pytest
import siteline
from kit import systems
from kit.agents import ask

pytestmark = pytest.mark.skipif(os.name != "posix", reason="agents of this machine have a socket")

STRANGER = 65_534


@pytest.fixture
def agent(client):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        listen = f"unix:{folder}/agent.sock"
        with siteline.Agent(client, listen=listen, allow_uids=[STRANGER - 1]) as agent:
            yield agent


def of_a_stranger(script, agent):
    """Runs a script as another user and returns its output. The script connects with `connect()`.

    The modules are imported first, because the other user may not read them.
    """
    head = f"""
        import contextlib, json, logging, os, socket, siteline, siteline.errors
        for name in siteline.__all__:
            getattr(siteline, name)
        os.setuid({STRANGER})
        def connect():
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(60)
            s.connect({agent.address.split("#")[0].removeprefix("unix:")!r})
            return s
    """
    text = textwrap.dedent(head) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@systems.ROOT
def test_a_stranger_is_refused_before_anything_is_read(agent):
    script = f"""
        told = []
        for s in [connect() for _ in range(60)]:
            answer = b""
            while more := s.recv(4096):
                answer += more
            told.append(answer.decode())
        head = "POST /v1/page HTTP/1.1\\r\\nhost: siteline-agent\\r\\nsiteline-agent: 1\\r\\n"
        sent = 0
        for _ in range(5):
            s = connect()
            with contextlib.suppress(OSError):
                s.sendall(f"{{head}}content-length: 1000000\\r\\n\\r\\n".encode())
                for _ in range(100):
                    sent += s.send(b" " * 10_000)
        reasons = []
        for _ in range(3):
            try:
                siteline.Client({agent.address.split("#")[1]!r}, agent={agent.address!r}).discover()
            except siteline.errors.ConfigError as error:
                reasons.append(str(error))
        print(json.dumps([len(told), sorted(set(told)), sent, reasons]))
    """
    count, [told], sent, reasons = of_a_stranger(script, agent)
    head, _, body = told.partition("\r\n\r\n")
    assert (count, head.split()[1]) == (60, "409")
    assert "--allow-uid" in json.loads(body)["error"]["message"]
    # The socket buffers accept some bytes, even if the agent reads none.
    assert sent < 5 * 500_000
    assert len(reasons) == 3
    assert all("--allow-uid" in reason for reason in reasons)
    assert ask(agent.address, "/v1/state")[0] == 200


@systems.ROOT
def test_a_user_who_is_allowed_is_served(client):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        listen = f"unix:{folder}/agent.sock"
        with siteline.Agent(client, listen=listen, allow_uids=[STRANGER]) as agent:
            script = """
                s = connect()
                head = ["GET /v1/state HTTP/1.1", "host: siteline-agent", "siteline-agent: 1"]
                s.sendall("\\r\\n".join([*head, "", ""]).encode())
                print(json.dumps(s.recv(12).decode()))
            """
            assert of_a_stranger(script, agent) == "HTTP/1.1 200"
