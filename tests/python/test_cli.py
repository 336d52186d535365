"""The command as a whole: exit statuses, stdout and stderr, interrupts, closed and full streams."""

import errno
import inspect
import json
import logging
import os
import re
import shlex
import signal
import sys
import warnings
from pathlib import Path

import pytest
import siteline
import siteline.cli.coverage
from kit import systems
from kit.command import COMMAND, run_command, run_json, run_process, run_program, start_command
from kit.feeds_file import write_feeds
from kit.waiting import wait_until
from siteline.cli import main
from siteline.cli.exits import Exit, status_of, table
from siteline.cli.summaries import SUMMARIES

STATUSES = {
    1: "ClosedError ForkError InternalError SitelineError",
    2: "BookmarkError ConfigError CredentialError FeedChanged ProxyError QueryError "
    "RedirectRefused StoreError TlsError",
    3: "AuthenticationError ClockSkewError RequestRejected ScopeError ServiceError",
    4: "AgentUnavailable DeadlineExceeded RateLimited ServiceUnavailable StoreFull TransportError "
    "TransportTimeout TruncatedBody",
    5: "AllowanceExhausted",
    6: "CursorLoop CursorRejected EndlessChain PageLimitReached UnreadRange",
    7: "BodyTooLarge ProtocolError StoreCorrupt",
    75: "StoreBusy",
}
QUERY = ["--site", "S1", "--line", "L2", "--start", "2026-11-18", "--end", "2026-11-19"]
QUERY += ["--interval", "1h", "--page-size", "30"]


def test_each_siteline_error_has_its_status():
    found = {}
    for name in siteline.errors.__all__:
        kind = getattr(siteline.errors, name)
        if inspect.isclass(kind) and issubclass(kind, siteline.SitelineError):
            found.setdefault(status_of(kind("a message")), set()).add(name)
    assert found == {status: set(names.split()) for status, names in STATUSES.items()}


@pytest.mark.parametrize("words", ["keygen", "profile init", "read", "sync"])
def test_no_secret_is_taken_as_an_argument(words):
    shown = run_command(*words.split(), "--help").stdout
    assert not re.search(r"--(passphrase|password|token|key|secret) ", shown), shown


def test_other_errors_have_their_status():
    assert status_of(KeyboardInterrupt()) == 130
    assert status_of(BrokenPipeError()) == 141
    assert status_of(ZeroDivisionError()) == 1
    for name in ("ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM"):
        assert status_of(OSError(getattr(errno, name), "failed", "plant.csv")) == 4
    for name in ("ENOENT", "EACCES", "EROFS"):
        assert status_of(OSError(getattr(errno, name), "failed", "plant.csv")) == 2
    for kind in ("ProxyError", "StoreError", "CredentialError", "ConfigError"):
        assert status_of(getattr(siteline.errors, kind)("may pass", retryable=True)) == 4


def test_help_and_documentation_list_statuses_and_commands():
    shown = run_command("--help").stdout
    assert all(line in shown for line in table().splitlines())
    page = (Path(__file__).parents[2] / "docs/command.md").read_text(encoding="utf-8")
    statuses = page[page.index("\n## Exit statuses\n") : page.index("\n## From a key to data\n")]
    assert [int(one) for one in re.findall(r"^\| (\d+) \|", statuses, re.M)] == list(Exit)
    assert re.findall(r"^\| \[`(\w+)`\]", page, re.M) == list(SUMMARIES)
    assert set(SUMMARIES) <= set(re.findall(r"^## (\w+)$", page, re.M))


def test_the_version_is_printed():
    expected = f"siteline {siteline.__version__}\n"
    assert run_process("--version").stdout == expected
    # With any other argument, the parser prints it.
    assert run_command("--version", "allowance").stdout == expected


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["allowance", "--profil"], ["allowance", "surplus"]], ids=str
)
def test_a_wrong_command_line_prints_the_usage(arguments):
    done = run_command(*arguments, status=2)
    assert done.stdout == ""
    assert "usage: siteline" in done.stderr


def test_without_arguments_the_commands_are_listed():
    done = run_command(status=2)
    assert done.stdout == ""
    first, *_ = done.stderr.partition("start here:\n")[2].splitlines()
    assert first.split()[0] == "doctor"
    assert all(f"  {name}" in done.stderr for name in SUMMARIES)


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_help_fits_one_screen(name):
    lines = run_command(name, "--help", env={"COLUMNS": "80"}).stdout.splitlines()
    assert len(lines) <= (52 if name == "read" else 40)
    assert max(map(len, lines)) <= 80


def test_a_failure_is_reported_once(tmp_path):
    env = {name: str(tmp_path) for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "APPDATA")}
    done = run_command("allowance", env=env, status=2)
    assert done.stdout == ""
    assert done.stderr.startswith("siteline: The client cannot be created")
    assert done.stderr.count("Looked at: ") == 1
    document = run_json("allowance", env=env, status=2)
    error = document["error"]
    assert (document["command"], error["type"]) == ("allowance", "ConfigError")
    assert error["retryable"] is False
    assert "Looked at" not in error["message"]
    assert error["hint"].startswith("Looked at: ")
    assert error["hint"].endswith("siteline profile init creates one.")


def test_an_unknown_option_shows_the_usage_of_its_command():
    for words in (["series", "--find", "temperature"], ["store", "info", "x", "--colour"]):
        command = " ".join(words[:-2])
        usage, message = run_command(*words, status=2).stderr.splitlines()
        assert usage.startswith(f"usage: siteline {command} [options]")
        assert message.startswith(f"siteline {command}: error: unrecognized arguments: --")
        assert message.endswith(f". See siteline {command} --help.")


@systems.MODES
def test_allowance_sends_nothing_and_warns_once(shared_sandbox, tmp_path):
    before, env = shared_sandbox.stats.log, shared_sandbox.env()
    key = tmp_path / "key.pem"
    key.write_text(env.pop("SITELINE_PRIVATE_KEY"))
    key.chmod(0o644)
    done = run_command("allowance", env={**env, "SITELINE_PRIVATE_KEY_FILE": str(key)})
    [line] = done.stderr.splitlines()
    assert line.startswith("siteline: warning: ")
    assert "data requests today  0\n" in done.stdout
    document = run_json("allowance", env=shared_sandbox.env())
    assert document["used"] == 0
    assert document["resets_at"].endswith("T00:00:00Z")
    assert shared_sandbox.stats.log == before


@pytest.mark.parametrize("action", ["ignore", "error"])
def test_no_filter_changes_a_warning(shared_sandbox, tmp_path, action):
    wanted = ["--start", "2026-11-19T21:30Z", "--end", "2026-11-19T23:00Z", "--interval", "1h"]
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        done = run_command("read", "-o", tmp_path / "out.csv", *wanted, env=shared_sandbox.env())
    assert done.stderr.startswith("siteline: warning: ")
    assert "start" in done.stderr


def test_verbose_options_show_the_logs(sandbox):
    env = sandbox.env()
    once = run_command("series", "-v", env=env).stderr
    assert "siteline.token: a new access token" in once
    assert "GET /api/customer/v1/discovery" not in once
    twice = run_command("series", "-vv", "--json", env=env)
    assert "GET /api/customer/v1/discovery: 200" in twice.stderr
    assert json.loads(twice.stdout)


def test_main_restores_warnings_and_loggers(capsys):
    def state():
        loggers = [logging.getLogger(name) for name in ("siteline", "siteline.sync")]
        return [(one.level, list(one.handlers)) for one in loggers], warnings.showwarning

    before, filters = state(), list(warnings.filters)
    assert main(["completion", "bash", "-vv"]) == 0
    assert (state(), warnings.filters) == (before, filters)
    assert "siteline" in capsys.readouterr().out


def test_a_bug_has_a_document_and_a_traceback(monkeypatch, capsys):
    def fail(_options):
        raise ZeroDivisionError

    monkeypatch.setattr(siteline.cli.coverage, "_run", fail)
    with pytest.raises(ZeroDivisionError):
        main(["coverage", "plant", "--json", "-v"])
    assert json.loads(capsys.readouterr().out)["exit"] == 1
    assert main(["coverage", "plant"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


# The commands that need no other package, run in one process.
LIGHT = """
import json, sys
from siteline.cli import main
before = set(sys.modules)
try:
    main(["--help"])
except SystemExit:
    pass
lean = {"json", "logging", "typing_extensions", "email", "http", "sqlite3", "subprocess", "tomllib"}
heavy = {"asyncio", "pandas", "polars", "pyarrow", "numpy", "duckdb", "tqdm", "socket"}
print("loaded", sorted((lean | heavy) & (set(sys.modules) - before)))
for words in json.loads(sys.argv[1]):
    status = main(words)
    print("\\nloaded", status, words[:2], sorted(heavy & set(sys.modules)))
"""


def test_commands_import_only_what_they_need(shared_sandbox, tmp_path):
    feeds, store, copy = write_feeds(tmp_path), tmp_path / "plant", tmp_path / "copy"
    reads = [["read", *QUERY, "-o", tmp_path / f"out.{end}"] for end in ("csv", "jsonl", "arrow")]
    commands = [
        *(["read", *QUERY, "--dry-run"], ["sync", feeds, store], *reads, ["allowance"], ["series"]),
        *(["store", "check", store], ["store", "info", store], ["store", "backup", store, copy]),
        *(["coverage", store, "--json"], ["coverage", store, "--lateness"]),
    ]
    words = json.dumps([[*map(str, words)] for words in commands])
    done = run_program(sys.executable, "-c", LIGHT, words, env=shared_sandbox.env())
    loaded = [line for line in done.stdout.splitlines() if line.startswith("loaded")]
    ended = [f"loaded 0 {[str(word) for word in words[:2]]} []" for words in commands]
    assert loaded == ["loaded []", *ended]


# Streams that are closed, full or gone. These need a process.

CLOSED = "siteline: stdout: it is closed, and the data is written to it\n"
FULL = "siteline: No space left on device\n"
FILE = "siteline: /dev/stdout: is not a regular file; leave -o out for stdout\n"


def in_shell(sandbox, line):
    """Runs a line in which `siteline` is the command."""
    line = line.replace("siteline", shlex.join(COMMAND), 1)
    done = run_program("/bin/sh", "-c", line, env=sandbox.env())
    assert "Traceback" not in done.stderr, done.stderr
    return done


@systems.PROC
@pytest.mark.parametrize(
    ("line", "status", "told"),
    [
        ("siteline allowance >&-", 0, ""),
        ("siteline allowance >/dev/full", 4, FULL),
        ("siteline --version >/dev/full", 4, FULL),
        (f"siteline read {shlex.join(QUERY)} >&-", 2, CLOSED),
        (f"siteline read -o /dev/stdout --format csv {shlex.join(QUERY)}", 2, FILE),
        ("siteline series >&-", 2, CLOSED),
        ("siteline changes plant line-2 --since 0 >&-", 2, CLOSED),
    ],
)
def test_an_unusable_stdout_is_reported(shared_sandbox, line, status, told):
    before = shared_sandbox.stats.log
    done = in_shell(shared_sandbox, line)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", told)
    assert shared_sandbox.stats.log == before


@systems.PROC
def test_a_closed_pipe_ends_the_command_quietly(shared_sandbox):
    reading, writing = os.pipe()
    os.close(reading)
    process = start_command("allowance", env=shared_sandbox.env(), stdout=writing)
    os.close(writing)
    assert process.communicate(timeout=60) == (None, "")
    assert process.returncode == 141


@systems.SIGNALS
@pytest.mark.parametrize("more", ["", "--json"])
def test_a_closed_stderr_leaves_stdout_clean(shared_sandbox, more):
    done = in_shell(shared_sandbox, f"siteline coverage there-is-none {more} 2>&-")
    assert done.returncode == 2
    assert [json.loads(line)["exit"] for line in done.stdout.splitlines()] == [2] * bool(more)


@systems.SIGNALS
def test_a_closed_stdin_has_no_passphrase(shared_sandbox):
    done = in_shell(shared_sandbox, "siteline keygen absent/key.pem --passphrase-file - <&-")
    assert done.returncode == 2
    assert "Standard input is closed" in done.stderr


@systems.SIGNALS
@pytest.mark.parametrize("command", ["series", "read"])
def test_ctrl_c_ends_a_command_with_130(sandbox, tmp_path, command):
    arguments = {"read": ["-o", "out.csv", *QUERY]}
    sandbox.fault(on="discovery", hang=True)
    sandbox.fault(on="data", hang=True, skip=3, times=9)
    kind, awaited = ("discovery", 1) if command == "series" else ("data", 4)
    words = (command, *arguments.get(command, ()), "--json")
    process = start_command(*words, env=sandbox.env(), cwd=tmp_path)
    wait_until(lambda: getattr(sandbox.stats, f"{kind}_requests") >= awaited)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    document = json.loads(out)
    assert (process.returncode, document["exit"], document["command"]) == (130, 130, command)
    error = document["error"]
    assert (error["message"], error["retryable"]) == ("interrupted", True)
    assert err.endswith("siteline: interrupted\n")
    if command == "read":
        assert (tmp_path / document["spool"]).exists()
        assert document["pages"] > 0
