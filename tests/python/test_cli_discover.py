"""``siteline discover``: the readable resources, and the changes since the last run."""

import hashlib
import json
import subprocess
from datetime import UTC, datetime

import pytest
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json
from siteline._records.differences import differences

L1 = {"lineId": "L1", "name": "press"}
L2 = {"lineId": "L2", "name": "paint"}


def plant(*lines, **more):
    return {"sites": [{"siteId": "S1", "lines": [*lines]}], **more}


@pytest.fixture
def state(tmp_path):
    """The parent folder of the memory."""
    return tmp_path / "state"


@pytest.fixture
def env(sandbox, state):
    return {**sandbox.env(), "XDG_STATE_HOME": str(state), "LOCALAPPDATA": str(state)}


@pytest.fixture
def discover(sandbox, env):
    """Run it while the service lists these resources."""

    def discover(resources, *arguments, how=run_json, **options):
        sandbox.fault(on="discovery", status=200, body=json.dumps(resources))
        return how("discover", *arguments, env=env, **options)

    return discover


def memory(state):
    """The only file of the memory."""
    (path,) = (state / "siteline").glob("discovery-*.json")
    return path


def test_the_body_is_printed(sandbox, env, discover):
    document = run_json("discover", env=env)
    assert document["resources"] == dict(sandbox.client().discover())
    text = run_command("discover", env=env).stdout
    assert json.loads(text) == document["resources"]
    assert text.count("\n") > 20
    stats = sandbox.stats
    assert (stats.discovery_requests, stats.data_requests) == (3, 0)
    # Control characters are shown as escapes.
    body = {"sites": [{"siteId": "\u009b2J\u202e", "name": "Süd"}]}
    text = discover(body, how=run_command).stdout
    assert json.loads(text) == body
    assert "Süd" in text
    assert "\\u009b2J\\u202e" in text
    gone = discover({"sites": []}, "--diff", how=run_command).stdout
    assert "\\u009b2J\\u202e: no longer authorised (or removed)" in gone


def test_differences_are_named_by_ids(discover):
    first = discover(plant(L1, total=1), "--diff")
    assert first["since"] is None
    assert first["added"] == first["removed"] == first["changed"] == []
    now, before = plant({**L2, "name": "varnish"}, total=2), datetime.now(UTC)
    document = discover(now, "--diff")
    assert datetime.fromisoformat(document["since"]) <= before
    assert document["resources"] == now
    assert document["added"] == [
        {"path": "/sites/siteId=S1/lines/lineId=L2", "value": {"lineId": "L2", "name": "varnish"}}
    ]
    assert document["removed"] == [{"path": "/sites/siteId=S1/lines/lineId=L1", "value": L1}]
    assert document["changed"] == [{"path": "/total", "before": 1, "after": 2}]
    lines = discover(plant(L2), "--diff", how=run_command).stdout.splitlines()
    assert lines[:2] == [
        "removed  /total",
        'changed  /sites/siteId=S1/lines/lineId=L2/name: "varnish" -> "paint"',
    ]
    assert "0 added, 1 removed, 1 changed since " in lines[2]
    again = discover(plant(L2), "--diff", how=run_command).stdout
    assert again.startswith("Nothing has changed since ")
    # A run without --diff is remembered, too.
    discover(plant(L1))
    assert len(discover(plant(L1, L2), "--diff")["added"]) == 1


def test_each_subject_has_its_memory(discover, sandbox, env, key, key_file, state):
    discover(plant(L1))
    del env["SITELINE_PRIVATE_KEY"]
    env |= {"SITELINE_SUBJECT": sandbox.enroll(key.public_jwk)}
    env |= {"SITELINE_PRIVATE_KEY_FILE": str(key_file)}
    assert run_json("discover", "--diff", env=env)["since"] is None
    assert len([*(state / "siteline").glob("discovery-*")]) == 2


def test_unread_output_is_not_remembered(discover, sandbox, env):
    discover(plant(L1))
    sandbox.fault(on="discovery", status=200, body=json.dumps(plant(L1, L2)))
    # An output without a buffer would hide that it is not emptied in time.
    env = environment({**env, "PYTHONUNBUFFERED": ""})
    with subprocess.Popen(
        [*COMMAND, "discover", "--diff"], env=env, stdout=subprocess.PIPE
    ) as process:
        process.stdout.close()
    assert process.returncode == 141
    # A refused discovery is not remembered either.
    sandbox.fault(on="discovery", status=403, body='{"error": "forbidden"}')
    error = run_json("discover", "--diff", env=env, status=3)["error"]
    assert error["type"] == "ScopeError"
    assert len(discover(plant(L1, L2), "--diff")["added"]) == 1


@systems.MODES
def test_the_memory_is_private(discover, state, tmp_path):
    discover(plant(L1))
    path, kept = memory(state), tmp_path / "kept.json"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    discover(plant(L1))
    assert path.stat().st_mode & 0o777 == 0o600
    # A link is not read and not followed.
    path.rename(kept)
    before = kept.read_bytes()
    path.symlink_to(kept)
    assert discover(plant(L2), "--diff")["since"] is None
    assert kept.read_bytes() == before
    assert not path.is_symlink()
    whose = f"{json.loads(before)['base_url']}\n{json.loads(before)['subject']}".encode()
    assert path.name == f"discovery-{hashlib.sha256(whose).hexdigest()[:32]}.json"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-10],
        lambda text: "",
        lambda text: "[]",
        lambda text: "\udcff",
        lambda text: text.replace('"form": 1', '"form": 2'),
        lambda text: text.replace('"resources": {', '"resources": [{').replace("}}", "}]}"),
        lambda text: text.replace('"seen": "', '"seen": "x'),
    ],
)
def test_a_damaged_memory_begins_anew(discover, state, damage):
    discover(plant(L1))
    text = damage(memory(state).read_text())
    memory(state).write_bytes(text.encode("utf-8", "surrogateescape"))
    done = discover(plant(L2), "--diff", "--json", how=run_command)
    document = json.loads(done.stdout)
    assert (document["since"], document["resources"]) == (None, plant(L2))
    assert done.stderr.count("was damaged, and begins anew") == 1
    assert discover(plant(L2), "--diff")["since"] is not None


def test_an_unwritable_memory_is_a_warning(discover, state):
    # Below a file there is no folder, not even for root.
    state.write_text("")
    for arguments in ((), ("--diff",)):
        done = discover(plant(L1), *arguments, "--json", how=run_command)
        assert json.loads(done.stdout)["resources"] == plant(L1)
        assert len(done.stderr.splitlines()) == 1
        assert "warning" in done.stderr
    assert state.read_text() == ""


def test_processes_at_once_leave_a_whole_file(sandbox, env, state):
    running = [
        subprocess.Popen([*COMMAND, "discover"], env=environment(env), stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [process.wait(60) for process in running] == [0] * 3
    assert json.loads(memory(state).read_bytes())["resources"] == dict(sandbox.client().discover())
    assert [*(state / "siteline").glob("*-new-*")] == []


# The comparison itself.


@pytest.mark.parametrize(
    ("items", "path"),
    [
        ([{"siteId": 1}, {"siteId": 2}], "siteId=2"),
        ([{"siteId": "S", "lineId": "A"}, {"siteId": "S", "lineId": "B"}], "siteId=S,lineId=B"),
        ([{"machineId": "M", "name": "x"}, {"machineId": "N", "name": "x"}], "machineId=N"),
        ([{"deviceId": None}, {"deviceId": "D"}], "deviceId=D"),
        ([{"guid": "a", "name": "x"}, {"guid": "b", "name": "x"}], "guid=b"),
        ([{"siteId": "S", "name": "x"}, {"siteId": "S", "name": "y"}], "siteId=S,name=y"),
        ([{"id": 1, "name": "x"}, {"id": 1, "name": "y"}], "name=y"),
        ([{"id": True, "name": "x"}, {"id": False, "name": "y/~"}], "name=y~1~0"),
        ([{"name": "x"}, {"name": "x"}], "-"),
        ([{"id": "x"}, "S2"], "-"),
        (["S1", "S2"], "-"),
    ],
)
def test_items_are_identified_by_ids(items, path):
    found = differences({"list": items[::-1]}, {"list": items[:1]})
    assert found.removed == [{"path": f"/list/{path}", "value": items[1]}]
    assert found.added == found.changed == []
    back = differences({"list": items[:1]}, {"list": items[::-1]})
    assert [entry["path"] for entry in back.added] == [f"/list/{path}"]


def test_order_does_not_count():
    one = {"a": 1, "list": [{"id": 1, "of": ["x", "y", "y"]}, {"id": 2}]}
    other = {"list": [{"id": 2}, {"of": ["y", "x", "y"], "id": 1}], "a": 1}
    assert not differences(one, other)
    other["list"][1]["of"] = ["y", "x", "x"]
    found = differences(one, other)
    assert found.removed == [{"path": "/list/id=1/of/-", "value": "y"}]
    assert found.added == [{"path": "/list/id=1/of/-", "value": "x"}]
    # A removed item is listed once, at its highest level.
    removed = differences(plant(L1), {"sites": []}).removed
    assert [entry["path"] for entry in removed] == ["/sites/siteId=S1"]


@pytest.mark.parametrize(
    ("before", "after"), [(1, True), (0, False), (1, 1.5), (None, {}), ([], {}), ("1", 1)]
)
def test_values_of_other_types_are_changes(before, after):
    found = differences({"a": before}, {"a": after})
    assert found.changed == [{"path": "/a", "before": before, "after": after}]
    assert found.added == found.removed == []
