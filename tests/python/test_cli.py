"""The command as a whole: exit statuses, stdout and stderr, interrupts, closed pipes."""

import errno
import inspect
import json
import logging
import os
import re
import signal
import subprocess
import warnings
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json
from kit.interpreter import run_script
from kit.waiting import wait_until
from siteline.cli import main
from siteline.cli.exits import Exit, status_of, table
from siteline.cli.summaries import SUMMARIES

ERRORS = [
    thing
    for name in siteline.errors.__all__
    if inspect.isclass(thing := getattr(siteline.errors, name))
    and issubclass(thing, siteline.SitelineError)
]

STATUSES = {
    "AgentUnavailable": 4,
    "AllowanceExhausted": 5,
    "AuthenticationError": 3,
    "BodyTooLarge": 7,
    "BookmarkError": 2,
    "ClockSkewError": 3,
    "ClosedError": 1,
    "ConfigError": 2,
    "CredentialError": 2,
    "CursorLoop": 6,
    "CursorRejected": 6,
    "DeadlineExceeded": 4,
    "EndlessChain": 6,
    "FeedChanged": 2,
    "ForkError": 1,
    "InternalError": 1,
    "ProtocolError": 7,
    "ProxyError": 2,
    "QueryError": 2,
    "RateLimited": 4,
    "RedirectRefused": 2,
    "RequestRejected": 3,
    "ScopeError": 3,
    "ServiceError": 3,
    "ServiceUnavailable": 4,
    "SitelineError": 1,
    "StoreBusy": 75,
    "StoreCorrupt": 7,
    "StoreError": 2,
    "StoreFull": 4,
    "TlsError": 2,
    "TransportError": 4,
    "TransportTimeout": 4,
    "TruncatedBody": 4,
    "UnreadRange": 6,
}


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_exception_has_its_exit_status(kind):
    assert status_of(kind("a message")) == STATUSES[kind.__name__]


def test_exceptions_that_are_not_of_siteline_have_theirs():
    assert status_of(KeyboardInterrupt()) == 130
    assert status_of(BrokenPipeError()) == 141
    assert status_of(FileNotFoundError(errno.ENOENT, "no such file", "x")) == 2
    assert status_of(OSError(errno.ENOSPC, "no space left")) == 4
    assert status_of(ZeroDivisionError()) == 1
    # A proxy that is down may come up again.
    assert status_of(siteline.ProxyError("down", retryable=True)) == 4


def test_the_help_and_the_documentation_have_every_status_with_its_meaning():
    shown = run_command("--help").stdout
    for line in table().splitlines():
        assert line in shown
    assert [int(line.split()[0]) for line in table().splitlines()] == list(Exit)


def test_the_page_of_the_command_has_every_status_and_every_command():
    page = (Path(__file__).parents[2] / "docs/command.md").read_text(encoding="utf-8")
    table_of_all = page[
        page.index("\n## Exit statuses\n") : page.index("\n## From a key to data\n")
    ]
    statuses = re.findall(r"^\| (\d+) \|", table_of_all, re.M)
    assert [int(one) for one in statuses] == list(Exit)
    assert re.findall(r"^\| \[`(\w+)`\]", page, re.M) == list(SUMMARIES)
    sections = re.findall(r"^## (\w+)$", page, re.M)
    assert set(SUMMARIES) <= set(sections)


def test_the_version_is_printed_by_both_names_of_the_command():
    expected = f"siteline {siteline.__version__}\n"
    assert run_command("--version").stdout == expected
    # With anything beside it the parser prints it.
    assert run_command("--version", "allowance").stdout == expected


@pytest.mark.parametrize(
    "arguments", [[], ["nothing"], ["allowance", "--profil"], ["allowance", "surplus"]], ids=str
)
def test_a_wrong_command_line_is_told_on_stderr_alone(arguments):
    done = run_command(*arguments, status=2)
    assert done.stdout == ""
    assert "usage: siteline" in done.stderr


def test_a_failure_is_told_on_stderr_and_in_the_document(tmp_path):
    env = {name: str(tmp_path) for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "APPDATA")}
    done = run_command("allowance", env=env, status=2)
    assert done.stdout == ""
    assert done.stderr.startswith("siteline: The client cannot be created")
    # The hint stands there once.
    assert done.stderr.count("Looked at: ") == 1
    document = run_json("allowance", env=env, status=2)
    assert document["command"] == "allowance"
    assert document["error"]["type"] == "ConfigError"
    assert document["error"]["retryable"] is False
    assert "Looked at" not in document["error"]["message"]
    assert document["error"]["hint"].startswith("Looked at: ")


def test_a_profile_is_read_by_its_name(sandbox, tmp_path):
    env = sandbox.env()
    (tmp_path / "key.pem").write_text(env["SITELINE_PRIVATE_KEY"])
    (tmp_path / "key.pem").chmod(0o600)
    (tmp_path / "config.toml").write_text(
        f'[plant-a]\nbase_url = "{sandbox.base_url}"\nsubject = "{env["SITELINE_SUBJECT"]}"\n'
        'private_key_file = "key.pem"\ndaily_allowance = 7\nledger = "memory"\n'
    )
    kept = {"SITELINE_CONFIG": str(tmp_path / "config.toml")}
    document = run_json("allowance", "--profile", "plant-a", env=kept)
    assert (document["base_url"], document["left"]) == (sandbox.base_url, 7)
    assert run_json("allowance", "--profile", "plant-b", env=kept, status=2)["error"]


def test_the_allowance_is_shown_without_a_request(sandbox):
    before = sandbox.stats["log"]
    shown = run_command("allowance", env=sandbox.env()).stdout
    assert "data requests today  0\n" in shown
    document = run_json("allowance", env=sandbox.env())
    assert document["used"] == 0
    assert document["resets_at"].endswith("T00:00:00Z")
    assert sandbox.stats["log"] == before


@systems.MODES
def test_a_warning_takes_one_line_on_stderr(sandbox, tmp_path):
    env = sandbox.env()
    key = tmp_path / "key.pem"
    key.write_text(env.pop("SITELINE_PRIVATE_KEY"))
    key.chmod(0o644)
    done = run_command("allowance", env={**env, "SITELINE_PRIVATE_KEY_FILE": str(key)})
    [line] = done.stderr.splitlines()
    assert line.startswith("siteline: warning: ")
    assert done.stdout.startswith("service ")


@systems.PROC
def test_a_closed_pipe_ends_the_command_quietly(sandbox):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, "allowance"],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
            env=environment(sandbox.env()),
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@systems.PROC
def test_a_full_disk_behind_stdout_is_told_and_temporary(sandbox):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "allowance"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
            env=environment(sandbox.env()),
        )
    assert done.returncode == 4
    assert done.stderr == "siteline: No space left on device\n"


@systems.FORK
def test_a_command_without_stdout_ends_with_its_status(sandbox):
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", *COMMAND, "allowance"],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
        env=environment(sandbox.env()),
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_command_loads_what_it_does_not_need():
    script = """
        import sys
        before = set(sys.modules)
        from siteline.cli import main
        try:
            main(["--help"])
        except SystemExit:
            pass
        heavy = {"asyncio", "pandas", "polars", "pyarrow", "numpy", "json", "logging", "duckdb",
                 "typing_extensions", "email", "http", "sqlite3", "subprocess", "tomllib"}
        print(sorted(heavy & (set(sys.modules) - before)))
    """
    assert run_script(script).splitlines()[-1] == "[]"


def test_the_logs_are_told_on_stderr_where_asked(sandbox):
    once = run_command("discover", "-v", env=sandbox.env())
    assert "siteline.token: a new access token" in once.stderr
    assert "GET /api/customer/v1/discovery" not in once.stderr
    twice = run_command("discover", "-vv", env=sandbox.env())
    assert "GET /api/customer/v1/discovery: 200" in twice.stderr
    assert json.loads(run_command("discover", "-vv", "--json", env=sandbox.env()).stdout)


def test_who_calls_main_finds_warnings_and_loggers_as_they_were(capsys):
    def state():
        loggers = [logging.getLogger(name) for name in ("siteline", "siteline.sync")]
        return [(one.level, list(one.handlers)) for one in loggers], warnings.showwarning

    before, filters = state(), list(warnings.filters)
    assert main(["completion", "bash", "-vv"]) == 0
    assert (state(), warnings.filters) == (before, filters)
    assert "siteline" in capsys.readouterr().out


@systems.SIGNALS
def test_ctrl_c_ends_a_command_with_130(sandbox):
    sandbox.fault(on="discovery", hang=True)
    process = subprocess.Popen(
        [*COMMAND, "discover", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(sandbox.env()),
    )
    wait_until(lambda: sandbox.stats["discovery_requests"] == 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "siteline: interrupted\n")
    assert json.loads(out)["exit"] == 130
