"""``siteline completion``: the scripts that shtab makes for five shells."""

import json
import os
import shutil

import pytest
from kit.command import run_program
from siteline.cli import completion, main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the shells are those of POSIX")


def has(shell):
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


def printed(capsys, *arguments):
    assert main(["completion", *arguments]) == 0
    return capsys.readouterr().out


@pytest.fixture
def folder(tmp_path):
    """A folder with a file and a folder to complete."""
    (tmp_path / "plant.pem").touch()
    (tmp_path / "plants").mkdir()
    return tmp_path


def ask(folder, script, program):
    """Returns the sorted lines that a shell prints after it has read the script."""
    (folder / "script").write_text(script, encoding="utf-8")
    done = run_program(*program, cwd=folder, env={"HOME": str(folder)})
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.splitlines())


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_package_contains_the_script(capsys, shell):
    text = printed(capsys, shell)
    assert "siteline" in text
    with open(os.path.join(completion.FOLDER, shell), encoding="utf-8") as file:
        assert file.read().rstrip("\n") == text.rstrip("\n")
    document = json.loads(printed(capsys, shell, "--json"))
    assert (document["shell"], document["script"].rstrip("\n")) == (shell, text.rstrip("\n"))


def test_without_scripts_the_command_fails(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(completion, "FOLDER", str(tmp_path))
    assert main(["completion", "bash"]) == 2
    assert "no completion scripts" in capsys.readouterr().err


@has("bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["key"], ["keygen"]),
        (["profile", ""], ["init", "list", "show"]),
        (["store", "ch"], ["check"]),
        (["keygen", "--bits", ""], ["2048", "3072", "4096"]),
        (["keygen", "--pass"], ["--passphrase-file", "--password-command"]),
        (["sync", "--profile", "x", "--js"], ["--json"]),
        (["store", "check", "pla"], ["plant.pem", "plants"]),
        (["read", "-o", "pla"], ["plant.pem", "plants"]),
    ],
)
def test_bash_completes_commands_options_choices_and_files(capsys, folder, words, expected):
    line = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_siteline'
    line += '; for one in "${COMPREPLY[@]}"; do echo "$one"; done'
    program = ["bash", "-c", f"source ./script\n{line}", "bash", "siteline", *words]
    assert ask(folder, printed(capsys, "bash"), program) == expected


@has("fish")
def test_fish_completes_a_command(capsys, folder):
    program = ["fish", "--no-config", "-c", "source ./script; complete -C 'siteline seri'"]
    [line] = ask(folder, printed(capsys, "fish"), program)
    assert line.partition("\t")[0] == "series"


@has("zsh")
def test_zsh_accepts_the_script(capsys, folder):
    assert ask(folder, printed(capsys, "zsh"), ["zsh", "-n", "script"]) == []
