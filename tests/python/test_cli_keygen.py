"""``siteline keygen``: a key, and its public half for the enrollment."""

import json
import subprocess
import sys

import pytest
import siteline
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json

PASSPHRASE = "correct horse"
SMALL = ("--bits", "2048")


def public_half(text):
    """The JWK in the text for a person."""
    return json.loads(text[text.index("{") :])


def test_the_key_is_kept_and_its_public_half_is_printed(tmp_path):
    done = run_command("keygen", *SMALL, folder=tmp_path)
    key = siteline.PrivateKey.load(tmp_path / "siteline-key.pem", strict=True)
    assert public_half(done.stdout) == key.public_jwk
    assert f"kid (thumbprint): {key.thumbprint}\n" in done.stdout
    assert "not encrypted" in done.stdout
    assert "PRIVATE" not in done.stdout
    assert done.stderr == ""


def test_a_key_has_3072_bits_unless_another_size_is_asked_for(tmp_path):
    document = run_json("keygen", "key.pem", folder=tmp_path)
    assert siteline.PrivateKey.load(tmp_path / "key.pem").bits == document["bits"] == 3072
    run_command("keygen", "other.pem", "--bits", "1024", folder=tmp_path, status=2)
    assert not (tmp_path / "other.pem").exists()


def test_the_document_has_what_the_administrator_enrolls(tmp_path, sandbox):
    document = run_json("keygen", "key.pem", *SMALL, folder=tmp_path)
    key = siteline.PrivateKey.load(tmp_path / "key.pem")
    assert document["command"] == "keygen"
    assert document["path"] == "key.pem"
    assert document["kid"] == key.thumbprint
    assert document["encrypted"] is False
    subject = sandbox.enroll(document["public_jwk"])
    credential = siteline.Credential(subject, tmp_path / "key.pem")
    assert sandbox.client(credential=credential).discover()["subject"] == subject


@systems.MODES
def test_only_the_owner_can_read_the_key(tmp_path):
    run_command("keygen", "key.pem", *SMALL, folder=tmp_path)
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600


def test_an_existing_file_is_replaced_only_when_that_is_asked_for(tmp_path):
    path = tmp_path / "key.pem"
    path.write_text("an enrolled key")
    # No passphrase is asked for in vain: the command would fail, and does not run.
    refused = run_command(
        "keygen", path, *SMALL, "--password-command", str(tmp_path / "absent"), status=2
    )
    assert "exists already" in refused.stderr
    assert "--overwrite" in refused.stderr
    assert path.read_text() == "an enrolled key"
    run_command("keygen", path, *SMALL, "--overwrite")
    assert siteline.PrivateKey.load(path).bits == 2048
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_that_leads_nowhere_is_an_existing_file(tmp_path):
    path = tmp_path / "key.pem"
    path.symlink_to(tmp_path / "elsewhere.pem")
    run_command("keygen", path, *SMALL, status=2)
    assert not (tmp_path / "elsewhere.pem").exists()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    document = run_json("keygen", tmp_path / "absent" / "key.pem", *SMALL, status=2)
    assert document["error"]["type"] == "CredentialError"
    assert str(tmp_path / "absent") in document["error"]["message"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "", "\nand more\n"])
def test_the_passphrase_is_the_first_line_of_a_file(tmp_path, end):
    (tmp_path / "passphrase").write_bytes(f"{PASSPHRASE}{end}".encode())
    (tmp_path / "passphrase").chmod(0o600)
    done = run_command(
        "keygen", "key.pem", *SMALL, "--passphrase-file", "passphrase", folder=tmp_path
    )
    assert ", encrypted" in done.stdout
    assert PASSPHRASE not in done.stdout
    assert done.stderr == ""
    opens(tmp_path / "key.pem")


def opens(path):
    """The passphrase opens the key, and nothing else does."""
    siteline.PrivateKey.load(path, passphrase=PASSPHRASE)
    with pytest.raises(siteline.CredentialError, match="encrypted"):
        siteline.PrivateKey.load(path)


def test_the_passphrase_can_come_from_standard_input_or_from_a_command(tmp_path):
    path = tmp_path / "key.pem"
    run_command("keygen", path, *SMALL, "--passphrase-file", "-", stdin=f"{PASSPHRASE}\n")
    opens(path)
    script = tmp_path / "prints.py"
    script.write_text(f"print({PASSPHRASE!r})")
    command = subprocess.list2cmdline([sys.executable, str(script)])
    arguments = ("--overwrite", "--password-command", command)
    assert run_json("keygen", path, *SMALL, *arguments)["encrypted"] is True
    opens(path)


@systems.MODES
def test_a_passphrase_that_others_can_read_is_warned_of(tmp_path):
    (tmp_path / "passphrase").write_text(PASSPHRASE)
    (tmp_path / "passphrase").chmod(0o644)
    arguments = ("key.pem", *SMALL, "--passphrase-file", "passphrase")
    done = run_command("keygen", *arguments, folder=tmp_path)
    assert "Other users can read the passphrase file passphrase (mode 644)" in done.stderr


def test_no_key_is_made_without_the_passphrase_that_was_asked_for(tmp_path):
    (tmp_path / "empty").touch(0o600)
    (tmp_path / "blank").write_text("\nsecond line\n")
    for arguments in (
        ("--passphrase-file", "empty"),
        ("--passphrase-file", "blank"),
        ("--passphrase-file", "absent"),
        ("--password-command", str(tmp_path / "absent")),
        ("--password-command", subprocess.list2cmdline([sys.executable, "-c", "pass"])),
        ("--passphrase-file", "empty", "--encrypt"),
    ):
        run_command("keygen", "key.pem", *SMALL, *arguments, folder=tmp_path, status=2)
        assert not (tmp_path / "key.pem").exists()


def test_no_argument_takes_a_passphrase_itself(tmp_path):
    text = run_command("keygen", "--help").stdout
    assert "A passphrase is never the value of an argument" in " ".join(text.split())
    done = run_command("keygen", "key.pem", "--passphrase", PASSPHRASE, folder=tmp_path, status=2)
    assert PASSPHRASE in done.stderr or "No such file" in done.stderr
    assert not (tmp_path / "key.pem").exists()


def typing(path, *lines):
    """Run it on a terminal, where these lines are typed at its prompts; return what that shows."""
    spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    program = [sys.executable, "-c", spawn, *COMMAND, "keygen", path, *SMALL, "--encrypt"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program, env=environment(), **pipes) as process:
        shown = b""
        for line in lines:
            # Before the prompt it would be thrown away.
            while not shown.endswith(b": "):
                shown += (part := process.stdout.read1())
                assert part, shown
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            shown += b"|"
        shown += process.stdout.read()
    return process.returncode, shown.decode()


@systems.TERMINAL
def test_the_passphrase_is_asked_for_twice_on_a_terminal_and_not_shown(tmp_path):
    status, shown = typing(tmp_path / "key.pem", PASSPHRASE, PASSPHRASE)
    assert (status, PASSPHRASE in shown) == (0, False), shown
    # A person is told what comes next.
    assert "siteline profile init" in shown
    opens(tmp_path / "key.pem")


@systems.TERMINAL
def test_passphrases_that_differ_make_no_key(tmp_path):
    status, shown = typing(tmp_path / "key.pem", PASSPHRASE, "correct house")
    assert (status, "differ" in shown) == (2, True), shown
    assert not (tmp_path / "key.pem").exists()


@systems.SIGNALS
def test_without_a_terminal_the_passphrase_is_not_read_from_a_pipe(tmp_path):
    done = subprocess.run(
        [*COMMAND, "keygen", tmp_path / "key.pem", *SMALL, "--encrypt"],
        input=f"{PASSPHRASE}\n{PASSPHRASE}\n",
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        env=environment(),
    )
    assert done.returncode == 2
    assert "--passphrase-file" in done.stderr
    assert not (tmp_path / "key.pem").exists()
