"""``siteline profile``: profiles are appended, listed and shown."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json
from siteline.cli.profile_file import append_profile
from siteline.cli.profile_members import MEMBERS
from siteline.errors import ConfigError

URL = "https://customer.example.com"
GIVEN = ("--base-url", URL, "--subject", "s-1", "--private-key-file", "plant.pem")
EXISTING = b"# plants\r\n\r\n[plant-a] # the first\r\nsubject = 'x'   # \xc3\xa9\r\n\r\n# the end"


@pytest.fixture
def config(tmp_path):
    """The path of a profiles file in a folder that does not exist."""
    return tmp_path / "config" / "siteline" / "config.toml"


@pytest.fixture
def run(config, tmp_path):
    """Returns a function that runs an action of `siteline profile` with that file."""

    def run(*arguments, how=run_command, **options):
        env = {"SITELINE_CONFIG": str(config)}
        return how("profile", *arguments, env=env, folder=tmp_path, **options)

    return run


def put(config, content):
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_bytes(content if isinstance(content, bytes) else content.encode())


def written(config):
    return tomllib.loads(config.read_text(encoding="utf-8"))


def test_a_new_profile_connects_a_client(config, run, key, sandbox, tmp_path):
    subject = sandbox.enroll(key.public_jwk)
    given = ("--base-url", sandbox.base_url, "--subject", subject, *GIVEN[4:])
    # The key may come later.
    early = run("init", "early", *given, how=run_json)
    assert early["missing"]["type"] == "CredentialError"
    key.save(tmp_path / "plant.pem")
    document = run("init", "plant-a", *given, how=run_json)
    assert (document["command"], document["path"]) == ("profile init", str(config))
    assert document["missing"] is None
    assert document["members"] == written(config)["plant-a"]
    env = {**sandbox.env(), "SITELINE_CONFIG": str(config)}
    for name in ("early", "plant-a"):
        found = run_json("series", "--raw", "--profile", name, env=env)
        assert found["resources"]["subject"] == subject
    before = config.read_bytes()
    refused = run("init", "plant-a", "--base-url", URL, "--subject", "s-2", status=2)
    assert 'There is a profile "plant-a" already' in refused.stderr
    assert config.read_bytes() == before


def test_paths_belong_to_the_working_folder(config, run, tmp_path):
    (tmp_path / "ca.pem").write_text("")
    run("init", "a", *GIVEN, "--ledger", "memory", "--allow-http")
    run("init", "b", *GIVEN, "--ledger", "plant.ledger")
    assert list(written(config)["b"]) == ["base_url", "subject", "private_key_file", "ledger"]
    assert written(config)["a"]["private_key_file"] == str(tmp_path / "plant.pem")
    assert written(config)["a"]["ledger"] == "memory"
    assert written(config)["a"]["allow_http"] is True
    assert written(config)["b"]["ledger"] == str(tmp_path / "plant.ledger")


@pytest.mark.parametrize(
    "existing", [EXISTING, EXISTING + b"\r\n", b"\xef\xbb\xbf" + EXISTING, b""]
)
def test_the_existing_text_is_kept(config, run, existing):
    put(config, existing)
    run("init", "plant-b", *GIVEN)
    now = config.read_bytes()
    assert now.startswith(existing)
    assert now.count(b"\n") == now.count(b"\r\n" if existing else b"\n")
    assert list(tomllib.loads(now.decode("utf-8-sig")))[-1] == "plant-b"


def test_names_are_quoted(config, run, tmp_path):
    names = ["plain", "plant.a", 'the "first"', "Anlage Süd", "back\\slash", "#1"]
    for name in names:
        run("init", name, *GIVEN)
        assert run("show", name, how=run_json)["members"]["subject"] == "s-1"
    assert list(written(config)) == names
    for name in ["", " a", "a\n[b]", "a\x7f", "\x1b[2J", "\u202eb"]:
        with pytest.raises(ConfigError, match="cannot be the name"):
            append_profile(tmp_path / "other.toml", name, {"base_url": URL})
    assert not (tmp_path / "other.toml").exists()


def test_a_passphrase_command_runs_once(config, run, key, tmp_path):
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
        (("--base-url", URL), "--subject or --certificate-file"),
        ((*GIVEN, "--certificate-file", "x.pem"), "--subject or --certificate-file"),
        ((*GIVEN, "--client-id", "x"), "belongs to --certificate-file"),
        (("--base-url", URL, "--certificate-file", "x", "--kid", "y"), "belongs to --subject"),
        (("--base-url", "https://u:hunter2@h.example", *GIVEN[2:]), "password"),
        ((*GIVEN, "--daily-allowance", "0"), "daily-allowance"),
        ((*GIVEN, "--settle-lag", "soon"), "--settle-lag"),
        ((*GIVEN, "--scopes", os.fsdecode(b"x\xff")), "--scopes has bytes that are not UTF-8."),
        (GIVEN[2:], "--base-url"),
    ],
)
def test_wrong_settings_write_nothing(config, run, arguments, words):
    told = run("init", "plant-a", *arguments, status=2).stderr
    assert words in told
    assert "hunter2" not in told
    assert not config.exists()


def test_values_are_written_as_clients_read_them(config, run, key, tmp_path):
    key.save(tmp_path / "plant.pem")
    more = "--strict --scopes customer.data.read --daily-allowance 500 --allowance-resets 06:00Z "
    more += "--settle-lag 10m --connect-timeout 2 --idle-timeout 7.5 --tries 3 --ledger l.txt"
    words = [*GIVEN, *more.split(), "--application", 'a "b"\\c']
    assert run("init", "plant-a", *words, how=run_json)["missing"] is None
    members = written(config)["plant-a"]
    assert members["strict"] is True
    assert (members["connect_timeout"], members["idle_timeout"]) == (2, 7.5)
    assert members["application"] == 'a "b"\\c'
    env = {"SITELINE_CONFIG": str(config)}
    assert run_json("allowance", "--profile", "plant-a", env=env)["limit"] == 500


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[a]\npassphrase = hunter2\n", "a mistake in line 2 of "),
        (b"stray = 'hunter2'\n", '"stray" is not in a profile'),
        ("[a]\nx = 'é'".encode("utf-16"), "not UTF-8"),
        (b"#" * (1 << 20) + b"\n", "longer"),
        (b"[a]\nx = " + b"[" * 3_000, ""),
        (b"[a]\nx = " + b"9" * 5_000, ""),
    ],
    ids=["syntax", "stray", "utf-16", "long", "nested", "digits"],
)
def test_a_file_without_profiles_is_kept(config, run, content, words):
    put(config, content)
    for action in (["init", "b", *GIVEN], ["list"], ["show", "a"]):
        done = run(*action, "--json", status=2)
        assert '"type": "ConfigError"' in done.stdout
        assert "hunter2" not in done.stdout + done.stderr
        assert words in done.stderr
    assert config.read_bytes() == content
    assert [*config.parent.iterdir()] == [config]


@systems.MODES
def test_modes_are_strict_and_links_followed(config, run, tmp_path):
    run("init", "a", *GIVEN)
    assert config.stat().st_mode & 0o777 == 0o600
    for folder in (config.parent, config.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    kept = tmp_path / "plants.toml"
    config.rename(kept)
    kept.chmod(0o640)
    config.symlink_to(kept)
    run("init", "plant-b", *GIVEN)
    assert config.is_symlink()
    assert kept.stat().st_mode & 0o777 == 0o640
    assert list(written(kept)) == ["a", "plant-b"]


@systems.ROOT
def test_root_leaves_files_to_their_owner(config, run, tmp_path):
    os.chown(tmp_path, 12_345, 12_345)
    run("init", "plant-a", *GIVEN)
    for path in (config, config.parent, config.parent.parent):
        assert (path.stat().st_uid, path.stat().st_gid) == (12_345, 12_345)
    os.chown(config, 12_346, 12_347)
    run("init", "plant-b", *GIVEN)
    assert (config.stat().st_uid, config.stat().st_gid) == (12_346, 12_347)


def test_processes_at_once_lose_no_profile(config):
    names = [f"plant-{number}" for number in range(3)]
    env = environment({"SITELINE_CONFIG": str(config)})
    running = [
        subprocess.Popen([*COMMAND, "profile", "init", name, *GIVEN], env=env) for name in names
    ]
    assert [process.wait(60) for process in running] == [0] * len(names)
    assert sorted(written(config)) == names
    assert [*config.parent.iterdir()] == [config]


def test_every_member_has_an_option(config):
    put(config, "[a]\nmember_of_no_profile = 1\n")
    env = {"SITELINE_CONFIG": str(config)}
    error = run_json("allowance", "--profile", "a", env=env, status=2)["error"]
    known = re.search(r"Known members are (.*)\.", error["hint"])[1].split(", ")
    assert sorted([*MEMBERS, "filter_names", "shape"]) == sorted(known)


def test_profiles_are_listed_in_order(config, run):
    assert run("list").stdout == f"There are no profiles in {config}.\n"
    assert run("list", how=run_json)["profiles"] == []
    assert "no profiles" in run("show", "plant-a", status=2).stderr
    run("init", "zeta", *GIVEN)
    run("init", "alpha", "--base-url", URL, "--certificate-file", "plant.p12")
    first, second = run("list", how=run_json)["profiles"]
    assert first == {"name": "zeta", "base_url": URL, "subject": "s-1", "certificate_file": None}
    assert second["name"] == "alpha"
    rows = [line.split() for line in run("list").stdout.splitlines()]
    assert rows == [["zeta", URL, "s-1"], ["alpha", URL, second["certificate_file"]]]
    assert rows[1][2].endswith("plant.p12")
    error = run("show", "plant-b", how=run_json, status=2)["error"]
    assert error["type"] == "ConfigError"
    assert "zeta" in error["hint"]


def test_no_secret_of_a_profile_is_shown(config, run):
    put(
        config,
        "[plant-a]\nbase_url = 'https://ada:hunter2@h.example'\nsubject = 's@example.com'\n"
        "private_key_file = '''-----BEGIN PRIVATE KEY-----\nhunter2'''\nproxy = 'http://hunter2'\n"
        "password_command = ['echo', 'hunter2']\npassphrase = 'hunter2'\ntries = 3\n"
        "scopes = ['a', 'b']\nstrict = true\nkid = {hunter2 = 'hunter2'}\nidle_timeout = nan\n",
    )
    for done in (run("list"), run("list", "--json"), run("show", "plant-a", "--json")):
        assert "hunter2" not in done.stdout + done.stderr
    shown = run("show", "plant-a", how=run_json)["members"]
    known = {"subject": "s@example.com", "tries": 3, "scopes": ["a", "b"], "strict": True}
    hidden = "base_url private_key_file proxy password_command passphrase kid idle_timeout"
    assert shown == {**known, **dict.fromkeys(hidden.split(), "(set)")}
    text = run("show", "plant-a").stdout
    for line in (r"scopes +a b", r"strict +true", r"proxy +\(set\)"):
        assert re.search(f"^{line}$", text, re.MULTILINE)
