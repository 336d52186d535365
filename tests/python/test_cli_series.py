"""`siteline series`: lists and searches series, and shows changes since the last run."""

import csv
import io
import json
import subprocess

import pytest
import siteline
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json

SPEED = {"tagGuid": "T1", "name": "speed", "unit": "1/min"}
HEAT = {"tagGuid": "T2", "name": "temperature", "unit": "degC"}


def plant(*tags):
    device = {"deviceId": "D1", "tags": [*tags]}
    line = {"lineId": "L1", "machines": [{"machineId": "M1", "devices": [device]}]}
    return {"sites": [{"siteId": "S1", "lines": [line]}]}


@pytest.fixture
def state(tmp_path):
    """The parent folder of the memory."""
    return tmp_path / "state"


@pytest.fixture
def env(sandbox, state):
    return {**sandbox.env(), "XDG_STATE_HOME": str(state), "LOCALAPPDATA": str(state)}


@pytest.fixture
def series(sandbox, env):
    """Runs it while the service lists these resources."""

    def series(resources, *arguments, how=run_json, **options):
        sandbox.fault(on="discovery", status=200, body=json.dumps(resources))
        return how("series", *arguments, env=env, **options)

    return series


def memory(state):
    """The only file of the memory."""
    (path,) = (state / "siteline").glob("series-*.json")
    return path


def tags(document, member="series"):
    return [row["tag_guid"] for row in document[member]]


def test_series_are_listed_and_searched(sandbox, env):
    rows = list(sandbox.client().series().records())
    assert run_json("series", env=env)["series"] == rows
    wanted = [row["tag_guid"] for row in rows if row["name"] == "speed" and row["line_id"] == "L2"]
    assert len(wanted) == 2
    assert tags(run_json("series", "SPEED", "--line", "L2", env=env)) == wanted
    assert tags(run_json("series", "--unit", "1/min", "--line", "L2", env=env)) == wanted
    text = run_command("series", "speed", "--line", "L2", env=env).stdout.splitlines()
    assert text[0].split() == ["series", "site", "line", "tag"]
    assert [line.split()[-1] for line in text[1:]] == [*wanted, "series"]
    missing = run_command("series", "nothing", env=env).stdout
    assert missing == f"No series matches: {len(rows)} are listed. siteline series lists all.\n"
    near = run_command("series", "temprature", env=env).stdout
    assert "listed. Nearest: 'temperature'. siteline series" in near
    assert (sandbox.stats.data_requests, sandbox.stats.discovery_requests) == (0, 7)


def test_series_are_written_to_files(sandbox, env, tmp_path):
    table = run_command("series", "speed", "--format", "csv", env=env).stdout
    found = [row["tag_guid"] for row in csv.DictReader(io.StringIO(table))]
    assert found == tags(run_json("series", "speed", env=env))
    document = run_json("series", "speed", "-o", tmp_path / "out.jsonl", env=env)
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["tag_guid"] for line in lines] == found
    assert (document["rows"], document["format"]) == (len(found), "jsonl")


def test_series_of_a_store(sandbox, env, tmp_path):
    feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start="2026-11-19T00:00Z")
    with siteline.Store(tmp_path / "plant.siteline") as store:
        sandbox.client().sync(feed, store)
        rows = list(store.series().records())
    before = sandbox.stats.requests
    words = ("series", "--store", tmp_path / "plant.siteline")
    assert run_json(*words)["series"] == rows
    assert len(run_json(*words, "temperature")["series"]) == 2
    assert sandbox.stats.requests == before


def test_raw_is_the_body(sandbox, env, series):
    body = {"sites": [{"siteId": "\u009b2J\u202e", "name": "Süd"}]}
    assert series(body, "--raw")["resources"] == body
    text = series(body, "--raw", how=run_command).stdout
    assert json.loads(text) == body
    assert "Süd" in text
    assert "\\u009b2J\\u202e" in text
    assert "is not for it" in series(body, "--raw", "text", how=run_command, status=2).stderr


def test_differences_are_named_by_labels(series):
    first = series(plant(SPEED), "--diff")
    assert (first["since"], first["added"], first["removed"]) == (None, [], [])
    second = series(plant({**SPEED, "unit": "1/s"}, HEAT), "--diff")
    assert second["since"] is not None
    assert (tags(second, "added"), second["removed"]) == (["T2"], [])
    (changed,) = second["changed"]
    assert [changed[one]["unit"] for one in ("before", "after")] == ["1/min", "1/s"]
    lines = series(plant(SPEED), "--diff", how=run_command).stdout.splitlines()
    assert lines[0] == "removed  M1 / D1 / temperature [degC] (S1 L1)"
    assert lines[1] == 'changed  M1 / D1 / speed [1/min] (S1 L1): unit "1/s" -> "1/min"'
    assert lines[2].startswith("0 added, 1 removed, 1 changed since ")
    same = series(plant(SPEED), "--diff", how=run_command).stdout
    assert same.startswith("Nothing has changed since ")
    # A run without --diff counts too, also if it shows a part only.
    series(plant(SPEED, HEAT), "speed")
    assert tags(series(plant(HEAT), "--diff"), "removed") == ["T1"]


def test_each_subject_has_its_memory(series, sandbox, env, key, key_file, state):
    series(plant(SPEED))
    del env["SITELINE_PRIVATE_KEY"]
    env |= {"SITELINE_SUBJECT": sandbox.enroll(key.public_jwk)}
    env |= {"SITELINE_PRIVATE_KEY_FILE": str(key_file)}
    assert run_json("series", "--diff", env=env)["since"] is None
    assert len([*(state / "siteline").glob("series-*")]) == 2


def test_unread_output_is_not_remembered(series, sandbox, env):
    series(plant(SPEED))
    sandbox.fault(on="discovery", status=200, body=json.dumps(plant(SPEED, HEAT)))
    # An output without a buffer would hide that it is not emptied in time.
    env = environment({**env, "PYTHONUNBUFFERED": ""})
    with subprocess.Popen([*COMMAND, "series", "--diff"], env=env, stdout=subprocess.PIPE) as run:
        run.stdout.close()
    assert run.returncode == 141
    # A refused discovery is not remembered either.
    sandbox.fault(on="discovery", status=403, body='{"error": "forbidden"}')
    assert run_json("series", "--diff", env=env, status=3)["error"]["type"] == "ScopeError"
    assert tags(series(plant(SPEED, HEAT), "--diff"), "added") == ["T2"]


@systems.MODES
def test_the_memory_is_private(series, state, tmp_path):
    series(plant(SPEED))
    path, kept = memory(state), tmp_path / "kept.json"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    series(plant(SPEED))
    assert path.stat().st_mode & 0o777 == 0o600
    # A link is replaced and not followed.
    path.rename(kept)
    before = kept.read_bytes()
    path.symlink_to(kept)
    series(plant(HEAT))
    assert kept.read_bytes() == before
    assert not path.is_symlink()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-10],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"tag_guid"', '"tag"'),
        lambda text: text.replace('"seen": "', '"seen": "x'),
    ],
)
def test_a_damaged_memory_is_a_warning(series, state, damage):
    series(plant(SPEED))
    memory(state).write_text(damage(memory(state).read_text(encoding="utf-8")), encoding="utf-8")
    done = series(plant(HEAT), "--diff", "--json", how=run_command)
    assert json.loads(done.stdout)["since"] is None
    assert done.stderr.count("which --diff compares with, cannot be read") == 1
    assert series(plant(HEAT), "--diff")["since"] is not None


def test_an_unwritable_memory_is_a_warning(series, state):
    # Nobody can make a folder inside a file, not even root.
    state.write_text("")
    for arguments in ((), ("--diff",)):
        done = series(plant(SPEED), *arguments, "--json", how=run_command)
        assert json.loads(done.stdout)["exit"] == 0
        assert "cannot be written" in done.stderr
    assert state.read_text() == ""


def test_ctrl_c_while_the_memory_is_written_prints_no_traceback(series, state, monkeypatch):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("siteline._doors.whole_file", interrupted)
    done = series(plant(SPEED), "--json", how=run_command, status=130)
    assert tags(json.loads(done.stdout)) == ["T1"]
    assert done.stderr == "siteline: interrupted\n"
    monkeypatch.undo()
    assert series(plant(SPEED, HEAT), "--diff")["since"] is None
