"""`siteline sandbox`: the service in a process of its own."""

import contextlib
import json
import os
import shlex
import signal
import stat
import sys
from pathlib import Path

import pandas as pd
import pytest
import siteline
from kit import systems
from kit.command import run_command, run_json, run_program, start_command
from kit.interpreter import run_script
from kit.ranges import NOW
from kit.tls_service import unused_port
from siteline.cli import data_file

PACKAGES = ("polars", "pandas")
ENDING = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

pytestmark = systems.SIGNALS


@contextlib.contextmanager
def serving(*arguments, ended_by="SIGTERM"):
    """Runs `siteline sandbox` until the block ends. Yields its document and its process."""
    # The first line must arrive although Python buffers the output to a pipe.
    buffered = {"PYTHONUNBUFFERED": ""}
    with start_command("sandbox", "--json", *arguments, env=buffered) as process:
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            yield json.loads(line), process
            process.send_signal(getattr(signal, ended_by))
            rest, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, rest, told) == (0, "", "")


def variables_of(path):
    lines = [line for line in Path(path).read_text().splitlines() if not line.startswith("#")]
    pairs = [line.partition("=") for line in lines]
    return {name: "".join(shlex.split(value)) for name, _, value in pairs}


def in_shell(env_file, script):
    """Returns the output of a Python script in a shell that has read the file."""
    line = 'set -a; . "$1"; set +a; exec "$2" -c "$3"'
    done = run_program("/bin/sh", "-c", line, "sh", env_file, sys.executable, script)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize("signals", [100, pytest.param(1_000, marks=pytest.mark.campaign)])
def test_a_signal_always_ends_the_wait(signals):
    # A `threading.Event` that a handler sets hangs in about one of a hundred runs.
    script = f"""
        import os, random, signal, threading, time
        from siteline.cli.stopping import Stop

        def ask(after):
            time.sleep(after)
            os.kill(os.getpid(), signal.SIGHUP)

        chance = random.Random(7)
        for _ in range({signals}):
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            with Stop() as stop:
                asking = threading.Thread(target=ask, args=[chance.uniform(0, 3e-4)])
                asking.start()
                stop.wait(lambda: time.sleep(1.0))
                asking.join()
        print("ended")
    """
    assert run_script(script) == "ended"


def test_the_env_file_connects_a_shell():
    script = """
import siteline
client = siteline.Client()
print(client.base_url, client.allowance.resets_at.date())
day = {"site": "S1", "start": "2026-11-01", "end": "2026-11-02"}
print(next(client.scan(**day, interval="1h").records())["value"])
try:
    client.scan(**day, interval="5m", page_size=1_000).collect()
except siteline.errors.AllowanceExhausted as error:
    print(error.retry_at.date())
"""
    with serving("--now", NOW, "--daily-allowance", 2, "--seed", 3) as (document, process):
        assert (document["command"], document["pid"]) == ("sandbox", process.pid)
        found = variables_of(document["env_file"])
        text = Path(document["env_file"]).read_text()
        address, day, value, retry = in_shell(document["env_file"], script)
    names = ["BASE_URL", "PRIVATE_KEY", "SANDBOX_CLOCK", "SUBJECT"]
    assert sorted(found) == [f"SITELINE_{name}" for name in names]
    assert f"SITELINE_BASE_URL={document['base_url']}\n" in text, "without quotes"
    assert (address, day, retry) == (document["base_url"], "2026-11-21", "2026-11-21")
    with siteline.Sandbox(now=NOW, seed=3) as sandbox:
        client = sandbox.client()
        scan = client.scan(site="S1", start="2026-11-01", end="2026-11-02", interval="1h")
        assert float(value) == next(scan.records())["value"]


@systems.MODES
@pytest.mark.parametrize("ended_by", ENDING)
def test_the_key_goes_at_the_end(ended_by):
    with serving(ended_by=ended_by) as (document, _):
        path = Path(document["env_file"])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        clock = Path(variables_of(path)["SITELINE_SANDBOX_CLOCK"].partition("#")[2])
        assert clock.exists()
        assert "PRIVATE" not in json.dumps(document)
    assert not path.parent.exists()
    assert not clock.exists()


def test_a_named_env_file_is_removed(tmp_path):
    path = tmp_path / "sandbox.env"
    with contextlib.ExitStack() as second:
        with serving("--env-file", path) as (document, _):
            assert document["env_file"] == str(path)
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert os.listdir(tmp_path) == ["sandbox.env"]
            document, _ = second.enter_context(serving("--env-file", path))
        # The first leaves the file of the second.
        assert variables_of(path)["SITELINE_BASE_URL"] == document["base_url"]
    assert os.listdir(tmp_path) == []


def test_the_file_of_a_killed_sandbox_is_replaced(tmp_path):
    path = tmp_path / "sandbox.env"
    with start_command("sandbox", "--env-file", path) as process:
        process.stdout.readline()
        process.kill()
        process.communicate()
    assert path.exists()
    port = str(unused_port())
    with serving("--env-file", path, "--port", port) as (document, _):
        assert variables_of(path)["SITELINE_BASE_URL"] == document["base_url"]
        assert document["base_url"] == f"http://127.0.0.1:{port}"


def test_no_other_file_is_replaced(tmp_path):
    mine, link = tmp_path / "profile", tmp_path / "link"
    mine.write_text("export PATH\n")
    link.symlink_to(mine)
    for path in (mine, link, tmp_path):
        told = run_command("sandbox", "--env-file", path, status=2).stderr
        assert "is not replaced" in told
    assert mine.read_text() == "export PATH\n"
    missing = tmp_path / "nowhere" / "env"
    told = run_command("sandbox", "--env-file", missing, status=2).stderr
    assert told == f"siteline: {missing}: No such file or directory\n"
    assert sorted(os.listdir(tmp_path)) == ["link", "profile"]


def test_a_second_key_can_be_enrolled(key, tmp_path):
    jwk, mine = tmp_path / "mine.jwk", tmp_path / "mine.pem"
    jwk.write_text(json.dumps({"public_jwk": key.public_jwk}))
    key.save(mine)
    with serving("--now", NOW, "--enroll", jwk) as (document, _):
        found = variables_of(document["env_file"])
        subject = document["subjects"][str(jwk)]
        assert subject != found["SITELINE_SUBJECT"]
        del found["SITELINE_PRIVATE_KEY"]
        env = {**found, "SITELINE_SUBJECT": subject, "SITELINE_PRIVATE_KEY_FILE": str(mine)}
        assert run_json("doctor", env=env)["subject"] == subject
    jwk.write_text("[]")
    assert "not a JWK" in run_command("sandbox", "--enroll", jwk, status=2).stderr


READINGS = """timestamp,value,machine_id
2026-11-01 00:00:00,1.5,007
2026-11-01 00:00:30,2.5,007
2026-11-01 00:05:00,4.0,007
"""


@pytest.fixture
def readings(tmp_path):
    """Readings with times without a zone, and with ids that look like numbers."""
    path = tmp_path / "readings.csv"
    path.write_text(READINGS)
    return path


def test_a_csv_file_replaces_the_plant(readings):
    script = """
import siteline
client = siteline.Client()
for one in client.scan(site="S9", line="L7", start="2026-11-01", end="2026-11-02").records():
    print(one["timestamp"].isoformat(), one["machine_id"], one["value"], one["tag_guid"])
"""
    given = ("--bucket", "5m", "--site", "S9", "--line", "L7", "--tag", "speed", "--utc")
    with serving("--now", NOW, "--data", readings, *given) as (document, _):
        assert document["rows"] == 3
        printed = in_shell(document["env_file"], script)
    assert printed == [
        *("2026-11-01T00:00:00+00:00", "007", "2.0", "speed"),
        *("2026-11-01T00:05:00+00:00", "007", "4.0", "speed"),
    ]


def test_wrong_options_are_usage_errors(readings, tmp_path):
    broken, wide = tmp_path / "broken.parquet", tmp_path / "wide.csv"
    broken.write_bytes(b"PAR1 and no more")
    # polars would end the process.
    wide.write_text("timestamp,value\n2026-11-18T00:00:00Z,1\n", "utf-16")
    for arguments, told in (
        (("--now", "soon"), "is not an ISO 8601 time"),
        (("--bucket", "5m"), "--bucket needs --data FILE"),
        (("--utc",), "--utc needs --data"),
        (("--daily-allowance", "-1"), "is not a whole number"),
        (("--data", tmp_path / "none.csv"), "No such file"),
        (("--data", broken), f"siteline: {broken}: it cannot be read as Parquet: "),
        (("--data", wide), "it cannot be read as CSV: it contains NUL bytes"),
        (("--data", readings, "--utc"), "bucket"),
        (("--data", readings, "--bucket", "5m"), "--utc reads times without a zone as UTC."),
    ):
        assert told in run_command("sandbox", *arguments, status=2).stderr
    document = run_json("sandbox", "--now", "soon", status=2)
    assert document["error"]["type"] == "QueryError"


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(("kind", "zone"), [("csv", None), ("csv", "+01:00"), ("parquet", "UTC")])
def test_each_package_reads_each_file(shared_sandbox, readings, monkeypatch, package, kind, zone):
    frame = pd.read_csv(readings, dtype={"machine_id": "str"}, parse_dates=["timestamp"])
    frame["timestamp"] = frame["timestamp"].dt.tz_localize(zone)
    path = readings.with_suffix(f".{kind}")
    getattr(frame, f"to_{kind}")(path, index=False)
    monkeypatch.setattr(data_file, "_reader", lambda: getattr(data_file, f"_{package}"))
    table = data_file.read_table(str(path), utc=True)
    assert type(table).__module__.partition(".")[0] == package
    line = f"{package} {kind} {zone}"
    assert shared_sandbox.load(table, bucket="5m", line=line) == 3
    points = list(shared_sandbox.expected(interval="5m", line=line).records())
    begins = "2026-10-31T23:00" if zone == "+01:00" else "2026-11-01T00:00"
    assert points[0]["timestamp"].isoformat()[:16] == begins
    assert [(one["machine_id"], one["value"]) for one in points] == [("007", 2.0), ("007", 4.0)]


def test_a_missing_package_is_named(readings, monkeypatch):
    for package in PACKAGES:
        assert data_file._reader().__name__ == f"_{package}"
        monkeypatch.setitem(sys.modules, package, None)
    told = run_command("sandbox", "--data", readings, "--bucket", "5m", status=2).stderr
    assert "--data needs polars or pandas" in told
    assert "pip install 'siteline[polars]'" in told
