"""``siteline discover``: what may be read, and what has come or gone."""

import json
import subprocess
from datetime import UTC, datetime

import pytest
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json
from siteline._differences import differences

L1 = {"lineId": "L1", "name": "press"}
L2 = {"lineId": "L2", "name": "paint"}


def plant(*lines, **more):
    return {"sites": [{"siteId": "S1", "lines": [*lines]}], **more}


@pytest.fixture
def state(tmp_path):
    """The folder above that of the memory."""
    return tmp_path / "state"


@pytest.fixture
def discover(sandbox, state):
    """Run it where the service lists these resources."""

    def discover(resources, *arguments, how=run_json, **options):
        sandbox.fault(on="discovery", status=200, body=json.dumps(resources))
        env = {**sandbox.env(), "XDG_STATE_HOME": str(state), "LOCALAPPDATA": str(state)}
        return how("discover", *arguments, env=env, **options)

    return discover


def memory(state):
    """The only file of the memory."""
    (path,) = (state / "siteline").glob("discovery-*.json")
    return path


def test_the_body_is_printed_as_it_came_and_costs_no_data_request(sandbox):
    document = run_json("discover", env=sandbox.env())
    assert document["resources"] == dict(sandbox.client().discover())
    text = run_command("discover", env=sandbox.env()).stdout
    assert json.loads(text) == document["resources"]
    assert text.count("\n") > 20
    stats = sandbox.stats
    assert (stats["discovery_requests"], stats["data_requests"]) == (3, 0)


def test_what_came_and_went_is_told_by_its_ids(discover):
    discover(plant(L1, total=1))
    now = plant({**L2, "name": "varnish"}, total=2)
    before = datetime.now(UTC)
    document = discover(now, "--diff")
    assert datetime.fromisoformat(document["since"]) <= before
    assert document["resources"] == now
    assert document["come"] == [
        {"path": "/sites/siteId=S1/lines/lineId=L2", "value": {"lineId": "L2", "name": "varnish"}}
    ]
    assert document["gone"] == [{"path": "/sites/siteId=S1/lines/lineId=L1", "value": L1}]
    assert document["changed"] == [{"path": "/total", "before": 1, "after": 2}]
    text = discover(plant(L2), "--diff", how=run_command).stdout
    assert text.splitlines()[:2] == [
        "gone     /total",
        'changed  /sites/siteId=S1/lines/lineId=L2/name: "varnish" -> "paint"',
    ]


def test_a_resource_that_is_gone_is_said_to_be_no_longer_authorised(discover):
    discover(plant(L1, L2))
    text = discover(plant(L1), "--diff", how=run_command).stdout
    assert "/sites/siteId=S1/lines/lineId=L2: no longer authorised (or removed)" in text
    assert "0 come, 1 gone, 0 changed since " in text
    again = discover(plant(L1), "--diff", how=run_command).stdout
    assert again.startswith("Nothing has changed since ")
    assert "lineId" not in again


def test_another_subject_has_a_memory_of_its_own(discover, sandbox, key, tmp_path, state):
    discover(plant(L1))
    key.save(tmp_path / "key.pem")
    other = {
        **{"SITELINE_SUBJECT": sandbox.enroll(key.public_jwk), "XDG_STATE_HOME": str(state)},
        **{"SITELINE_PRIVATE_KEY_FILE": str(tmp_path / "key.pem"), "LOCALAPPDATA": str(state)},
    }
    env = {**sandbox.env(), **other}
    del env["SITELINE_PRIVATE_KEY"]
    assert run_json("discover", "--diff", env=env)["since"] is None
    assert len([*(state / "siteline").glob("discovery-*")]) == 2


def test_what_nobody_could_read_is_told_again(discover, sandbox, state):
    discover(plant(L1))
    sandbox.fault(on="discovery", status=200, body=json.dumps(plant(L1, L2)))
    env = {**sandbox.env(), "XDG_STATE_HOME": str(state), "LOCALAPPDATA": str(state)}
    # An output without a buffer would hide that it is not emptied in time.
    env["PYTHONUNBUFFERED"] = ""
    program = [*COMMAND, "discover", "--diff"]
    with subprocess.Popen(program, env=environment(env), stdout=subprocess.PIPE) as process:
        process.stdout.close()
    assert process.returncode == 141
    assert len(discover(plant(L1, L2), "--diff")["come"]) == 1


@systems.MODES
def test_the_memory_is_for_its_owner_alone(discover, state):
    discover(plant(L1))
    assert memory(state).stat().st_mode & 0o777 == 0o600
    memory(state).chmod(0o644)
    discover(plant(L1))
    assert memory(state).stat().st_mode & 0o777 == 0o600


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
def test_a_damaged_memory_is_said_and_begun_anew(discover, state, damage):
    discover(plant(L1))
    text = damage(memory(state).read_text())
    memory(state).write_bytes(text.encode("utf-8", "surrogateescape"))
    done = discover(plant(L2), "--diff", "--json", how=run_command)
    document = json.loads(done.stdout)
    assert (document["since"], document["resources"]) == (None, plant(L2))
    assert done.stderr.count("was damaged, and begins anew") == 1
    assert discover(plant(L2), "--diff")["since"] is not None


def test_a_memory_that_cannot_be_kept_is_warned_of_once(discover, state):
    # Below a file there is no folder, not even for root.
    state.write_text("")
    for arguments in ((), ("--diff",)):
        done = discover(plant(L1), *arguments, "--json", how=run_command)
        assert json.loads(done.stdout)["resources"] == plant(L1)
        assert len(done.stderr.splitlines()) == 1
        assert "warning" in done.stderr
    assert state.read_text() == ""


@systems.MODES
def test_a_link_in_the_place_of_the_memory_is_neither_read_nor_followed(discover, state, tmp_path):
    discover(plant(L1))
    kept = tmp_path / "kept.json"
    memory(state).rename(kept)
    before = kept.read_bytes()
    (state / "siteline" / memory_name(kept)).symlink_to(kept)
    assert discover(plant(L2), "--diff")["since"] is None
    assert kept.read_bytes() == before
    assert not memory(state).is_symlink()


def memory_name(path):
    """The name of the file that has this memory."""
    import hashlib

    known = json.loads(path.read_bytes())
    whose = f"{known['base_url']}\n{known['subject']}".encode()
    return f"discovery-{hashlib.sha256(whose).hexdigest()[:32]}.json"


def test_several_at_once_leave_a_whole_file(sandbox, state):
    env = {**sandbox.env(), "XDG_STATE_HOME": str(state), "LOCALAPPDATA": str(state)}
    running = [
        subprocess.Popen([*COMMAND, "discover"], env=environment(env), stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [process.wait(60) for process in running] == [0] * 3
    assert json.loads(memory(state).read_bytes())["resources"] == dict(sandbox.client().discover())
    assert [*(state / "siteline").glob("*.new")] == []


def test_a_refused_discovery_forgets_nothing(discover, sandbox, state):
    discover(plant(L1))
    before = memory(state).read_bytes()
    sandbox.fault(on="discovery", status=403, body='{"error": "forbidden"}')
    env = {**sandbox.env(), "XDG_STATE_HOME": str(state), "LOCALAPPDATA": str(state)}
    assert run_json("discover", "--diff", env=env, status=3)["error"]["type"] == "ScopeError"
    assert memory(state).read_bytes() == before


def test_what_would_change_a_terminal_is_shown_as_an_escape(discover):
    body = {"sites": [{"siteId": "\u009b2J\u202e", "name": "Süd"}]}
    done = discover(body, how=run_command)
    assert json.loads(done.stdout) == body
    assert "Süd" in done.stdout
    assert "\\u009b2J\\u202e" in done.stdout
    gone = discover({"sites": []}, "--diff", how=run_command).stdout
    assert "\\u009b2J\\u202e: no longer authorised" in gone


# The comparison itself.


def paths(entries):
    return [entry["path"] for entry in entries]


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
        ([{"name": "x"}, {"colour": "red"}], "-"),
        ([{"id": "x"}, "S2"], "-"),
        (["S1", "S2"], "-"),
    ],
)
def test_an_item_is_known_by_the_ids_that_tell_all_of_them_apart(items, path):
    found = differences({"list": items[::-1]}, {"list": items[:1]})
    assert paths(found.gone) == [f"/list/{path}"]
    assert found.gone[0]["value"] == items[1]
    assert found.come == found.changed == []
    back = differences({"list": items[:1]}, {"list": items[::-1]})
    assert paths(back.come) == [f"/list/{path}"]


def test_the_order_of_members_and_items_does_not_count():
    one = {"a": 1, "list": [{"id": 1, "of": ["x", "y", "y"]}, {"id": 2}]}
    other = {"list": [{"id": 2}, {"of": ["y", "x", "y"], "id": 1}], "a": 1}
    assert not any(differences(one, other))
    assert not any(differences([{"a": 1, "b": 2}, {}], [{}, {"b": 2, "a": 1}]))
    other["list"][1]["of"] = ["y", "x", "x"]
    found = differences(one, other)
    assert found.gone == [{"path": "/list/id=1/of/-", "value": "y"}]
    assert found.come == [{"path": "/list/id=1/of/-", "value": "x"}]


@pytest.mark.parametrize(
    ("before", "after"), [(1, True), (0, False), (1, 1.5), (None, {}), ([], {}), ("1", 1)]
)
def test_values_of_other_types_are_changes(before, after):
    found = differences({"a": before}, {"a": after})
    assert found.changed == [{"path": "/a", "before": before, "after": after}]
    assert found.come == found.gone == []
