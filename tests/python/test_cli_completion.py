"""``siteline completion``: what completes the command in bash, zsh and fish."""

import argparse
import os
import select
import shutil
import subprocess
import sys
import time

import pytest
from kit import systems
from kit.command import environment, run_command, run_json
from siteline.cli import completions
from siteline.cli.completion import FILES
from siteline.cli.completions import FOLDER, bash, fish, zsh
from siteline.cli.completions.tree import command_of
from siteline.cli.summaries import SUMMARIES

OF_POSIX = pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX is asked")


def has(shell):
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"there is no {shell} here")


def test_the_files_are_what_the_parser_says_now():
    kept = {name: (FOLDER / name).read_text(encoding="utf-8") for name in FILES.values()}
    assert kept == completions.scripts(), "run python -m siteline.cli.completions --write"


def test_the_files_can_be_compared_by_hand(tmp_path):
    program = [sys.executable, "-m", "siteline.cli.completions"]
    options = {"check": True, "text": True, "capture_output": True, "env": environment()}
    assert subprocess.run(program, **options).stdout == "nothing out of date\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_file_of_a_shell_is_printed_as_it_is(shell):
    name = {"bash": "siteline.bash", "zsh": "_siteline", "fish": "siteline.fish"}[shell]
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert run_command("completion", shell).stdout == text
    document = run_json("completion", shell)
    assert (document["shell"], document["script"]) == (shell, text)


def test_another_shell_is_a_usage_error_and_the_help_says_where_a_file_belongs():
    assert "fish" in run_command("completion", "tcsh", status=2).stderr
    assert "bash-completion/completions/siteline" in run_command("completion", "--help").stdout


@pytest.fixture
def folder(tmp_path):
    """A folder with files and folders to complete."""
    (tmp_path / "plant one.pem").touch()
    (tmp_path / "plants").mkdir()
    return tmp_path


def small():
    """A command with all that a parser can have."""
    parser = argparse.ArgumentParser(prog="siteline")
    commands = parser.add_subparsers(dest="command")
    sync = commands.add_parser("sync", help="it's [one]: of 100%")
    sync.add_argument("-o", "--out", metavar="FOLDER", help="a folder")
    sync.add_argument("--mode", choices=["fast", "full"], default="full", help="not %(default)s")
    sync.add_argument("--all", action="store_true", help="a 'flag' of \\ %(prog)s")
    sync.add_argument("--hidden", help=argparse.SUPPRESS)
    sync.add_argument("store", metavar="STORE", help="a store")
    sync.add_argument("feeds", metavar="FEED", nargs="*", choices=["line-1", "line-2"])
    store = commands.add_parser("store", help="stores").add_subparsers(dest="action")
    store.add_parser("check", help="look for damage").add_argument("store", metavar="STORE")
    store.add_parser("sync", help="another")
    return command_of(parser)


EXPECTED = [
    (["sy"], ["sync"]),
    ([""], ["store", "sync"]),
    (["store", ""], ["check", "sync"]),
    (["store", "ch"], ["check"]),
    (["sync", "--m"], ["--mode"]),
    (["sync", "--mode", ""], ["fast", "full"]),
    (["sync", "--mode", "fa"], ["fast"]),
    (["sync", "--hid"], []),
    (["sync", "pl"], ["plant one.pem", "plants"]),
    (["sync", "--out", "pl"], ["plants"]),
    (["sync", "-o", "pl"], ["plants"]),
    (["store", "check", "pl"], ["plant one.pem", "plants"]),
    (["store", "sync", "pl"], []),
    (["sync", "--mode", "sync", "--al"], ["--all"]),
    (["sync", "--mode", "store", "--al"], ["--all"]),
    (["sync", "plants", "line-2", "line-"], ["line-1", "line-2"]),
]


def in_bash(script, folder, *words):
    line = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _siteline'
    line += '; for one in "${COMPREPLY[@]}"; do echo "$one"; done'
    program = ["bash", "-eu", "-c", f"source ./script\n{line}", "bash", "siteline", *words]
    return asked(program, script, folder)


def asked(program, script, folder):
    (folder / "script").write_text(script, encoding="utf-8")
    done = subprocess.run(
        program,
        **{"cwd": folder, "text": True, "capture_output": True, "timeout": 60, "check": False},
        env={**os.environ, "HOME": str(folder)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.splitlines())


@OF_POSIX
@has("bash")
@pytest.mark.parametrize(("words", "expected"), EXPECTED)
def test_bash_completes_what_a_parser_has(folder, words, expected):
    assert in_bash(bash.script(small()), folder, *words) == expected


@OF_POSIX
@has("bash")
def test_bash_completes_after_the_equals_sign_that_it_splits_at(folder):
    script = bash.script(small())
    assert in_bash(script, folder, "sync", "--mode", "=") == ["fast", "full"]
    assert in_bash(script, folder, "sync", "--mode", "=", "fu") == ["full"]
    assert in_bash(script, folder, "sync", "--mode", "=", "full", "--al") == ["--all"]


@OF_POSIX
@has("bash")
def test_bash_completes_the_command_itself(folder):
    script = (FOLDER / "siteline.bash").read_text(encoding="utf-8")
    assert in_bash(script, folder, "key") == ["keygen"]
    assert in_bash(script, folder, "profile", "") == ["init", "list", "show"]
    assert in_bash(script, folder, "keygen", "--bits", "") == ["2048", "3072", "4096"]
    assert in_bash(script, folder, "completion", "z") == ["zsh"]
    assert in_bash(script, folder, "keygen", "--pass") == [
        "--passphrase-file",
        "--password-command",
    ]


@OF_POSIX
@has("fish")
@pytest.mark.parametrize(("words", "expected"), EXPECTED)
def test_fish_completes_what_a_parser_has(folder, words, expected):
    line = " ".join(["siteline", *words])
    program = ["fish", "--no-config", "-c", f"source ./script; complete -C '{line}'"]
    found = asked(program, fish.script(small()), folder)
    shown = [one.partition("\t")[0].removesuffix("/") for one in found]
    assert [one.replace("\\ ", " ") for one in shown] == expected


@OF_POSIX
@has("fish")
def test_fish_completes_the_command_itself(folder):
    script = (FOLDER / "siteline.fish").read_text(encoding="utf-8")
    program = ["fish", "--no-config", "-c", "source ./script; complete -C 'siteline disc'"]
    shown = f"discover\t{SUMMARIES['discover']}"
    assert asked(program, script, folder) == [shown]


class Zsh:
    """An interactive zsh, whose completion runs only in its line editor."""

    def __init__(self, folder):
        import pty

        self.terminal, theirs = pty.openpty()
        self.process = subprocess.Popen(
            ["zsh", "-f", "-i"],
            **{"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True},
            cwd=folder,
            env={
                **os.environ,
                "HOME": str(folder),
                "TERM": "dumb",
                "LINES": "50",
                "COLUMNS": "300",
            },
        )
        os.close(theirs)
        self.say("PROMPT= RPROMPT= PROMPT_EOL_MARK=; autoload -U compinit; compinit -u -D")
        # What was completed is printed by a key, between marks that no echo of a line has.
        self.say("show() { print -r -- \"<<${BUFFER}\"'>>' }; zle -N show; bindkey '^T' show")
        self.say("source ./script; print rea''dy")
        self.until("ready\r\n")

    def say(self, line):
        os.write(self.terminal, f"{line}\n".encode())

    def until(self, text):
        got, end = "", time.monotonic() + 60
        while text not in got:
            assert time.monotonic() < end, got
            if select.select([self.terminal], [], [], 1)[0]:
                got += os.read(self.terminal, 65_536).decode(errors="replace")
        return got

    def complete(self, line):
        """The line after the tabulator."""
        os.write(self.terminal, f"{line}\t\x14".encode())
        shown = self.until(">>").rpartition("<<")[2].partition(">>")[0]
        os.write(self.terminal, b"\x15")
        return shown

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@pytest.fixture
def in_zsh(folder):
    shells = []

    def begin(script):
        (folder / "script").write_text(script, encoding="utf-8")
        shells.append(Zsh(folder))
        return shells[-1].complete

    yield begin
    for shell in shells:
        shell.close()


@systems.TERMINAL
@has("zsh")
def test_zsh_completes_what_a_parser_has(in_zsh):
    complete = in_zsh(zsh.script(small()))
    for typed, expected in (
        ("sy", "sync "),
        ("store ch", "store check "),
        ("sync --mo", "sync --mode="),
        ("sync --mode fa", "sync --mode fast "),
        ("sync --mode=fu", "sync --mode=full "),
        ("sync --hid", "sync --hid"),
        ("sync --al", "sync --all "),
        ("sync plant\\ ", "sync plant\\ one.pem "),
        ("sync --out pl", "sync --out plants/"),
        ("sync plants line-1 line-2 line-", "sync plants line-1 line-2 line-"),
        ("sync -o plants plants --mo", "sync -o plants plants --mode="),
    ):
        assert complete(f"siteline {typed}") == f"siteline {expected}"


@systems.TERMINAL
@has("zsh")
def test_zsh_completes_the_command_itself(in_zsh):
    complete = in_zsh((FOLDER / "_siteline").read_text(encoding="utf-8"))
    for typed, expected in (
        ("disc", "discover "),
        ("profile sh", "profile show "),
        ("profile show --js", "profile show --json "),
        ("keygen --bits 3", "keygen --bits 3072 "),
        ("completion f", "completion fish "),
    ):
        assert complete(f"siteline {typed}") == f"siteline {expected}"
