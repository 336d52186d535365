"""`siteline agent`: many processes, one exchange, one count."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from kit import agents, systems
from kit.agents import ONE_PAGE, READER, agent_process, ask, printed, user_of
from kit.command import environment, run_command, run_here, start_command
from kit.secret_forms import found
from kit.waiting import wait_until

pytestmark = [pytest.mark.once, systems.SIGNALS, pytest.mark.sandbox(now=None)]


@pytest.fixture
def folder():
    """A folder with a short path, for sockets."""
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
    """Returns the count of the ledger after the agent has ended."""
    return sandbox.client(ledger=env["SITELINE_LEDGER"]).allowance.used


# Each reader is a fork of a process that has imported the package.
FORKS = """
import os, siteline
def read():
    with siteline.Client() as client:
        scan = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
                           interval="1h", page_size=30)
        assert len(scan.collect()) == 72
def forked():
    if (child := os.fork()) == 0:
        try:
            read()
            os._exit(0)
        finally:
            os._exit(1)
    return child
failed = 0
for _ in range(10):
    for child in [forked() for _ in range({number} // 10)]:
        failed += os.waitpid(child, 0)[1] != 0
print(failed)
"""


@pytest.mark.sandbox(now=None, token_rate=30)
@pytest.mark.parametrize(
    ("after_another", "forks"), [(3, 20), pytest.param(33, 200, marks=pytest.mark.campaign)]
)
def test_many_processes_share_one_exchange(sandbox, env, after_another, forks):
    with agent_process(env) as (agent, _process):
        done = [printed(ONE_PAGE, user_of(agent)) for _ in range(after_another)]
        assert done == ["72"] * after_another
        assert printed(FORKS.format(number=forks), user_of(agent)) == "0"
        state = ask(agent)[1]
    requests = after_another + 3 * forks
    assert (sandbox.stats.token_requests, sandbox.stats.data_requests) == (1, requests)
    # The first ones ended without closing their client, so nothing was reported of their page.
    assert (state["lent"], state["allowance"]["used"]) == (after_another, requests)
    assert counted(sandbox, env) == requests


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.campaign)])
def test_clients_survive_a_killed_agent(sandbox, env, tmp_path, kills):
    until = tmp_path / "until"
    reads = f"import os\nwhile not os.path.exists({str(until)!r}): list(scan.pages())"
    reader, readers = READER.replace("print(len(scan.collect()))", reads), []

    def signal_all(number):
        for one in readers:
            one.send_signal(number)

    for _ in range(kills):
        with agent_process(env, ended_by="kill") as (agent, _process):
            signal_all(signal.SIGCONT)
            readers = readers or [agents.start(reader, user_of(agent)) for _ in range(3)]
            before = sandbox.stats.data_requests
            wait_until(lambda: sandbox.stats.data_requests > before + 20)  # noqa: B023
            # A busy machine may start the next agent later than the readers would try.
            signal_all(signal.SIGSTOP)
    with agent_process(env):
        signal_all(signal.SIGCONT)
        until.touch()
        ends = [(*one.communicate(timeout=120), one.returncode) for one in readers]
    assert ends == [("", "", 0)] * 3
    sent = sandbox.stats.data_requests
    # Each kill of the agent loses at most the pages that the clients were asking for.
    assert sent <= counted(sandbox, env) <= sent + 2 * 3 * kills
    assert sandbox.stats.token_requests <= kills + 1


def test_a_killed_client_costs_the_pages_under_way(sandbox, env):
    endless = READER.replace("print(len(scan.collect()))", "while True: list(scan.pages())")
    with agent_process(env) as (agent, _process):
        reader = agents.start(endless, user_of(agent))
        wait_until(lambda: sandbox.stats.data_requests > 40)
        reader.kill()
        reader.communicate()
        used = ask(agent)[1]["allowance"]["used"]
        assert sandbox.stats.data_requests <= used <= sandbox.stats.data_requests + 2
        assert printed(ONE_PAGE, user_of(agent)) == "72"
    assert sandbox.stats.token_requests == 1


@systems.PROC
def test_deadline_and_ctrl_c_end_waits(env):
    script = """
import os, pathlib, signal, threading, time
import siteline
client = siteline.Client()
client.discover()
agent = int(os.environ["AGENT_PID"])
os.kill(agent, signal.SIGSTOP)
# A thread of the agent can answer until the kernel has stopped it.
tasks = pathlib.Path(f"/proc/{agent}/task")
while any(") T" not in (task / "stat").read_text() for task in tasks.iterdir()):
    time.sleep(0.01)
day = dict(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z", interval="1h")
try:
    client.scan(**day, deadline="1s").collect()
except siteline.errors.DeadlineExceeded:
    print("deadline")
try:
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    client.scan(**day).collect()
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


@systems.PROC
def test_agent_run_hides_the_key(sandbox, env, tmp_path):
    script = tmp_path / "nightly.py"
    script.write_text(f"import os, sys\n{READER}\nprint(sorted(os.environ))\nsys.exit(7)\n")
    env = {**env, "SITELINE_PASSPHRASE": "", "SITELINE_PASSWORD_COMMAND": ""}
    done = run_command("agent", "run", "--", sys.executable, script, env=env, status=7)
    read, names = done.stdout.splitlines()
    assert read == "72"
    assert "'SITELINE_AGENT'" in names
    for name in ("PRIVATE_KEY", "PASSPHRASE", "PASSWORD_COMMAND", "PRIVATE_KEY_FILE"):
        assert f"'SITELINE_{name}'" not in names
    assert counted(sandbox, env) == sandbox.stats.data_requests == 3
    killed = ["agent", "run", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    assert run_command(*killed, env=env, status=137).stdout == ""
    absent = run_command("agent", "run", "/absent/command", env=env, status=2)
    assert "cannot be run" in absent.stderr


@pytest.mark.parametrize("words", [["serve"], ["run"], ["run", "--"], ["run", "--json", "x"]])
def test_a_wrong_agent_line_is_refused(env, words):
    done = run_here("agent", *words, env=env)
    assert done.returncode == 2
    assert "run" in done.stderr


def test_sigterm_is_passed_to_the_command(env):
    script = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print("begun", flush=True)
while True: signal.pause()
"""
    words = ("agent", "run", "--", sys.executable, "-c", script)
    with start_command(*words, env=env) as process:
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        assert process.wait(60) == 5


@systems.PROC
def test_systemd_hands_its_socket_over(sandbox, env, folder):
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
    options = {"stdout": subprocess.PIPE, "text": True, "env": environment(env)}
    with subprocess.Popen(command, **options) as process:
        line = process.stdout.readline()
        assert line.startswith(f"SITELINE_AGENT=unix:{path}#{sandbox.base_url}#")
        # A unit's user writes only the place.
        assert printed(READER, user_of(f"unix:{path}")) == "72"
        process.terminate()
        assert process.wait(60) == 0
    assert os.path.exists(path), "the socket is systemd's"


@systems.PROC
@pytest.mark.sandbox(now=None, record_wire=True)
def test_agent_and_users_show_no_secret(sandbox, env, key, tmp_path):
    passphrase = "correct horse battery staple"
    key.save(tmp_path / "key.pem", passphrase=passphrase)
    subject = sandbox.enroll(key.public_jwk)
    sandbox.approve(subject)
    del env["SITELINE_PRIVATE_KEY"]
    env |= {"SITELINE_SUBJECT": subject, "SITELINE_PRIVATE_KEY_FILE": str(tmp_path / "key.pem")}
    variables = {**env, "SITELINE_PASSPHRASE": passphrase}
    with start_command("agent", "-vv", env=variables) as process:
        line = process.stdout.readline()
        agent = line.strip().partition("=")[2]
        waits = READER.replace("))\n", "), flush=True)\n") + "input()\n"
        with agents.start(waits, user_of(agent), stdin=subprocess.PIPE) as user:
            assert user.stdout.readline() == "72\n"
            texts = [line, *agents.environ_of(user.pid).values()]
            user.communicate("\n", timeout=60)
        texts += [str(ask(agent)), str(ask(agent, "elsewhere"))]
        process.terminate()
        out, told = process.communicate(timeout=60)
    assert "GET" in told or "POST" in told, "it logs what it does"
    text = "\n".join([*texts, out, told]).encode()
    wire = "\n".join(sandbox.wire)
    [token] = {one.split("\r\n")[0] for one in wire.split("authorization: Bearer ")[1:]}
    [assertion] = {one.split("&")[0] for one in wire.split("client_assertion=")[1:]}
    for secret in (token, assertion, passphrase):
        assert not found(secret.encode(), text)
    # The token is what a lease is for; it does not say how it was got.
    assert "eyJ" not in text.decode()


@systems.PROC
def test_the_process_with_the_key_dumps_no_core(env):
    script = """
import ctypes
from siteline.cli import main
dumps = lambda: ctypes.CDLL(None).prctl(3)  # PR_GET_DUMPABLE
print(dumps(), main(["agent", "run", "true"]), dumps())
"""
    assert printed(script, environment(env)) == "1 0 0"
