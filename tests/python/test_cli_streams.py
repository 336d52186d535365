"""stdin, stdout and stderr that are closed or full, filtered warnings, and Ctrl-C with `--json`."""

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest
from kit import systems
from kit.command import COMMAND, environment, run_command, run_json
from kit.waiting import wait_until

QUERY = ["--site", "S1", "--line", "L2", "--start", "2026-11-18", "--end", "2026-11-19"]
QUERY += ["--interval", "1h", "--page-size", "100"]
FEEDS = (
    '[feeds.line-2]\nsite = "S1"\nline = "L2"\ninterval = "1h"\nsince = 2026-11-18\npage_size = 100'
)


def in_shell(sandbox, arguments, redirected):
    """Run the command with what a shell makes of its streams."""
    line = f"{shlex.join([*COMMAND, *arguments])} {redirected}"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env=environment(sandbox.env()),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@systems.SIGNALS
@pytest.mark.parametrize(
    "arguments",
    [
        ["pull", "-o", "-", *QUERY],
        ["pull", "-o", "-", "--as-read", *QUERY],
        ["discover"],
        ["discover", "--json"],
        ["changes", "plant", "line-2", "--since", "0"],
    ],
)
def test_data_for_a_closed_stdout_are_not_asked_for(sandbox, arguments):
    done = in_shell(sandbox, arguments, ">&-")
    assert (done.returncode, done.stderr) == (
        2,
        "siteline: stdout: it is closed, and the data go there\n",
    )
    assert sandbox.stats["data_requests"] == sandbox.stats["token_requests"] == 0


@systems.SIGNALS
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_what_is_for_a_closed_stderr_does_not_come_on_stdout(sandbox, more):
    done = in_shell(sandbox, ["coverage", "there-is-none", *more], "2>&-")
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == len(more)
    assert all(json.loads(line)["exit"] == 2 for line in done.stdout.splitlines())


@systems.SIGNALS
def test_a_closed_stdin_has_no_passphrase(sandbox, tmp_path):
    arguments = ["keygen", str(tmp_path / "key.pem"), "--passphrase-file", "-"]
    done = in_shell(sandbox, arguments, "<&-")
    assert (done.returncode, os.listdir(tmp_path)) == (2, [])
    assert "Standard input is closed" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_the_version_for_a_full_disk_is_an_error_without_a_traceback(sandbox):
    done = in_shell(sandbox, ["--version"], ">/dev/full")
    assert (done.returncode, done.stderr) == (4, "siteline: No space left on device\n")


@systems.SIGNALS
def test_a_folder_that_was_removed_is_an_error_without_a_traceback(sandbox, tmp_path):
    (tmp_path / "gone").mkdir()
    line = f"cd {shlex.quote(str(tmp_path))}/gone && rmdir ../gone && exec {shlex.join(COMMAND)} "
    line += "profile init a --base-url https://a.example --subject s --private-key-file k.pem"
    done = subprocess.run(
        ["/bin/sh", "-c", line], env=environment({"SITELINE_CONFIG": str(tmp_path / "c.toml")}),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "siteline: No such file or directory\n"


@systems.SIGNALS
def test_a_pipe_named_as_dev_stdout_is_refused_as_what_it_is(sandbox):
    done = in_shell(sandbox, ["pull", "-o", "/dev/stdout", "--format", "csv", *QUERY], "")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "siteline: /dev/stdout: is not a regular file; -o - writes to stdout\n"
    assert sandbox.stats["token_requests"] == 0


@pytest.mark.parametrize("filter", ["ignore", "error"])
def test_no_filter_hides_a_warning_or_makes_it_an_error(sandbox, tmp_path, filter):
    wanted = ["--start", "2026-11-19T22:00Z", "--end", "2027-01-01", "--interval", "1h"]
    env = {**sandbox.env(), "PYTHONWARNINGS": filter}
    done = run_command("pull", "-o", tmp_path / "out.csv", *wanted, env=env)
    assert done.stderr.startswith("siteline: warning: --end 2027-01-01T00:00:00Z lies ahead of now")


def test_a_token_check_that_went_well_is_silent_on_stderr(sandbox):
    assert run_command("token", "--check", env=sandbox.env()).stderr == ""


@systems.SIGNALS
@pytest.mark.parametrize("command", ["pull", "sync"])
def test_ctrl_c_has_a_document_too(sandbox, tmp_path, command):
    (tmp_path / "feeds.toml").write_text(FEEDS)
    arguments = {"pull": ["-o", "out.csv", *QUERY], "sync": ["feeds.toml", "plant"]}[command]
    sandbox.fault(on="data", hang=True, skip=1, times=9)
    process = subprocess.Popen(
        [*COMMAND, command, *arguments, "--json"], cwd=tmp_path, text=True,
        env=environment(sandbox.env()), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_until(lambda: sandbox.stats["data_requests"] == 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    document = json.loads(out)
    assert (process.returncode, document["exit"]) == (130, 130)
    assert document["command"] == command
    assert document["error"]["message"] == "interrupted"
    assert document["error"]["retryable"] is True
    assert err.endswith("siteline: interrupted\n")
    if command == "pull":
        assert os.path.exists(document["spool"])
        assert document["pages"] == 1


FAULT = """
import sys
import siteline.cli.coverage
from siteline.cli import main
def run(options):
    raise AssertionError("a fault")
siteline.cli.coverage._run = run
sys.exit(main(sys.argv[1:]))
"""


def test_a_fault_has_its_document_beside_the_traceback():
    done = subprocess.run(
        [sys.executable, "-c", FAULT, "coverage", "plant", "--json", "-v"],
        env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)["exit"]) == (1, 1)
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("option", ["--wait", "--deadline"])
def test_a_wrong_duration_makes_no_store(sandbox, tmp_path, option):
    (tmp_path / "feeds.toml").write_text(FEEDS)
    arguments = ["feeds.toml", "plant", option, "soon"]
    found = run_json("sync", *arguments, env=sandbox.env(), folder=tmp_path, status=2)
    assert found["error"]["message"] == f"{option} 'soon' is not a duration."
    assert os.listdir(tmp_path) == ["feeds.toml"]


def test_a_sequence_of_thousands_of_digits_is_a_usage_error(sandbox, tmp_path):
    (tmp_path / "feeds.toml").write_text(FEEDS)
    run_command("sync", "feeds.toml", "plant", env=sandbox.env(), folder=tmp_path)
    arguments = ["plant", "line-2", "--since", "9" * 5_000, "-o", "changes.csv"]
    found = run_json("changes", *arguments, folder=tmp_path, status=2)
    assert found["error"]["message"].endswith("is not the number of a page.")
