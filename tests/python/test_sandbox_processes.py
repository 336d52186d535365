"""The sandbox for code in other processes: its variables carry its clock."""

import contextlib
import gc
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import NOW

CLOCK = "SITELINE_SANDBOX_CLOCK"
DAY = {
    "site": "S1",
    "line": "L2",
    "interval": "1h",
    "start": "2026-11-01T00:00Z",
    "end": "2026-11-02T00:00Z",
}
READ = f"""
    import siteline
    with siteline.Client.from_env() as client:
        print(len(client.data(**{DAY}).collect()), client.allowance.resets_at.date())
"""
SERVE = """
    import os, sys
    import siteline
    with siteline.Client.from_env() as client:
        for line in sys.stdin:
            client.discover()
            print(client.allowance.resets_at.isoformat(), flush=True)
"""


def clock_file(environment):
    return Path(environment[CLOCK].partition("#")[2])


def midnight_after(time):
    return (time + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)


def start(script, *options, **environment):
    """A process that runs the script, with pipes."""
    return subprocess.Popen(
        [sys.executable, *options, "-c", textwrap.dedent(script)],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def reader(sandbox):
    """A process that makes one request for each line that it gets, and prints when its day ends."""
    child = start(SERVE, **sandbox.env())

    def ask():
        child.stdin.write("\n")
        child.stdin.flush()
        return datetime.fromisoformat(child.stdout.readline().strip())

    with child:
        try:
            yield ask
        finally:
            child.stdin.close()


@pytest.fixture
def set_variables(monkeypatch):
    def set_all(environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    return set_all


def test_r19_unmodified_code_in_another_process_reads_a_sandbox_with_a_fixed_time(sandbox):
    assert run_script(READ, environment=sandbox.env()) == "144 2026-11-21"
    sandbox.clock.advance("400d")
    assert run_script(READ, environment=sandbox.env()).endswith(" 2027-12-26")
    assert sandbox.stats["refusals"] == []


def test_r19_the_default_fixture_serves_other_processes(siteline_sandbox):
    assert run_script(READ, environment=siteline_sandbox.env()) == "144 2026-11-21"
    assert siteline_sandbox.stats["refusals"] == []


def test_r19_unmodified_code_in_this_process_has_the_clock_of_the_sandbox(
    siteline_sandbox, siteline_client, set_variables
):
    set_variables(siteline_sandbox.env())
    with siteline.Client.from_env() as client:
        siteline_sandbox.fault(on="data", status=503, retry_after=30)
        assert len(client.data(**DAY).collect()) == 144
        waited = siteline_sandbox.clock.now() - datetime.fromisoformat(NOW)
        assert timedelta(seconds=30) <= waited < timedelta(minutes=5)


@pytest.mark.parametrize(
    "make",
    [
        "siteline.Client(url, credential=credential)",
        "siteline.AsyncClient(url, credential=credential)._client",
        "siteline.Client.from_profile('default')",
    ],
)
def test_r19_every_way_to_make_a_client_has_the_clock(sandbox, tmp_path, make):
    key = siteline.PrivateKey.generate(2048)
    key.save(tmp_path / "key.pem")
    subject = sandbox.enroll(key.public_jwk)
    (tmp_path / "config.toml").write_text(
        f'[default]\nbase_url = "{sandbox.base_url}"\nsubject = "{subject}"\n'
        'private_key_file = "key.pem"\n'
    )
    script = f"""
        import siteline
        url = {sandbox.base_url!r}
        credential = siteline.Credential({subject!r}, {str(tmp_path / "key.pem")!r})
        print(len({make}.data(**{DAY}).collect()))
    """
    environment = {CLOCK: sandbox.env()[CLOCK], "SITELINE_CONFIG": str(tmp_path / "config.toml")}
    assert run_script(script, environment=environment) == "144"


@pytest.mark.parametrize("now", [NOW, None], ids=["fixed", "running"])
def test_r19_a_process_sees_each_advance_while_it_runs(now):
    with siteline.Sandbox(now=now) as sandbox, reader(sandbox) as ask:
        for _ in range(3):
            day_ends = midnight_after(sandbox.clock.now())
            assert ask() in {day_ends, midnight_after(sandbox.clock.now())}
            sandbox.clock.advance("3d")
        assert sandbox.stats["refusals"] == []
        assert sandbox.stats["tokens_issued"] == 3, "each token had expired"


def test_r19_a_pause_in_one_process_moves_the_clock_of_all(sandbox):
    sandbox.fault(on="discovery", status=503, retry_after=60)
    with reader(sandbox) as ask, reader(sandbox) as other:
        other()
        waited = sandbox.clock.now() - datetime.fromisoformat(NOW)
        assert timedelta(minutes=1) <= waited < timedelta(minutes=5)
        ask()
    assert sandbox.stats["refusals"] == []


@systems.FORK
def test_r19_a_forked_process_shares_the_clock(sandbox):
    script = """
        import os, siteline
        client = siteline.Client.from_env()
        client.discover()
        ready, go = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(ready, 1)
            client.discover()
            print(client.allowance.resets_at.date(), flush=True)
            os._exit(0)
        siteline.Client.from_env().discover()
        print("made", flush=True)
        print(input(), flush=True)
        os.write(go, b"x")
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    child = start(script, *FORK_WITH_THREADS, **sandbox.env())
    assert child.stdout.readline() == "made\n"
    sandbox.clock.advance("3d")
    printed, _ = child.communicate("moved\n", timeout=60)
    assert printed.split() == ["moved", "2026-11-24", "0"]


@systems.SIGNALS
def test_r19_where_the_sandbox_was_killed_its_clients_go_on_and_find_no_service(set_variables):
    script = f"""
        import json, signal, siteline
        sandbox = siteline.Sandbox(now="{NOW}")
        print(json.dumps(sandbox.env()), flush=True)
        signal.pause()
    """
    with start(script) as parent:
        environment = json.loads(parent.stdout.readline())
        set_variables(environment)
        client = siteline.Client.from_env(tries=2)
        client.discover()
        parent.send_signal(signal.SIGKILL)
    for gone in (False, True):
        with pytest.raises(siteline.TransportError):
            client.discover()
        assert client.allowance.resets_at == datetime(2026, 11, 21, tzinfo=UTC)
        if not gone:
            clock_file(environment).unlink()
            clock_file(environment).parent.rmdir()


@systems.MODES
def test_r19_the_file_of_the_clock_ends_with_the_sandbox(sandbox, set_variables):
    environment = sandbox.env()
    file = clock_file(environment)
    assert sandbox.env() == environment
    assert file.read_text().startswith("siteline-clock 1 stands 2026-11-20")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    sandbox.clock.advance("1d")
    sandbox.close()
    assert not file.parent.exists()
    sandbox.clock.advance("1d")
    assert sandbox.clock.now() == datetime(2026, 11, 22, tzinfo=UTC)
    set_variables(environment)
    with pytest.raises(siteline.ConfigError, match="cannot be read") as caught:
        siteline.Client.from_env()
    assert "sandbox.env()" in caught.value.hint
    dropped = siteline.Sandbox()
    file = clock_file(dropped.env())
    del dropped
    gc.collect()
    assert not file.exists()


def test_r19_a_process_that_ends_without_closing_its_sandbox_leaves_no_file():
    script = """
        import builtins, os, siteline
        builtins.kept = siteline.Sandbox()
        print(kept.env()["SITELINE_SANDBOX_CLOCK"])
    """
    file = Path(run_script(script).partition("#")[2])
    assert file.name == "clock"
    assert not file.parent.exists()


@systems.FORK
def test_r19_a_forked_child_that_closes_or_ends_leaves_the_file_to_its_parent():
    script = """
        import os, sys, siteline
        sandbox = siteline.Sandbox()
        file = sandbox.env()["SITELINE_SANDBOX_CLOCK"].partition("#")[2]
        for close in (True, False):
            child = os.fork()
            if child == 0:
                if close:
                    sandbox.close()
                del sandbox
                sys.exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            # The next child would print what is still in the buffer.
            print(status, os.path.exists(file), flush=True)
        sandbox.close()
        print(os.path.exists(file))
    """
    printed = run_script(script, *FORK_WITH_THREADS)
    assert printed.splitlines() == ["0 True", "0 True", "False"]


def test_r20_the_clock_is_for_the_address_of_its_sandbox_alone(sandbox, set_variables):
    environment = sandbox.env()
    by_name = environment["SITELINE_BASE_URL"].replace("127.0.0.1", "localhost")
    set_variables({**environment, "SITELINE_BASE_URL": by_name})
    client = siteline.Client.from_env(audience=f"{sandbox.base_url}/api/customer/oauth/token")
    today = datetime.now(UTC)
    assert client.allowance.resets_at in {midnight_after(today), midnight_after(datetime.now(UTC))}
    with siteline.Sandbox(now="2020-01-01T00:00Z") as other:
        set_variables({**other.env(), CLOCK: environment[CLOCK]})
        with pytest.raises(siteline.ClockSkewError) as caught:
            siteline.Client.from_env().discover()
        assert "set all variables of sandbox.env(), or pass clock=sandbox.clock" in str(
            caught.value.hint
        )
        siteline.Client.from_env(clock=other.clock).discover()


def test_r20_a_client_with_the_clock_of_a_sandbox_counts_in_memory_and_says_so_once(
    sandbox, set_variables, caplog, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    set_variables(sandbox.env())
    with caplog.at_level(logging.INFO, "siteline.ledger"):
        client = siteline.Client.from_env()
        client.data(**DAY).collect()
        client.data(**DAY).collect()
    records = [record for record in caplog.records if record.name == "siteline.ledger"]
    (record,) = [record for record in records if CLOCK in record.getMessage()]
    assert record.levelno == logging.INFO
    assert "counted in memory" in record.getMessage()
    assert sandbox.base_url in record.getMessage()
    assert list(tmp_path.iterdir()) == []


def test_r20_a_ledger_does_not_count_by_the_clock_of_a_sandbox(
    sandbox, set_variables, tmp_path, monkeypatch
):
    ledger = tmp_path / "ledger.txt"
    set_variables(sandbox.env())
    with pytest.raises(siteline.ConfigError, match="cannot count by the clock of a sandbox"):
        siteline.Client.from_env(ledger=ledger)
    monkeypatch.setenv("SITELINE_LEDGER", str(ledger))
    with pytest.raises(siteline.ConfigError, match="SITELINE_LEDGER"):
        siteline.Client.from_env()
    assert not ledger.exists()
    with siteline.Sandbox() as running:
        set_variables(running.env())
        siteline.Client.from_env().discover()
        assert ledger.exists(), "such a sandbox shows the machine's time"
        running.clock.advance("1s")
        with pytest.raises(siteline.ConfigError):
            siteline.Client.from_env()


@pytest.mark.parametrize("now", [NOW, None], ids=["fixed", "running"])
def test_r19_a_client_with_the_clock_of_a_sandbox_can_be_pickled(now, set_variables):
    with siteline.Sandbox(now=now) as sandbox:
        set_variables(sandbox.env())
        again = pickle.loads(pickle.dumps(siteline.Client.from_env()))
        sandbox.clock.advance("3d")
        again.discover()


def test_r21_sandboxes_of_a_process_share_a_key_and_nothing_else():
    with siteline.Sandbox(now=NOW, record_wire=True) as one, siteline.Sandbox(now=NOW) as other:
        first, second = one.env(), other.env()
        assert first["SITELINE_PRIVATE_KEY"] == second["SITELINE_PRIVATE_KEY"]
        assert first["SITELINE_SUBJECT"] != second["SITELINE_SUBJECT"]
        key = siteline.PrivateKey(first["SITELINE_PRIVATE_KEY"])
        fresh = siteline.PrivateKey.generate(2048)
        assert fresh.thumbprint not in {
            key.thumbprint,
            siteline.PrivateKey.generate(2048).thumbprint,
        }
        one.client().discover()
        other.client().discover()
        assert one.stats["tokens_issued"] == other.stats["tokens_issued"] == 1
        credential = siteline.Credential(first["SITELINE_SUBJECT"], key)
        stranger = siteline.Client(other.base_url, credential=credential, clock=other.clock)
        with pytest.raises(siteline.AuthenticationError):
            stranger.discover()
        assert "no enrolled subject" in other.stats["refusals"][0]
        revoked = other.env()["SITELINE_SUBJECT"]
        other.revoke(revoked)
        one.client().discover()
