"""What .ci/workflows.py refuses in a workflow, and the environment of .ci/run."""

import os
import runpy
import subprocess
from pathlib import Path

import pytest
from kit import systems

CI_RUN = Path(__file__).resolve().parents[2] / ".ci" / "run"
SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "workflows.py"
WORKFLOWS = runpy.run_path(str(SCRIPT), run_name="workflows")
MAKEFILE = """
PYTHON  ?= python3
NAME:=value
.PHONY: test lint
test: target/ready
\ttouch $@
lint types:
$(VENV)/base: pyproject.toml
target/ready: x
"""
COMMIT = "a" * 40


def faults(line):
    known = WORKFLOWS["targets"](MAKEFILE)
    return WORKFLOWS["faults"](f"steps:\n  {line}\n", known)


def test_the_targets_of_a_makefile_are_its_rules_that_are_no_files():
    assert WORKFLOWS["targets"](MAKEFILE) == {"test", "lint", "types"}


@pytest.mark.parametrize(
    "line",
    [
        "- run: make test",
        "run: make lint types PYTHON=python3.14",
        '- run: make test TAG="$GITHUB_REF_NAME"',
        "- run: rustup target add x86_64-unknown-linux-musl",
        "run:\n    shell: bash",
        f"- uses: actions/checkout@{COMMIT} # v7.0.1",
        "uses: $/.github/workflows/wheels.yml",
    ],
)
def test_a_target_of_make_and_a_pinned_action_are_accepted(line):
    assert faults(line) == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("- run: make tests", '2: The Makefile has no target "tests".'),
        ("- run: make test && id", '2: The Makefile has no target "&&".'),
        ("- run: make test TAG=${{ github.ref }}", '2: The Makefile has no target "TAG=${{".'),
        ("- run: make", '2: "make" is no target of make.'),
        ("- run: pip install x", '2: "pip install x" is no target of make.'),
        ("- run: |\n      make test", "2: A step runs one command in one line."),
        ("run:\n    make test", "2: A step runs one command in one line."),
        (
            "- uses: actions/checkout@v7",
            '2: "actions/checkout@v7" is not a full commit with its version beside it.',
        ),
        (
            f"- uses: actions/checkout@{COMMIT}",
            f'2: "actions/checkout@{COMMIT}" is not a full commit with its version beside it.',
        ),
        (
            f"- uses: someone/else@{COMMIT} # v1.0.0",
            "2: someone/else is not in the list of actions.",
        ),
        ("uses: $/.github/workflows/none.yml", "2: $/.github/workflows/none.yml is missing."),
    ],
)
def test_anything_else_is_refused_with_its_line(line, fault):
    assert fault in faults(line)


def test_an_action_is_taken_by_one_commit_everywhere():
    one = f"- uses: actions/checkout@{COMMIT} # v7.0.1"
    other = f"- uses: actions/checkout@{'b' * 40} # v7.0.1"
    assert WORKFLOWS["disagreeing"]([one, one]) == []
    assert WORKFLOWS["disagreeing"]([one, other]) == ["actions/checkout is taken by 2 commits."]


@systems.MODES
def test_ci_runs_in_an_empty_environment(tmp_path):
    program = tmp_path / "make"
    program.write_text('#!/bin/sh\nenv; stat -c MODE=%a "$HOME"; echo "TARGETS=$*"; exit 3\n')
    program.chmod(0o755)
    given = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CI": "true", "CARGO_HOME": "/cargo"}
    surroundings = {"PYTHONUNBUFFERED": "1", "TZ": "Asia/Kolkata", "LC_ALL": "C", "HOME": "/h"}
    done = subprocess.run(
        ["bash", CI_RUN],
        env={**given, **surroundings},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    printed = dict(line.split("=", 1) for line in done.stdout.splitlines())
    home = printed.pop("HOME")
    for name in ("_", "PWD", "SHLVL", "OLDPWD"):  # set by the shells
        printed.pop(name, None)
    assert printed == {
        **given,
        "RUSTUP_HOME": "/h/.rustup",
        "LANG": "C.UTF-8",
        "CARGO_INCREMENTAL": "0",
        "MODE": "700",
        "TARGETS": "check",
    }
    assert done.returncode == 3
    assert not Path(home).exists()
