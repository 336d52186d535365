"""Settings from arguments, then environment variables, then a profile."""

import inspect
import json
import logging
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest
import siteline
from kit import systems
from siteline import _passphrase

pytestmark = pytest.mark.sandbox(now=None)

CERTIFICATE = Path(__file__).parent.parent / "keys" / "certificate.pem"
PASSPHRASE = "correct horse battery"
VARIABLES = (
    *("BASE_URL", "SUBJECT", "PRIVATE_KEY_FILE", "PRIVATE_KEY", "PASSPHRASE", "PASSWORD_COMMAND"),
    *("SCOPES", "AUDIENCE", "DAILY_ALLOWANCE", "LEDGER", "CONFIG", "PROFILE"),
)


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The path of the profiles file in a temporary home directory; no variable is set."""
    for name in VARIABLES:
        monkeypatch.delenv(f"SITELINE_{name}", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path / ".config"))
    below = "Library/Application Support" if sys.platform == "darwin" else ".config"
    path = tmp_path / below / "siteline" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def members(shared_sandbox, key, config):
    """The members of a profile for the sandbox. The key is in the same folder as the file."""
    key.save(config.parent / "plant.pem")
    return {
        "base_url": shared_sandbox.base_url,
        "subject": shared_sandbox.enroll(key.public_jwk),
        "private_key_file": "plant.pem",
    }


def write(path, **profiles):
    """Writes profiles as TOML. JSON strings, lists, numbers and booleans are valid TOML."""
    lines = []
    for name, members in profiles.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in members.items())]
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture
def prints(tmp_path):
    """Makes a command that runs a line of Python."""

    def make(line):
        script = tmp_path / "command.py"
        script.write_text(line)
        return [sys.executable, "-I", "-S", str(script)]

    return make


def as_text(command):
    """The command as a user types it."""
    return subprocess.list2cmdline(command) if sys.platform == "win32" else shlex.join(command)


def test_a_named_profile_is_read_and_keywords_win(config, members, monkeypatch):
    more = {"daily_allowance": 7, "settle_lag": "1h", "strict": True}
    write(config, **{"plant-a": members | more})
    client = siteline.Client(profile="plant-a")
    assert sorted(client.discover()) == ["sites", "subject"]
    assert client.allowance.limit == 7
    assert siteline.Client(profile="plant-a", daily_allowance=9).allowance.limit == 9
    monkeypatch.setenv("SITELINE_DAILY_ALLOWANCE", "11")
    assert siteline.Client(profile="plant-a").allowance.limit == 7
    assert siteline.Client("https://h.example", profile="plant-a").base_url == ("https://h.example")


def test_the_audience_of_a_profile_or_variable_reaches_assertions(config, members, monkeypatch):
    write(config, default={**members, "audience": "https://elsewhere.example.com"})
    with pytest.raises(siteline.errors.AuthenticationError, match="aud https://elsewhere"):
        siteline.Client(profile="default").discover()
    usual = f"{members['base_url']}/api/customer/oauth/token"
    monkeypatch.setenv("SITELINE_AUDIENCE", usual)
    siteline.Client().discover()


def test_a_wrong_assertion_setting_names_the_profile(config, members):
    write(config, a={**members, "assertion_lifetime": "6m"})
    with pytest.raises(siteline.errors.ConfigError, match="lifetime") as caught:
        siteline.Client(profile="a")
    assert caught.value.__notes__ == [f'The profile "a" of {config} was read.']


def test_every_keyword_that_a_file_can_hold_is_known_to_a_profile(config, members):
    full = {
        **members,
        "kid": siteline.PrivateKey(config.parent / "plant.pem").thumbprint,
        "strict": True,
        "scopes": ["customer.discovery.read"],
        "audience": f"{members['base_url']}/api/customer/oauth/token",
        **{"daily_allowance": 100, "allowance_resets": "06:00Z", "ledger": "plant.ledger"},
        **{"assertion_lifetime": 60, "clock_tolerance": 1.0, "typ": False, "settle_lag": "10m"},
        **{"max_retry_after": "30s", "tries": 2, "connect_timeout": 2, "response_timeout": 20.5},
        **{"idle_timeout": 10, "max_connections": 8, "max_body_bytes": 1_000_000},
        **{"application": "plant-report/1", "allow_http": False, "ca_bundle": "ca.pem"},
        **{"proxy": "http://proxy.example.com:3128", "tz": "Europe/Berlin", "labels": "device"},
    }
    of_program = {"credential", "profile", "clock", "on_request", "http"}
    keywords = set(inspect.signature(siteline.Client).parameters) - of_program
    keywords |= {one.name for one in fields(siteline.types.Http)}
    # With an agent, key and ledger are not used: tests/python/test_agent.py has such a profile.
    assert keywords - {"agent", "filter_names", "shape"} <= full.keys()
    shutil.copy(CERTIFICATE, config.parent / "ca.pem")
    write(config, full=full)
    with config.open("a") as file:
        file.write('\n[full.shape]\narray = "series"\n')
    client = siteline.Client(profile="full")
    assert sorted(client.discover()) == ["sites", "subject"]
    assert client.tz == "Europe/Berlin"
    assert "label" in pa.schema(client.scan(start=None)).names
    assert client._handle.__getnewargs_ex__()[1]["shape"] == {"array": "series"}
    assert (config.parent / "plant.ledger").exists()


@pytest.fixture
def locked(key, tmp_path):
    key.save(tmp_path / "locked.pem", passphrase=PASSPHRASE)
    return tmp_path / "locked.pem"


def test_a_command_prints_the_passphrase(locked, prints, key):
    for line in (f"print({PASSPHRASE!r})", f"print({PASSPHRASE!r} + '\\r\\nand more')"):
        for command in (prints(line), as_text(prints(line))):
            credential = siteline.Credential("s", locked, password_command=command)
            assert credential.kid == key.thumbprint


def test_on_windows_a_backslash_in_a_command_is_part_of_a_path():
    program, text = r"C:\Vault 2\vault.exe", r'"C:\Vault 2\vault.exe" show it\a'
    assert _passphrase.split(text, is_windows=True) == [program, "show", r"it\a"]
    assert _passphrase.split(text, is_windows=False) == [program, "show", "ita"]
    text = "vault 'a b' # ''"
    assert _passphrase.split(text, is_windows=True) == ["vault", "'a", "b'", "#", "''"]
    assert _passphrase.split(text, is_windows=False) == ["vault", "a b", "#", ""]


def test_a_command_is_read_from_a_profile_and_from_a_variable(
    config, members, locked, prints, monkeypatch
):
    command = prints(f"print({PASSPHRASE!r})")
    members["private_key_file"] = "~/locked.pem"
    write(config, default={**members, "password_command": command})
    siteline.Client(profile="default").discover()
    write(config, default=members)
    with pytest.raises(siteline.errors.CredentialError, match="passphrase"):
        siteline.Client()
    monkeypatch.setenv("SITELINE_PASSWORD_COMMAND", as_text(command))
    siteline.Client().discover()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"import sys; print({PASSPHRASE!r}); sys.exit(3)", "ended with status 3"),
        (
            f"import sys; print({PASSPHRASE!r}); "
            f"print({PASSPHRASE!r}, 'no vault', file=sys.stderr); sys.exit(1)",
            "no vault",
        ),
        ("pass", "printed nothing"),
        (f"print({PASSPHRASE[::-1]!r})", "passphrase"),
    ],
    ids=["fails", "fails and says why", "silent", "wrong"],
)
def test_the_error_for_a_failing_command_does_not_show_its_output(
    locked, prints, line, words, capfd, caplog
):
    caplog.set_level(logging.DEBUG)
    command = prints(line)
    with pytest.raises(siteline.errors.CredentialError, match=words) as caught:
        siteline.Credential("s", locked, password_command=command)
    assert caught.value.__context__ is None
    seen = [str(caught.value), repr(vars(caught.value)), caplog.text, *capfd.readouterr()]
    for secret in (PASSPHRASE, PASSPHRASE[::-1]):
        assert secret not in "".join(seen)


def test_a_command_that_cannot_run_or_prints_no_line_is_an_error(
    locked, tmp_path, monkeypatch, prints
):
    with pytest.raises(siteline.errors.CredentialError, match="could not be started"):
        siteline.Credential("s", locked, password_command=[str(tmp_path / "absent")])
    endless = prints("import sys\nwhile True: sys.stdout.write('secret' * 1_000)")
    with pytest.raises(siteline.errors.CredentialError, match="printed 65,536 bytes without the"):
        siteline.Credential("s", locked, password_command=endless)
    run = _passphrase.run
    monkeypatch.setattr(_passphrase, "run", lambda words, limit: run(words, 0.5))
    command = prints(f"import time; print(end={PASSPHRASE!r}, flush=True); time.sleep(600)")
    with pytest.raises(siteline.errors.CredentialError, match="did not end within") as caught:
        siteline.Credential("s", locked, password_command=command)
    assert PASSPHRASE not in repr(vars(caught.value))
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "more",
    [
        "while True: sys.stdout.write('more\\n' * 1_000)",
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])",
        "print('x' * 1_000_000, file=sys.stderr)",
    ],
    ids=["prints without end", "leaves a program behind", "says much"],
)
def test_the_first_line_counts_whatever_a_command_does_then(locked, prints, key, more, monkeypatch):
    monkeypatch.setattr(_passphrase, "AFTER_LINE", 0.2)
    first = f"import subprocess, sys, time; print({PASSPHRASE!r}, flush=True)"
    credential = siteline.Credential("s", locked, password_command=prints(f"{first}\n{more}"))
    assert credential.kid == key.thumbprint


@systems.MODES
def test_a_profile_that_others_may_write_to_does_not_name_a_command_unnoticed(
    config, members, locked, prints, tmp_path
):
    mark = tmp_path / "ran"
    members["private_key_file"] = str(locked)
    members["password_command"] = prints(f"open({str(mark)!r}, 'w'); print({PASSPHRASE!r})")
    write(config, default=members)
    config.chmod(0o664)
    with pytest.warns(siteline.SitelineWarning, match=r"mode 664.*the password_command.*go-w"):
        siteline.Client(profile="default")
    mark.unlink()
    write(config, default={**members, "strict": True})
    config.chmod(0o606)
    with pytest.raises(siteline.errors.CredentialError, match=r"can write to .mode 606."):
        siteline.Client(profile="default")
    assert not mark.exists(), "the command must not run"
    # Without a command in the file, nobody who writes to the file can choose what runs.
    del members["password_command"]
    write(config, default={**members, "private_key_file": str(locked)})
    with pytest.raises(siteline.errors.CredentialError, match="passphrase"):
        siteline.Client(profile="default")


def test_an_invalid_command_is_refused(locked):
    for wrong in ("", [], [""], "pass 'show"):
        with pytest.raises(siteline.errors.CredentialError, match="password_command"):
            siteline.Credential("s", locked, password_command=wrong)
    with pytest.raises(TypeError, match="password_command="):
        siteline.Credential("s", locked, password_command=7)
