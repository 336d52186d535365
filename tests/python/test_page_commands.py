"""The commands in docs/command.md run in a shell with the output and status that it shows.

The comparison ignores numbers, times and paths, because the page shows another plant.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kit import systems
from kit.command import COMMAND, environment, run_command, run_program
from kit.doctor import sandbox_profile
from kit.feeds_file import FEEDS, write_feeds
from kit.pages import DOCS, blocks
from siteline.cli.exits import Exit
from siteline.cli.parser import parser_of

pytestmark = [pytest.mark.once, systems.SIGNALS]

CONSOLE = [re.sub(r"\\\n +", "", text) for text in blocks("command.md", "console")]


def shell_lines():
    for page in sorted([*DOCS.glob("*.md"), *DOCS.glob("internals/*.md")]):
        for block in blocks(page, "console"):
            for line in re.findall(r"^\$ siteline (.*)$", block.replace("\\\n", ""), re.MULTILINE):
                words = shlex.split(line, comments=True)
                ends = (at for at, word in enumerate(words) if word[0] in "|>&" or word[-1] == ";")
                end = next(ends, None)
                yield page.name, [*words[:end], *(words[end].rstrip(";|>&"),)] if end else words


def test_every_command_of_a_page_is_one_that_siteline_takes():
    lines = [(page, [word for word in words if word]) for page, words in shell_lines()]
    assert {"operating.md", "command.md", "agent.md"} <= {page for page, _ in lines}
    for page, words in lines:
        if "--help" not in words and "--version" not in words:
            try:
                parser_of().parse_args(words)
            except SystemExit:
                pytest.fail(f"{page}: siteline {shlex.join(words)}")


def test_each_block_of_the_page_is_typed():
    text = Path(__file__).read_text(encoding="utf-8")
    begun = re.findall(r'"(siteline [\w .:-]+|set -a)', text)
    begun += [f"siteline {one}" for one in STORED]
    typed = tuple(f"$ {name}" for name in begun)
    assert [one for one in CONSOLE if not one.startswith(typed)] == []
    indented = re.compile(r"^ +```", re.MULTILINE)
    assert not [page for page in DOCS.rglob("*.md") if indented.search(page.read_text("utf-8"))]


class Shell:
    """A folder with the profile of the pages. Tests run the lines of a page in it."""

    def __init__(self, folder, sandbox):
        self.folder, self.sandbox = folder, sandbox
        (folder / "bin").mkdir()
        for name, words in (("siteline", COMMAND), ("python", [sys.executable])):
            program = folder / "bin" / name
            program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
            program.chmod(0o700)
        self.subject = sandbox.env()["SITELINE_SUBJECT"]
        self.settings = {
            **{"COLUMNS": "80", "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
            **{"XDG_STATE_HOME": str(folder / "state"), "SITELINE_PROFILE": "plant-a"},
            **self.set_profile(),
        }
        self.variables = environment(self.settings)

    def set_profile(self, daily_allowance=5000):
        more = {"daily_allowance": daily_allowance}
        return sandbox_profile(self.sandbox, self.folder, "plant-a", **more)

    def type(self, line, status=0):
        """Runs a line, which must end with this status. Returns its output."""
        if re.fullmatch(r"siteline (?!agent)[^|;&<>$`]*", line):
            words = shlex.split(line, comments=True)[1:]
            done = run_command(*words, env=self.settings, folder=self.folder, status=status)
        else:
            done = run_program("/bin/sh", "-c", line, env=self.settings, cwd=self.folder)
        assert done.returncode == status, (line, done.returncode, done.stdout, done.stderr)
        # The page's subject is longer than the sandbox's.
        return (done.stderr + done.stdout).replace(self.subject, "subject-from-enrollment")

    @contextlib.contextmanager
    def serving(self, line):
        """Runs a line until the block ends. Yields its output."""
        with subprocess.Popen(
            ["/bin/sh", "-c", f"exec {line}"], cwd=self.folder, env=self.variables,
            stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            try:
                yield process.stdout
            finally:
                process.terminate()


@pytest.fixture
def shell(sandbox, tmp_path):
    return Shell(tmp_path, sandbox)


def block(first):
    """Returns the lines of the block that starts like this, each with its output on the page."""
    [text] = [one for one in CONSOLE if one.startswith(f"$ {first}")]
    typed = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [one.partition("\n")[::2] for one in typed]


NUMBER = r"(?<![A-Za-z\d])-?\d[\d.,:TZ-]*(?: (?:[kMG]B|bytes|ms|s|min|h|d)\b)?"


def words(line):
    """Removes numbers, times, paths and ids from a line, and makes nouns singular."""
    line = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[\w-]{43}|\bhttps?://\S+|(?<!\w)/\S+|\bintegration-\d+|"
                  r"\bsubject-from-enrollment|\S*\bplant-[\d-]+\.siteline", "…", line)  # fmt: skip
    line = re.sub(r"\bline-\d", "feed", line)
    line = re.sub(r"\bits owner [\w-]+", "its owner", line)
    line = re.sub(NUMBER, "#", re.sub("[█▓▒·]{2,}", "…", line))
    line = re.sub(r"\b(page|request|point)s\b", r"\1", line)
    return " ".join(line.split())


def unprinted(shown, printed):
    """Returns the lines of the page that the command does not print, except for "…"."""
    there = {words(line) for line in printed.splitlines()}
    lines = (line for line in shown.splitlines() if line.strip() != "…")
    return [line for line in lines if words(line) not in there]


def with_jq(line):
    """Removes the `jq` part of a line if `jq` is not installed."""
    return line if shutil.which("jq") else line.partition(" | jq ")[0]


def is_typed(shell, first):
    for line, shown in block(first):
        printed = shell.type(with_jq(line))
        if with_jq(line) == line:
            assert unprinted(shown, printed) == [], line


PAGE_FEEDS = FEEDS.replace("500", "1_000").replace("2026-11-17", "2026-11-10")
STORE_FEEDS = """
[feeds.line-2]
site = "S1"
line = "L2"
interval = "5m"
start = 2026-11-10

[feeds.line-3]
site = "S2"
line = "L3"
interval = "1h"
page_size = 100
start = 2026-11-01
"""


@pytest.fixture
def feeds(shell):
    write_feeds(shell.folder, PAGE_FEEDS)


@pytest.fixture(scope="module")
def plant(shared_sandbox, tmp_path_factory):
    """A shell with the store of the page: one feed is complete after three syncs, one partial."""
    shell = Shell(tmp_path_factory.mktemp("plant"), shared_sandbox)
    (shell.folder / "backups").mkdir()
    write_feeds(shell.folder, STORE_FEEDS)
    sync = "siteline sync feeds.toml plant.siteline"
    shell.type(f"{sync} --feed line-2")
    shell.type(f"{sync} --feed line-3 --max-pages 4", Exit.INCOMPLETE)
    for time in ("1d", "356m"):
        shared_sandbox.clock.advance(time)
        shell.type(f"{sync} --feed line-2")
    return shell


def test_keys_and_profiles(shell, tmp_path):
    (shell.folder / "plant-a.pem").unlink()
    (shell.folder / "config.toml").unlink()
    (keygen, shown), (init, said), (series, _) = block("siteline keygen")
    assert "--encrypt" in keygen, "it prompts for a passphrase"
    told = shell.type(keygen.replace("--encrypt", "--password-command 'echo secret'"))
    lines = [
        line for line in shown.splitlines() if not line.startswith(("Pass", "The same", '  "'))
    ]
    assert unprinted("\n".join(lines), told) == []
    assert re.findall(r'"(\w+)":', told) == re.findall(r'"(\w+)":', shown)
    assert unprinted(said, shell.type(init)) == []
    is_typed(shell, "siteline profile list")
    shell.set_profile()
    assert "L2" in shell.type(series)


def test_the_doctor_names_a_missing_key(shell):
    [(line, shown)] = block("siteline doctor")
    (shell.folder / "plant-a.pem").unlink()
    # Lines wrap differently if a path is longer.
    parts = [re.sub(r"\n {9,}", " ", text) for text in (shown, shell.type(line, Exit.USAGE))]
    assert unprinted(*parts) == []


def test_the_list_of_series(shell):
    is_typed(shell, "siteline series temperature")


def test_a_plan_and_a_sync_which_the_allowance_ends(shell, feeds, sandbox):
    is_typed(shell, "siteline sync feeds.toml plant.siteline\nSync complete")
    sandbox.clock.advance("1d")
    is_typed(shell, "siteline sync feeds.toml plant.siteline --dry-run")
    shell.set_profile(daily_allowance=3)
    is_typed(shell, "siteline sync feeds.toml plant.siteline; echo $?")


def test_a_sandbox_and_a_shell_that_asks_it(shell):
    [(line, shown)] = block("siteline sandbox --now")
    [(_, place)] = re.findall(r"(env file +)(\S+)", shown)
    (set_variables, _), (discover, _) = block("set -a")
    assert place in set_variables
    with shell.serving(line) as output:
        printed = output.readline() + output.readline()
        assert unprinted(shown, printed) == []
        here = printed.split()[-1]
        asked = f"{set_variables.replace(place, here)}; unset SITELINE_PROFILE; {discover}"
        assert "L2" in shell.type(asked)


def test_an_agent_and_a_program_below_it(shell):
    (serve, _), (run, _) = block("siteline agent")
    with shell.serving(serve) as output:
        assert output.readline().startswith("SITELINE_AGENT=unix:")
    program = """
import siteline, sys
print(sys.argv[1:], [row["line_id"] for row in siteline.Client().series().records()][:1])
"""
    (shell.folder / "nightly.py").write_text(program, encoding="utf-8")
    assert "['--line', 'L2'] ['L" in shell.type(run)


READ = "siteline read --line L2 --start 2026-11-01 --end 2026-11-08 --interval 5m"


def test_reads(shell):
    is_typed(shell, f"{READ} -o week.parquet")


def test_a_read_that_fails_is_resumed(shell, sandbox):
    sandbox.fault(on="data", status=503, skip=5, times=4)
    (read, failed), (resume, done) = block(f"{READ} --page-size 1000 -o week.csv")
    assert unprinted(failed, shell.type(read, Exit.TEMPORARY)) == []
    assert unprinted(done, shell.type(resume)) == []


STORED = ["--help", "coverage plant.siteline --now", "coverage plant.siteline --lateness"]
STORED += ["changes", "allowance", *(f"store {one}" for one in ("check", "backup", "info"))]
STORED += ["store export", "store restore"]


@pytest.mark.parametrize("first", [f"siteline {one}" for one in STORED])
def test_what_a_store_has(plant, first):
    if first == "siteline store restore":
        plant.type("siteline store backup plant.siteline backups/plant-2026-11-21.siteline")
    is_typed(plant, first)
    for backup in (plant.folder / "backups").iterdir():
        backup.unlink()


def test_the_commands_of_the_page_for_operators(shell, feeds):
    lines = re.findall(
        r"^\$ (siteline .*)$", "".join(blocks("operating.md", "console")), re.MULTILINE
    )
    assert len(lines) == 5
    printed = [shell.type(line) for line in lines]
    assert printed[0].startswith("Sync complete")
    assert all(printed)


def test_a_coverage_for_a_monitor(plant):
    [(line, _)] = block("siteline coverage plant.siteline --json")
    command, _, question = line.partition(" | ")
    assert question.startswith("jq -e 'all(.feeds[]; .spans.unread < 7200)")
    feeds = json.loads(plant.type(f"{command} --now 2026-11-21T06:00Z"))["feeds"]
    assert [feed["spans"]["unread"] < 7200 for feed in feeds] == [True, False]
