"""The sandbox for code in other processes. Its variables contain its clock."""

import gc
import logging
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.doctor import sandbox_profile
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import HOURLY, NOW

CLOCK = "SITELINE_SANDBOX_CLOCK"
DAY = {**HOURLY, "line": "L2"}
READ = f"""
    import siteline
    with siteline.Client() as client:
        print(len(client.scan(**{DAY}).collect()), client.allowance.resets_at.date())
"""


def clock_file(environment):
    return Path(environment[CLOCK].partition("#")[2])


def test_r19_unmodified_code_in_another_process_reads_a_sandbox(siteline_sandbox):
    assert run_script(READ, environment=siteline_sandbox.env()) == "144 2026-11-21"
    siteline_sandbox.clock.advance("400d")
    assert run_script(READ, environment=siteline_sandbox.env()).endswith(" 2027-12-26")
    assert not siteline_sandbox.stats.refusals


@pytest.mark.parametrize("now", [NOW, None], ids=["fixed", "running"])
def test_r19_unmodified_code_in_this_process_has_the_clock(now, set_variables):
    with siteline.Sandbox(now=now) as sandbox:
        set_variables(sandbox.env())
        http = siteline.types.Http(max_retry_after="1h")
        with siteline.Client(http=http, labels=False) as client:
            begin = sandbox.clock.now()
            sandbox.fault(on="data", status=503, retry_after=3_000)
            assert len(client.scan(**DAY).collect()) == 144
            assert sandbox.clock.now() - begin >= timedelta(seconds=3_000)
            again = pickle.loads(pickle.dumps(client))
        sandbox.clock.advance("3d")
        again.discover()


def test_r19_every_way_to_make_a_client_has_the_clock(sandbox, tmp_path):
    environment = sandbox_profile(sandbox, tmp_path)
    script = f"""
        import siteline
        url, key = {sandbox.base_url!r}, {str(tmp_path / "plant-a.pem")!r}
        credential = siteline.Credential({sandbox.env()["SITELINE_SUBJECT"]!r}, key)
        for client in (
            siteline.Client(url, credential=credential),
            siteline.Client._over(siteline.AsyncClient(url, credential=credential)._handle),
            siteline.Client(profile="default"),
        ):
            print(len(client.scan(**{DAY}).collect()))
    """
    assert run_script(script, environment=environment).split() == ["144"] * 3


@systems.FORK
def test_r19_a_forked_process_shares_the_clock_and_leaves_its_file():
    script = f"""
        import builtins, os, sys, siteline
        builtins.kept = sandbox = siteline.Sandbox(now="{NOW}")
        os.environ.update(sandbox.env())
        client = siteline.Client()
        client.discover()
        file = os.environ["{CLOCK}"].partition("#")[2]
        print(file)
        for close in (True, False):
            sys.stdout.flush()
            ready, go = os.pipe()
            child = os.fork()
            if child == 0:
                os.read(ready, 1)
                client.discover()
                print(client.allowance.resets_at.date(), flush=True)
                if close:
                    sandbox.close()
                del sandbox
                sys.exit(0)
            sandbox.clock.advance("3d")
            os.write(go, b"x")
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(status, os.path.exists(file), flush=True)
    """
    file, *printed = run_script(script, *FORK_WITH_THREADS).splitlines()
    assert printed == ["2026-11-24", "0 True", "2026-11-27", "0 True"]
    assert Path(file).name == "clock"
    assert not Path(file).parent.exists(), "the process ended without closing its sandbox"


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
    with pytest.raises(siteline.errors.ConfigError, match="could not be read") as caught:
        siteline.Client()
    assert "sandbox.env()" in caught.value.hint
    dropped = siteline.Sandbox()
    file = clock_file(dropped.env())
    del dropped
    gc.collect()
    assert not file.exists()


def test_r20_a_client_with_the_clock_of_a_sandbox_counts_in_memory_and_says_so_once(
    sandbox, set_variables, caplog, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    set_variables(sandbox.env())
    with caplog.at_level(logging.INFO, "siteline.ledger"):
        client = siteline.Client()
        client.scan(**DAY).collect()
        client.scan(**DAY).collect()
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
    with pytest.raises(siteline.errors.ConfigError, match="cannot count by the clock of a sandbox"):
        siteline.Client(ledger=ledger)
    monkeypatch.setenv("SITELINE_LEDGER", str(ledger))
    with pytest.raises(siteline.errors.ConfigError, match="SITELINE_LEDGER"):
        siteline.Client()
    assert not ledger.exists()
    with siteline.Sandbox() as running:
        set_variables(running.env())
        siteline.Client().discover()
        assert ledger.exists(), "such a sandbox shows the machine's time"
        running.clock.advance("1s")
        with pytest.raises(siteline.errors.ConfigError):
            siteline.Client()
