"""`siteline agent`: many processes, one exchange, one count."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.agents import (
    ONE_PAGE,
    READER,
    agent_process,
    ask,
    environ_of,
    path_of,
    printed,
    start,
    user_of,
)
from kit.command import COMMAND, environment, run_command
from kit.secret_forms import found
from kit.waiting import wait_until

pytestmark = [pytest.mark.once, systems.SIGNALS, pytest.mark.sandbox(now=None)]


@pytest.fixture
def folder():
    """A folder for sockets, whose paths are short."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture
def env(sandbox, tmp_path, folder):
    """The environment of an agent with a ledger in a file."""
    return {
        **sandbox.env(),
        "SITELINE_LEDGER": str(tmp_path / "ledger.txt"),
        "XDG_RUNTIME_DIR": str(folder),
    }


def counted(sandbox, env):
    """What the ledger says once no agent is there."""
    return sandbox.client(ledger=env["SITELINE_LEDGER"]).allowance.used


@pytest.mark.fault("A2")
@pytest.mark.sandbox(now=None, token_rate=30)
def test_33_short_processes_one_after_another_need_one_exchange(sandbox, env):
    with agent_process(env) as (agent, _process):
        done = [printed(ONE_PAGE, user_of(agent)) for _ in range(33)]
        assert done == ["72"] * 33
        state = ask(agent, "/v1/state")[1]
    assert (sandbox.stats["token_requests"], sandbox.stats["data_requests"]) == (1, 33)
    assert (state["lent"], state["allowance"]["used"]) == (0, 33)
    assert counted(sandbox, env) == 33


@pytest.mark.fault("A2")
def test_200_processes_20_at_once_need_one_exchange_and_count_as_the_service_does(sandbox, env):
    # Each is a fork of one that has imported the package, so that the test takes seconds.
    forks = """
        import os, siteline
        def read():
            client = siteline.Client.from_env()
            with client:
                scan = client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
                                   interval="1h", page_size=30)
                assert len(scan.collect()) == 72
        running, failed, left = 0, 0, 200
        while left or running:
            if left and running < 20:
                if os.fork() == 0:
                    status = 1
                    try:
                        read()
                        status = 0
                    finally:
                        os._exit(status)
                left, running = left - 1, running + 1
                continue
            failed += os.wait()[1] != 0
            running -= 1
        print(failed)
    """
    import textwrap

    with agent_process(env) as (agent, _process):
        assert printed(textwrap.dedent(forks), user_of(agent)) == "0"
        state = ask(agent, "/v1/state")[1]
    assert (sandbox.stats["token_requests"], sandbox.stats["data_requests"]) == (1, 600)
    assert (state["lent"], state["allowance"]["used"]) == (0, 600)
    assert counted(sandbox, env) == 600


@pytest.mark.fault("A3")
def test_an_agent_that_is_killed_and_started_again_counts_never_too_few(sandbox, env):
    endless = READER.replace("print(len(scan.collect()))", "while True: list(scan.pages())")
    kills, readers = 4, []
    for kill in range(kills):
        with agent_process(env, ended_by="kill") as (agent, _process):
            if not readers:
                readers = [start(endless, user_of(agent)) for _ in range(3)]
            before = sandbox.stats["data_requests"]
            wait_until(lambda: sandbox.stats["data_requests"] > before + 20)  # noqa: B023
        assert all(reader.poll() is None for reader in readers), kill
    for reader in readers:
        reader.kill()
        reader.communicate()
    last = -1
    while last != (last := sandbox.stats["data_requests"]):
        time.sleep(0.2)
    used = counted(sandbox, env)
    # Each kill of the agent, and each of a client, loses one batch of each client at most.
    assert last <= used <= last + 16 * len(readers) * (kills + 1)
    assert sandbox.stats["token_requests"] <= kills + 1


@pytest.mark.fault("A8")
def test_a_killed_client_costs_its_batch_at_most(sandbox, env):
    endless = READER.replace("print(len(scan.collect()))", "while True: list(scan.pages())")
    with agent_process(env) as (agent, _process):
        for _ in range(3):
            reader = start(endless, user_of(agent))
            before = sandbox.stats["data_requests"]
            wait_until(lambda: sandbox.stats["data_requests"] > before + 40)  # noqa: B023
            reader.kill()
            reader.communicate()
        used = ask(agent, "/v1/state")[1]["allowance"]["used"]
        assert sandbox.stats["data_requests"] <= used <= sandbox.stats["data_requests"] + 3 * 16
        assert printed(ONE_PAGE, user_of(agent)) == "72"
    assert sandbox.stats["token_requests"] == 1


@pytest.mark.fault("A14")
@systems.PROC
def test_an_agent_that_hangs_is_waited_for_no_longer_than_the_deadline_or_ctrl_c(env):
    script = """
import os, pathlib, signal, threading, time
import siteline
client = siteline.Client.from_env()
client.discover()
agent = int(os.environ["AGENT_PID"])
os.kill(agent, signal.SIGSTOP)
# A thread of the agent can answer until the kernel has stopped it.
tasks = pathlib.Path(f"/proc/{agent}/task")
while any(") T" not in (task / "stat").read_text() for task in tasks.iterdir()):
    time.sleep(0.01)
day = dict(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z", interval="1h")
try:
    client.data(**day, deadline="1s").collect()
except siteline.DeadlineExceeded:
    print("deadline")
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    client.data(**day).collect()
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)
"""
    with agent_process(env) as (agent, process):
        try:
            text = printed(script, user_of(agent, AGENT_PID=str(process.pid)))
        finally:
            process.send_signal(signal.SIGCONT)
    assert text.split() == ["deadline", "interrupted"]


@pytest.mark.fault("A11")
@systems.PROC
def test_a_command_that_is_run_has_the_agent_and_no_key_and_its_status_is_the_end(
    sandbox, env, tmp_path
):
    script = tmp_path / "nightly.py"
    script.write_text(f"import os, sys\n{READER}\nprint(sorted(os.environ))\nsys.exit(7)\n")
    env = {**env, "SITELINE_PASSPHRASE": "", "SITELINE_PASSWORD_COMMAND": ""}
    done = run_command("agent", "run", "--", sys.executable, script, env=env, status=7)
    read, variables = done.stdout.splitlines()
    assert read == "72"
    assert "'SITELINE_AGENT'" in variables
    for name in ("PRIVATE_KEY", "PASSPHRASE", "PASSWORD_COMMAND", "PRIVATE_KEY_FILE"):
        assert f"'SITELINE_{name}'" not in variables
    assert counted(sandbox, env) == sandbox.stats["data_requests"] == 3
    killed = ["agent", "run", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    assert run_command(*killed, env=env, status=137).stdout == ""
    absent = run_command("agent", "run", "/absent/command", env=env, status=2)
    assert "cannot be run" in absent.stderr
    for wrong in (["serve"], ["run"], ["run", "--"], ["run", "--json", "x"]):
        told = run_command("agent", *wrong, env=env, status=2).stderr
        assert "run" in told


def test_a_command_is_asked_to_end_where_the_agent_is(env):
    script = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print("begun", flush=True)
time.sleep(600)
"""
    command = [*COMMAND, "agent", "run", "--", sys.executable, "-c", script]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(env)
    ) as process:
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        assert process.wait(60) == 5


@pytest.mark.fault("A7")
def test_the_second_agent_at_a_place_is_told_of_the_first(env, folder):
    with agent_process(env) as (agent, _process):
        assert path_of(agent) == f"{folder}/siteline/agent.sock"
        told = run_command("agent", env=env, status=2).stderr
        assert "another agent does" in told
    assert not (folder / "siteline").exists()


@pytest.mark.fault("A7")
@systems.PROC
def test_a_socket_unit_hands_its_socket_over(sandbox, env, folder):
    # As systemd does it: descriptor 3, and the number of the process that is to take it.
    script = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, "-m", "siteline", "agent", "--listen", "systemd"])
"""
    path = f"{folder}/systemd.sock"
    command = [sys.executable, "-c", script, path]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(env)
    ) as process:
        line = process.stdout.readline()
        assert line.startswith(f"SITELINE_AGENT=unix:{path}#{sandbox.base_url}#")
        # What a unit's user writes: the place alone.
        assert printed(READER, user_of(f"unix:{path}")) == "72"
        process.terminate()
        assert process.wait(60) == 0
    assert os.path.exists(path), "the socket is systemd's"


@pytest.mark.fault("A11")
@systems.PROC
def test_no_key_or_assertion_is_shown_by_the_agent_or_its_users(tmp_path, folder):
    key = siteline.PrivateKey.generate(2048)
    key.save(tmp_path / "key.pem", passphrase="correct horse battery staple")
    with siteline.Sandbox(record_wire=True) as sandbox:
        subject = sandbox.enroll(key.public_jwk)
        sandbox.approve(subject)
        env = environment(
            {
                **sandbox.env(),
                "XDG_RUNTIME_DIR": str(folder),
                "SITELINE_SUBJECT": subject,
                "SITELINE_PRIVATE_KEY_FILE": str(tmp_path / "key.pem"),
                "SITELINE_PASSPHRASE": "correct horse battery staple",
            }
        )
        del env["SITELINE_PRIVATE_KEY"]
        texts = []
        with subprocess.Popen(
            [*COMMAND, "agent", "-vv"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        ) as process:
            line = process.stdout.readline()
            agent = line.strip().partition("=")[2]
            waits = READER.replace("))\n", "), flush=True)\n") + "input()\n"
            users = [
                subprocess.Popen(
                    [sys.executable, "-c", waits],
                    env=user_of(agent),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for _ in range(2)
            ]
            for user in users:
                assert user.stdout.readline() == "72\n"
                texts += environ_of(user.pid).values()
                user.communicate("\n")
            texts += [line, str(ask(agent, "/v1/state")), str(ask(agent, "/v1/elsewhere"))]
            process.terminate()
            out, told = process.communicate(timeout=60)
        wire = "\n".join(sandbox.wire)
    assert "GET" in told or "POST" in told, "it logs what it does"
    text = "\n".join([*texts, out, told]).encode()
    [token] = {one.split("\r\n")[0] for one in wire.split("authorization: Bearer ")[1:]}
    [assertion] = {one.split("&")[0] for one in wire.split("client_assertion=")[1:]}
    for secret in (token, assertion, "correct horse battery staple"):
        assert not found(secret.encode(), text)
    # The token is what a lease is for; it does not say how it was got.
    assert "eyJ" not in text.decode()


@pytest.mark.fault("A11")
@systems.PROC
def test_the_process_with_the_key_writes_no_core_dump(env):
    script = """
import ctypes
from siteline.cli import main
dumps = lambda: ctypes.CDLL(None).prctl(3)  # PR_GET_DUMPABLE
print(dumps(), main(["agent", "run", "true"]), dumps())
"""
    assert printed(script, environment(env)) == "1 0 0"
