"""``siteline keygen``: a key, and its public half for the enrollment."""

import json
import subprocess
import sys

import pytest
import siteline
from kit import systems
from kit.command import COMMAND, on_terminal, run_command, run_json, run_process, run_program

PASSPHRASE = "correct horse"
SMALL = ("--bits", "2048")


@pytest.fixture
def made(monkeypatch, key):
    """Makes `keygen` use one key, because a new key takes a second."""

    class Keys:
        generate = staticmethod(lambda bits: key)
        load = siteline.PrivateKey.load

    monkeypatch.setattr(siteline, "PrivateKey", Keys)
    return key


def opens(path, passphrase=PASSPHRASE):
    """Checks that only the passphrase opens the key."""
    siteline.PrivateKey.load(path, passphrase=passphrase)
    with pytest.raises(siteline.errors.CredentialError, match="encrypted"):
        siteline.PrivateKey.load(path)


def test_a_key_of_3072_bits_is_made(tmp_path):
    done = run_process("keygen", folder=tmp_path)
    key = siteline.PrivateKey.load(tmp_path / "siteline-key.pem", strict=True)
    assert json.loads(done.stdout[done.stdout.index("{") :]) == key.public_jwk
    assert f"kid (thumbprint): {key.thumbprint}\n" in done.stdout
    assert "not encrypted" in done.stdout
    assert "PRIVATE" not in done.stdout
    assert (key.bits, done.stderr) == (3072, "")
    run_command("keygen", "other.pem", "--bits", "1024", folder=tmp_path, status=2)
    assert not (tmp_path / "other.pem").exists()


def test_the_document_has_what_is_enrolled(tmp_path, sandbox):
    document = run_json("keygen", "key.pem", *SMALL, folder=tmp_path)
    key = siteline.PrivateKey.load(tmp_path / "key.pem")
    assert (document["command"], document["path"], document["bits"]) == ("keygen", "key.pem", 2048)
    assert (document["kid"], document["encrypted"]) == (key.thumbprint, False)
    subject = sandbox.enroll(document["public_jwk"])
    credential = siteline.Credential(subject, tmp_path / "key.pem")
    assert sandbox.client(credential=credential).discover()["subject"] == subject


@systems.MODES
def test_a_file_is_replaced_only_with_overwrite(tmp_path):
    path = tmp_path / "key.pem"
    path.write_text("an enrolled key")
    # The command for the passphrase would fail, and does not run.
    absent = str(tmp_path / "absent")
    told = run_command("keygen", path, *SMALL, "--password-command", absent, status=2).stderr
    assert "exists already" in told
    assert "--overwrite" in told
    assert path.read_text() == "an enrolled key"
    run_command("keygen", path, *SMALL, "--overwrite")
    assert siteline.PrivateKey.load(path).bits == 2048
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [path]


def test_an_unusable_place_is_refused(tmp_path):
    link = tmp_path / "key.pem"
    link.symlink_to(tmp_path / "elsewhere.pem")
    run_command("keygen", link, *SMALL, status=2)
    assert not (tmp_path / "elsewhere.pem").exists()
    document = run_json("keygen", tmp_path / "absent" / "key.pem", *SMALL, status=2)
    assert document["error"]["type"] == "CredentialError"
    assert str(tmp_path / "absent") in document["error"]["message"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "", "\nand more\n"])
def test_the_passphrase_is_a_first_line(tmp_path, made, end):
    (tmp_path / "passphrase").write_bytes(f"{PASSPHRASE}{end}".encode())
    (tmp_path / "passphrase").chmod(0o600)
    words = ("keygen", "key.pem", "--passphrase-file", "passphrase")
    done = run_command(*words, folder=tmp_path)
    assert ", encrypted" in done.stdout
    assert PASSPHRASE not in done.stdout
    assert done.stderr == ""
    opens(tmp_path / "key.pem")


@systems.MODES
def test_a_passphrase_has_other_sources(tmp_path, made):
    path, script = tmp_path / "key.pem", tmp_path / "prints.py"
    run_command("keygen", path, "--passphrase-file", "-", stdin=f"{PASSPHRASE}\n")
    opens(path)
    script.write_text(f"print({PASSPHRASE!r})")
    command = subprocess.list2cmdline([sys.executable, str(script)])
    arguments = ("--overwrite", "--password-command", command)
    assert run_json("keygen", path, *arguments)["encrypted"] is True
    opens(path)
    (tmp_path / "passphrase").write_text(PASSPHRASE)
    (tmp_path / "passphrase").chmod(0o644)
    arguments = (path, "--overwrite", "--passphrase-file", "passphrase")
    told = run_command("keygen", *arguments, folder=tmp_path).stderr
    assert "Other users can read the passphrase file passphrase (mode 644)" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("--passphrase-file", "empty"),
        ("--passphrase-file", "blank"),
        ("--passphrase-file", "absent"),
        ("--password-command", "/absent/command"),
        ("--password-command", subprocess.list2cmdline([sys.executable, "-c", "pass"])),
        ("--passphrase-file", "empty", "--encrypt"),
        ("--passphrase", PASSPHRASE),
    ],
)
def test_no_key_without_its_passphrase(tmp_path, arguments):
    (tmp_path / "empty").touch(0o600)
    (tmp_path / "blank").write_text("\nsecond line\n")
    run_command("keygen", "key.pem", *SMALL, *arguments, folder=tmp_path, status=2)
    assert not (tmp_path / "key.pem").exists()


def typing(path, *lines):
    return on_terminal("keygen", path, *SMALL, "--encrypt", typed=lines)


@systems.TERMINAL
def test_a_terminal_asks_twice_for_the_passphrase(tmp_path):
    status, shown = typing(tmp_path / "key.pem", PASSPHRASE, "correct house")
    assert (status, "differ" in shown) == (2, True), shown
    assert not (tmp_path / "key.pem").exists()
    status, shown = typing(tmp_path / "key.pem", PASSPHRASE, PASSPHRASE)
    assert (status, PASSPHRASE in shown) == (0, False), shown
    assert "siteline profile init" in shown, "the next step"
    opens(tmp_path / "key.pem")


@systems.SIGNALS
def test_a_pipe_is_no_terminal(tmp_path):
    words = (*COMMAND, "keygen", tmp_path / "key.pem", *SMALL, "--encrypt")
    typed = f"{PASSPHRASE}\n{PASSPHRASE}\n"
    done = run_program(*words, input=typed, start_new_session=True)
    assert done.returncode == 2
    assert "--passphrase-file" in done.stderr
    assert not (tmp_path / "key.pem").exists()
