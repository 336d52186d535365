"""``siteline profile``: profiles are appended, listed and shown."""

import errno
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json
from siteline.cli.atomic_file import replace_file
from siteline.cli.exits import Exit, status_of
from siteline.cli.profile_file import append_profile
from siteline.cli.profile_members import MEMBERS
from siteline.errors import ConfigError

URL = "https://customer.example.com"
GIVEN = ("--base-url", URL, "--subject", "s-1", "--private-key-file", "plant.pem")
EXISTING = b"# plants\r\n\r\n[plant-a] # the first\r\nsubject = 'x'   # \xc3\xa9\r\n\r\n# the end"


@pytest.fixture
def config(tmp_path):
    """The path of a file of profiles; its folder is not there."""
    return tmp_path / "config" / "siteline" / "config.toml"


@pytest.fixture
def run(config, tmp_path):
    """Run an action of `siteline profile` with that file."""

    def run(*arguments, how=run_command, **options):
        env = {"SITELINE_CONFIG": str(config)}
        return how("profile", *arguments, env=env, folder=tmp_path, **options)

    return run


def written(config):
    return tomllib.loads(config.read_text(encoding="utf-8"))


def test_a_profile_that_was_made_is_one_for_the_client(config, run, key, sandbox, tmp_path):
    key.save(tmp_path / "plant.pem")
    subject = sandbox.enroll(key.public_jwk)
    arguments = ("--base-url", sandbox.base_url, "--subject", subject)
    document = run("init", "plant-a", *arguments, *GIVEN[4:], how=run_json)
    assert document["command"] == "profile init"
    assert document["path"] == str(config)
    assert document["missing"] is None
    assert document["members"] == written(config)["plant-a"]
    env = {**sandbox.env(), "SITELINE_CONFIG": str(config)}
    found = run_json("discover", "--profile", "plant-a", env=env)
    assert found["resources"]["subject"] == subject


def test_a_path_is_that_of_the_folder_in_which_the_command_was_given(config, run, tmp_path):
    run("init", "a", *GIVEN, "--ledger", "memory", "--ca-bundle", "~/ca.pem", status=2)
    (tmp_path / "ca.pem").write_text("")
    run("init", "a", *GIVEN, "--ledger", "memory", "--allow-http")
    run("init", "b", *GIVEN, "--ledger", "plant.ledger")
    assert list(written(config)["b"]) == ["base_url", "subject", "private_key_file", "ledger"]
    assert written(config)["a"]["private_key_file"] == str(tmp_path / "plant.pem")
    assert written(config)["a"]["ledger"] == "memory"
    assert written(config)["a"]["allow_http"] is True
    assert written(config)["b"]["ledger"] == str(tmp_path / "plant.ledger")


@systems.MODES
def test_the_folder_and_the_file_are_for_their_owner_alone(config, run):
    run("init", "a", *GIVEN)
    assert config.stat().st_mode & 0o777 == 0o600
    for folder in (config.parent, config.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "existing", [EXISTING, EXISTING + b"\r\n", b"\xef\xbb\xbf" + EXISTING, b""]
)
def test_what_is_in_the_file_stays_byte_for_byte(config, run, existing):
    config.parent.mkdir(parents=True)
    config.write_bytes(existing)
    run("init", "plant-b", *GIVEN)
    now = config.read_bytes()
    assert now.startswith(existing)
    assert now.count(b"\n") == now.count(b"\r\n" if existing else b"\n")
    assert list(tomllib.loads(now.decode("utf-8-sig")))[-1] == "plant-b"


def test_a_name_is_quoted_where_toml_needs_it(config, run):
    names = ["plain", "plant.a", 'the "first"', "Anlage Süd", "back\\slash", "#1"]
    for name in names:
        run("init", name, *GIVEN)
    assert list(written(config)) == names
    for name in names[2:5]:
        assert run("show", name, how=run_json)["members"]["subject"] == "s-1"


@pytest.mark.parametrize("name", ["", " a", "a\n[b]", "a\x7f", "\x1b[2J", "\u202eb"])
def test_a_name_that_cannot_be_written_as_it_is_shown_is_refused(tmp_path, name):
    path = tmp_path / "config.toml"
    with pytest.raises(ConfigError, match="cannot be the name"):
        append_profile(path, name, {"base_url": URL})
    assert not path.exists()


def test_the_key_may_come_later(config, run, key, tmp_path):
    done = run("init", "plant-a", *GIVEN)
    assert "plant.pem" in done.stdout
    assert "does not exist" in done.stdout
    document = run("init", "plant-b", *GIVEN, how=run_json)
    assert document["missing"]["type"] == "CredentialError"
    key.save(tmp_path / "plant.pem")
    assert run("init", "plant-c", *GIVEN, how=run_json)["missing"] is None
    env = {"SITELINE_CONFIG": str(config)}
    assert run_json("allowance", "--profile", "plant-a", env=env)["subject"] == "s-1"


def test_a_passphrase_command_is_run_once_and_told_of_when_it_fails(config, run, key, tmp_path):
    key.save(tmp_path / "plant.pem", passphrase="correct horse")
    script = tmp_path / "prints.py"
    script.write_text("print('correct horse'); open('ran', 'a').write('x')")
    command = subprocess.list2cmdline([sys.executable, str(script)])
    ready = run("init", "a", *GIVEN, "--password-command", command, how=run_json)
    assert ready["missing"] is None
    assert ready["members"]["password_command"] == "(set)"
    assert (tmp_path / "ran").read_text() == "x"
    script.write_text("print('correct house')")
    wrong = run("init", "b", *GIVEN, "--password-command", command, how=run_json)
    assert wrong["missing"]["type"] == "CredentialError"
    assert "b" in written(config)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--base-url", URL), "--subject and --certificate-file"),
        ((*GIVEN, "--certificate-file", "x.pem"), "--subject and --certificate-file"),
        ((*GIVEN, "--client-id", "x"), "belongs to --certificate-file"),
        (("--base-url", URL, "--certificate-file", "x", "--kid", "y"), "belongs to --subject"),
        (("--base-url", "http://plain.example", *GIVEN[2:]), "http"),
        (("--base-url", "https://u:hunter2@h.example", *GIVEN[2:]), "password"),
        ((*GIVEN, "--tries", "0"), "tries"),
        ((*GIVEN, "--daily-allowance", "0"), "daily-allowance"),
        ((*GIVEN, "--settle-lag", "soon"), "settle_lag"),
        (GIVEN[2:], "--base-url"),
    ],
)
def test_settings_that_no_client_takes_are_refused_before_anything_is_written(
    config, run, arguments, words
):
    refused = run("init", "plant-a", *arguments, status=2)
    assert words in refused.stderr
    assert "hunter2" not in refused.stderr
    assert not config.exists()


def test_every_member_of_a_profile_has_an_option(config, run):
    config.parent.mkdir(parents=True)
    config.write_text("[a]\nmember_of_no_profile = 1\n")
    env = {"SITELINE_CONFIG": str(config)}
    error = run_json("allowance", "--profile", "a", env=env, status=2)["error"]
    known = re.search(r"Known are: (.*)\.", error["hint"])[1].split(", ")
    assert sorted(MEMBERS) == sorted(known)
    assert "--max-retry-after TIME" in run("init", "--help").stdout


def test_numbers_flags_and_durations_are_written_as_the_client_reads_them(
    config, run, key, tmp_path
):
    key.save(tmp_path / "plant.pem")
    more = {
        **{"strict": None, "scopes": "customer.data.read", "daily_allowance": "500"},
        **{"allowance_resets": "06:00Z", "settle_lag": "10m", "connect_timeout": "2"},
        **{"idle_timeout": "7.5", "tries": "3", "application": 'a "b"\\c', "ledger": "l.txt"},
    }
    arguments = [
        word
        for name, value in more.items()
        for word in (f"--{name.replace('_', '-')}", value)
        if word is not None
    ]
    assert run("init", "plant-a", *GIVEN, *arguments, how=run_json)["missing"] is None
    members = written(config)["plant-a"]
    assert members["strict"] is True
    assert (members["connect_timeout"], members["idle_timeout"]) == (2, 7.5)
    assert members["application"] == 'a "b"\\c'
    env = {"SITELINE_CONFIG": str(config)}
    assert run_json("allowance", "--profile", "plant-a", env=env)["limit"] == 500


def test_a_file_that_is_not_one_of_profiles_is_left_alone(config, run):
    config.parent.mkdir(parents=True)
    for content, words in (
        (b"[a]\npassphrase = hunter2\n", f"a mistake in line 2 of {config}"),
        (b"stray = 'hunter2'\n", '"stray" is not in a profile'),
        ("[a]\nx = 'é'".encode("utf-16"), "not UTF-8"),
        (b"#" * (1 << 20) + b"\n", "longer"),
    ):
        config.write_bytes(content)
        done = run("init", "plant-b", *GIVEN, status=2)
        assert words in done.stderr
        assert "hunter2" not in done.stderr
        assert config.read_bytes() == content
        assert [*config.parent.iterdir()] == [config]


@systems.MODES
def test_permissions_stay_and_a_link_is_followed(config, run, tmp_path):
    kept = tmp_path / "dotfiles" / "plants.toml"
    kept.parent.mkdir()
    kept.write_text("[plant-a]\n")
    kept.chmod(0o640)
    config.parent.mkdir(parents=True)
    config.symlink_to(kept)
    run("init", "plant-b", *GIVEN)
    assert config.is_symlink()
    assert kept.stat().st_mode & 0o777 == 0o640
    assert list(written(kept)) == ["plant-a", "plant-b"]
    assert [*kept.parent.iterdir()] == [kept]


@systems.ROOT
def test_what_root_writes_in_a_user_s_folder_belongs_to_the_user(config, run, tmp_path):
    os.chown(tmp_path, 12_345, 12_345)
    run("init", "plant-a", *GIVEN)
    for path in (config, config.parent, config.parent.parent):
        assert (path.stat().st_uid, path.stat().st_gid) == (12_345, 12_345)
    os.chown(config, 12_346, 12_347)
    run("init", "plant-b", *GIVEN)
    assert (config.stat().st_uid, config.stat().st_gid) == (12_346, 12_347)


def test_two_at_once_lose_no_profile(config, run):
    names = [f"plant-{number}" for number in range(3)]
    env = environment({"SITELINE_CONFIG": str(config)})
    running = [
        subprocess.Popen([*COMMAND, "profile", "init", name, *GIVEN], env=env) for name in names
    ]
    assert [process.wait(60) for process in running] == [0] * len(names)
    assert sorted(written(config)) == names
    assert [*config.parent.iterdir()] == [config]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_full_disk_leaves_the_former_file_and_nothing_else(tmp_path, monkeypatch, name):
    path = tmp_path / "config.toml"
    path.write_text("[plant-a]\n")

    def fail(*arguments):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(OSError, match="no space") as caught:
        replace_file(path, b"[plant-b]\n", follows_link=True)
    monkeypatch.undo()
    assert status_of(caught.value) is Exit.TEMPORARY
    assert caught.value.filename == str(path)
    assert path.read_text() == "[plant-a]\n"
    assert [*tmp_path.iterdir()] == [path]


def test_profiles_are_listed_in_the_order_of_the_file(config, run):
    assert run("list").stdout == f"There are no profiles in {config}.\n"
    assert run("list", how=run_json)["profiles"] == []
    run("init", "zeta", *GIVEN)
    run("init", "alpha", "--base-url", URL, "--certificate-file", "plant.p12")
    listed = run("list", how=run_json)["profiles"]
    assert [one["name"] for one in listed] == ["zeta", "alpha"]
    assert listed[0] == {
        **{"name": "zeta", "base_url": URL, "subject": "s-1"},
        "certificate_file": None,
    }
    rows = [line.split() for line in run("list").stdout.splitlines()]
    assert rows[0] == ["zeta", URL, "s-1"]
    assert rows[1][:2] == ["alpha", URL]
    assert Path(rows[1][2]).name == "plant.p12"


def test_no_secret_of_a_profile_is_shown(config, run):
    config.parent.mkdir(parents=True)
    config.write_text(
        "[plant-a]\nbase_url = 'https://ada:hunter2@h.example'\nsubject = 's@example.com'\n"
        "private_key_file = '''-----BEGIN PRIVATE KEY-----\nhunter2'''\nproxy = 'http://hunter2'\n"
        "password_command = ['echo', 'hunter2']\npassphrase = 'hunter2'\ntries = 3\n"
        "scopes = ['a', 'b']\nstrict = true\nkid = {hunter2 = 'hunter2'}\n"
    )
    for done in (run("list"), run("list", "--json"), run("show", "plant-a", "--json")):
        assert "hunter2" not in done.stdout + done.stderr
    shown = run("show", "plant-a", how=run_json)["members"]
    assert shown == {
        **{"base_url": "(set)", "subject": "s@example.com", "private_key_file": "(set)"},
        **{"proxy": "(set)", "password_command": "(set)", "passphrase": "(set)", "tries": 3},
        **{"scopes": ["a", "b"], "strict": True, "kid": "(set)"},
    }
    text = run("show", "plant-a").stdout
    assert re.search(r"^scopes +a b$", text, re.MULTILINE)
    assert re.search(r"^strict +true$", text, re.MULTILINE)
    assert re.search(r"^proxy +\(set\)$", text, re.MULTILINE)


def test_a_profile_that_is_not_there_is_a_usage_error_that_names_the_others(config, run):
    assert "none at all" in run("show", "plant-a", status=2).stderr
    run("init", "plant-a", *GIVEN)
    error = run("show", "plant-b", how=run_json, status=2)["error"]
    assert error["type"] == "ConfigError"
    assert '"plant-a"' in error["hint"]


@pytest.mark.parametrize("value", [b"[" * 3_000, b"9" * 5_000], ids=["nested", "digits"])
def test_a_value_that_no_profile_has_is_a_usage_error(config, run, value):
    config.parent.mkdir(parents=True)
    config.write_bytes(b"[a]\nx = " + value)
    for action in (["list"], ["show", "a"], ["init", "b", *GIVEN]):
        found = run(*action, how=run_json, status=2)
        assert found["error"]["type"] == "ConfigError"


@systems.MODES
def test_bytes_that_are_no_text_are_refused(config, run):
    option = "--scopes"
    document = run("init", "a", *GIVEN, option, os.fsdecode(b"x\xff"), how=run_json, status=2)
    assert document["error"]["message"] == f"{option} has bytes that are not UTF-8."
    assert not config.exists()
