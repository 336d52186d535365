"""`siteline sandbox`: the service in a process of its own."""

import contextlib
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pandas as pd
import pytest
import siteline
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json
from kit.interpreter import run_script
from kit.ranges import NOW
from siteline.cli import data_file

PACKAGES = ("polars", "pyarrow", "pandas")
ENDING = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

pytestmark = systems.SIGNALS


@contextlib.contextmanager
def serving(*arguments, ended_by="SIGTERM"):
    """Run it until the block ends; its document, and the process, which must end well."""
    command = [*COMMAND, "sandbox", "--json", *map(str, arguments)]
    # Its first line must come although Python keeps what goes to a pipe until there is more.
    buffered = {**environment(), "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=buffered
    ) as process:
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
    """The variables of an env file, each on a line, as other programs read such a file."""
    lines = [line for line in Path(path).read_text().splitlines() if not line.startswith("#")]
    pairs = [line.partition("=") for line in lines]
    return {name: "".join(shlex.split(value)) for name, _, value in pairs}


def in_shell(env_file, script):
    """What a Python script prints in a shell that was given the file."""
    line = 'set -a; . "$1"; set +a; exec "$2" -c "$3"'
    command = ["/bin/sh", "-c", line, "sh", str(env_file), sys.executable, textwrap.dedent(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment()
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_a_signal_at_any_moment_of_the_wait_ends_it():
    """A handler that sets an event of threading stands still in one of some hundred."""
    script = """
        import os, random, signal, threading, time
        from siteline.cli import sandbox, stopping

        def ask(after):
            time.sleep(after)
            os.kill(os.getpid(), signal.SIGHUP)

        chance = random.Random(7)
        for _ in range(1_000):
            with stopping.Stop(hangup=True) as stop:
                asking = threading.Thread(target=ask, args=[chance.uniform(0, 3e-4)])
                asking.start()
                sandbox._wait(stop)
                asking.join()
        print("ended")
    """
    assert run_script(script).split() == ["ended"]


def test_a_shell_that_takes_the_env_file_reads_from_the_service():
    with serving("--now", NOW) as (document, process):
        assert document["command"] == "sandbox"
        assert document["pid"] == process.pid
        script = """
            import siteline
            client = siteline.Client.from_env()
            print(client.base_url, *client.discover()["sites"], client.allowance.resets_at.date())
        """
        address, *sites, day = in_shell(document["env_file"], script)
        assert address == document["base_url"]
        assert len(sites) > 1
        assert day == "2026-11-21", "the client has the sandbox's clock"


def test_the_lines_of_the_env_file_are_plain_assignments():
    with serving() as (document, _):
        found = variables_of(document["env_file"])
        assert sorted(found) == [
            "SITELINE_BASE_URL",
            "SITELINE_PRIVATE_KEY",
            "SITELINE_SANDBOX_CLOCK",
            "SITELINE_SUBJECT",
        ]
        shown = run_json("allowance", env=found)
        assert shown["base_url"] == found["SITELINE_BASE_URL"]
        text = Path(document["env_file"]).read_text()
        assert f"SITELINE_BASE_URL={document['base_url']}\n" in text, "without quotes"


@systems.MODES
@pytest.mark.parametrize("ended_by", ENDING)
def test_the_key_is_for_its_user_alone_and_goes_at_the_end(ended_by):
    with serving(ended_by=ended_by) as (document, _):
        path = Path(document["env_file"])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        clock = Path(variables_of(path)["SITELINE_SANDBOX_CLOCK"].partition("#")[2])
        assert clock.exists()
        assert "PRIVATE" not in json.dumps(document)
    assert not path.parent.exists()
    assert not clock.exists()


def test_the_text_for_a_person_has_the_address_and_the_path_but_no_key():
    command = [*COMMAND, "sandbox", "--now", NOW]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        first, second = process.stdout.readline(), process.stdout.readline()
        path = Path(second.removeprefix("env file").strip())
        assert path.exists()
        process.terminate()
        rest = process.communicate(timeout=60)[0]
    assert re.fullmatch(r"base URL  http://127\.0\.0\.1:\d+\n", first)
    assert rest == ""


def test_sigint_ends_it_also_when_it_comes_before_the_first_line():
    with subprocess.Popen(
        [*COMMAND, "sandbox"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    ) as process:
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=60)[0]
    # Of Python itself, of the command, or of the sandbox, by when it came.
    assert process.returncode in (-signal.SIGINT, 1, 130, 0)
    for path in re.findall(rb"env file  (.+)", output):
        assert not os.path.exists(path)


def test_a_named_env_file_is_written_for_its_user_and_removed(tmp_path):
    path = tmp_path / "sandbox.env"
    with serving("--env-file", path) as (document, _):
        assert document["env_file"] == str(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert variables_of(path)["SITELINE_BASE_URL"] == document["base_url"]
        assert os.listdir(tmp_path) == ["sandbox.env"]
    assert os.listdir(tmp_path) == []


def test_of_two_with_the_same_env_file_the_first_leaves_that_of_the_second(tmp_path):
    path = tmp_path / "sandbox.env"
    with contextlib.ExitStack() as second:
        with serving("--env-file", path):
            document, _ = second.enter_context(serving("--env-file", path))
        assert variables_of(path)["SITELINE_BASE_URL"] == document["base_url"]
    assert not path.exists()


def test_the_env_file_of_a_killed_sandbox_is_replaced(tmp_path):
    path = tmp_path / "sandbox.env"
    command = [*COMMAND, "sandbox", "--env-file", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as process:
        process.stdout.readline()
        process.kill()
        process.communicate()
    assert path.exists()
    with serving("--env-file", path) as (document, _):
        assert variables_of(path)["SITELINE_BASE_URL"] == document["base_url"]


def test_no_other_file_is_replaced_or_made_elsewhere(tmp_path):
    mine = tmp_path / "profile"
    mine.write_text("export PATH\n")
    link = tmp_path / "link"
    link.symlink_to(mine)
    for path in (mine, link, tmp_path):
        told = run_command("sandbox", "--env-file", path, status=2).stderr
        assert "is not replaced" in told
    assert mine.read_text() == "export PATH\n"
    missing = tmp_path / "nowhere" / "env"
    told = run_command("sandbox", "--env-file", missing, status=2).stderr
    assert told == f"siteline: {missing}: No such file or directory\n"
    assert sorted(os.listdir(tmp_path)) == ["link", "profile"]


def test_a_reader_that_has_gone_ends_it_and_nothing_is_left(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "sandbox", "--env-file", str(tmp_path / "env")],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
        env=environment(),
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
    assert os.listdir(tmp_path) == []


def test_the_options_are_those_of_the_sandbox():
    script = """
        import siteline
        client = siteline.Client.from_env()
        scan = client.data(site="S1", start="2026-11-01", end="2026-11-02", interval="1h")
        print(next(scan.records())["value"])
        try:
            client.data(site="S1", start="2026-11-01", end="2026-11-02", interval="5m").collect()
        except siteline.errors.AllowanceExhausted as error:
            print(error.retry_at.date())
    """
    with serving("--now", NOW, "--daily-allowance", 2, "--seed", 3) as (document, _):
        value, day = in_shell(document["env_file"], script)
    with siteline.Sandbox(now=NOW, seed=3) as sandbox:
        client = sandbox.client()
        scan = client.data(site="S1", start="2026-11-01", end="2026-11-02", interval="1h")
        assert float(value) == next(scan.records())["value"]
    assert day == "2026-11-21"


def test_wrong_options_are_faults_of_usage(tmp_path):
    for arguments, told in (
        (("--now", "soon"), "is not an ISO 8601 time"),
        (("--bucket", "5m"), "--bucket is about the rows of --data FILE"),
        (("--utc",), "--utc is about the rows"),
        (("--daily-allowance", "-1"), "out of range"),
        (("--data", tmp_path / "none.csv"), "No such file"),
    ):
        assert told in run_command("sandbox", *arguments, status=2).stderr
    document = run_json("sandbox", "--now", "soon", status=2)
    assert document["error"]["type"] == "QueryError"


def test_a_port_is_served_and_a_taken_one_is_a_fault_of_usage():
    with serving() as (document, _):
        port = document["base_url"].rpartition(":")[2]
        assert port in run_command("sandbox", "--port", port, status=2).stderr
    with serving("--port", port) as (document, _):
        assert document["base_url"] == f"http://127.0.0.1:{port}"


READINGS = """timestamp,value,machine_id
2026-11-01 00:00:00,1.5,007
2026-11-01 00:00:30,2.5,007
2026-11-01 00:05:00,4.0,007
"""


@pytest.fixture
def readings(tmp_path):
    """Readings whose times have no zone, and whose ids look like numbers."""
    path = tmp_path / "readings.csv"
    path.write_text(READINGS)
    return path


def test_a_csv_file_is_served_in_the_place_of_the_plant(readings):
    script = """
        import siteline
        scan = siteline.Client.from_env().data(
            site="S9", line="L7", start="2026-11-01", end="2026-11-02"
        )
        for one in scan.records():
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


def test_what_the_sandbox_does_not_take_is_said_with_the_file(readings):
    told = run_command("sandbox", "--data", readings, "--bucket", "5m", status=2).stderr
    assert told.startswith(f'siteline: {readings}: The column "timestamp" holds')
    assert "--utc takes times without a zone as UTC." in told
    told = run_command("sandbox", "--data", readings, "--utc", status=2).stderr
    assert "bucket" in told
    assert "--utc takes" not in told


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("zone", [None, "UTC", "+01:00"])
def test_each_package_reads_each_file_alike(readings, monkeypatch, package, kind, zone):
    frame = pd.read_csv(readings, dtype={"machine_id": "str"}, parse_dates=["timestamp"])
    frame["timestamp"] = frame["timestamp"].dt.tz_localize(zone)
    path = readings.with_suffix(f".{kind}")
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    monkeypatch.setattr(data_file, "_reader", lambda: getattr(data_file, f"_{package}"))
    table = data_file.read_table(str(path), utc=True)
    assert type(table).__module__.partition(".")[0] == package
    with siteline.Sandbox(now=NOW) as sandbox:
        assert sandbox.load(table, bucket="5m") == 3
        points = list(sandbox.truth(interval="5m").records())
    begins = "2026-10-31T23:00" if zone == "+01:00" else "2026-11-01T00:00"
    assert points[0]["timestamp"].isoformat()[:16] == begins
    assert [(one["machine_id"], one["value"]) for one in points] == [("007", 2.0), ("007", 4.0)]


def test_the_first_package_that_is_installed_reads(monkeypatch):
    for package in PACKAGES:
        assert data_file._reader().__name__ == f"_{package}"
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(siteline.ConfigError, match="none is installed"):
        data_file._reader()


def test_what_is_no_table_is_a_fault_of_usage_with_its_name(tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and no more")
    told = run_command("sandbox", "--data", broken, status=2).stderr
    assert told.startswith(f"siteline: {broken}: it cannot be read as Parquet: ")


WITHOUT = """
    import sys
    {before}
    from siteline.cli import main
    sys.exit(main(sys.argv[1:]))
"""


def run_without(before, *arguments):
    script = textwrap.dedent(WITHOUT).replace("{before}", before)
    done = subprocess.run(
        [sys.executable, "-c", script, "sandbox", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(),
    )
    assert done.returncode == 2, done
    return done.stderr


def test_without_a_package_for_files_it_says_which_to_install(readings):
    told = run_without(
        f"sys.modules.update(dict.fromkeys({PACKAGES!r}))", "--data", readings, "--bucket", "5m"
    )
    assert "--data needs polars, pyarrow or pandas" in told
    assert "pip install 'siteline[polars]'" in told


def test_a_build_without_the_sandbox_says_so():
    told = run_without("import siteline._siteline; siteline._siteline.HAS_SANDBOX = False")
    assert "This build of siteline has no sandbox" in told


def test_it_loads_no_package_that_it_does_not_need():
    script = """
        import os, signal, sys, threading
        from siteline.cli import main, sandbox

        said = sandbox._say
        def say(*arguments):
            said(*arguments)
            os.kill(os.getpid(), signal.SIGTERM)

        sandbox._say = say
        status = main(["sandbox"])
        heavy = {"pandas", "polars", "pyarrow", "numpy", "asyncio"}
        print(status, sorted(heavy & set(sys.modules)), file=sys.stderr)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(),
    )
    assert done.stderr == "0 []\n"


def test_a_csv_in_utf_16_is_an_error_and_does_not_end_the_process_in_polars(tmp_path):
    (tmp_path / "rows.csv").write_text("timestamp,value\n2026-11-18T00:00:00Z,1\n", "utf-16")
    done = run_command("sandbox", "--data", "rows.csv", folder=tmp_path, status=2)
    assert "rows.csv: it cannot be read as CSV: it has NUL bytes" in done.stderr
