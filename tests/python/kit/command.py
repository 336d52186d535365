"""Runs the command ``siteline``, either by `main()` in this process or in its own process."""

import io
import json
import os
import subprocess
import sys
import tempfile

import pytest
from siteline.cli import main

COMMAND = [sys.executable, "-m", "siteline"]


def run_command(*arguments, status=0, **options):
    """Runs the command in this process. It must end with this status.

    `options` are `env` (additional variables), `folder` (the working directory) and `stdin`.
    """
    # It restricts its process.
    if arguments[:1] == ("agent",):
        return run_process(*arguments, status=status, **options)
    return _ended(run_here(*arguments, **options), status)


def run_process(*arguments, status=0, env=None, folder=None, stdin=None):
    """Runs the command in its own process. Otherwise the same as `run_command`."""
    return _ended(run_program(*COMMAND, *arguments, env=env, cwd=folder, input=stdin), status)


def run_program(*words, env=None, **options):
    """Runs a program until it ends. `options` are those of `subprocess.run`."""
    options = {"capture_output": True, "text": True, "timeout": 600, **options}
    return subprocess.run([*map(str, words)], env=environment(env), check=False, **options)


def start_command(*arguments, env=None, before=(), **options):
    """Starts the command with pipes, and returns its process. `before` are words before it."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    words = [*before, *COMMAND, *map(str, arguments)]
    return subprocess.Popen(words, env=environment(env), **options)


def on_terminal(*arguments, env=None, typed=()):
    """Runs the command on a terminal, and types lines at its prompts. Returns status and output."""
    spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    program = [sys.executable, "-c", spawn, *COMMAND, *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(program, env=environment(env), **pipes) as process:
        shown = b""
        for line in typed:
            # Before the prompt it would be thrown away.
            while not shown.endswith(b": "):
                shown += (part := process.stdout.read1())
                assert part, shown
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            shown += b"|"
        shown += process.stdout.read()
    return process.returncode, shown.decode()


def run_json(*arguments, run=run_command, **options):
    """Runs the command with ``--json`` and returns the document on stdout."""
    done = run(*arguments, "--json", **options)
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout
    document = json.loads(lines[0])
    assert document["schema"] == 2
    assert document["exit"] == done.returncode
    return document


def environment(more=None):
    """Returns the environment without the variables of siteline, plus the given variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SITELINE_")}
    return {**kept, **(more or {})}


def run_here(*arguments, env=None, folder=None, stdin=None):
    """Runs the command in this process, with the environment of `environment()`, to any status."""
    out, err = _stream(), _stream()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("SITELINE_")]:
            patch.delenv(name)
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        # Python caches the temporary folder, so a new TMPDIR has no effect without this.
        patch.setattr(tempfile, "tempdir", None)
        if folder is not None:
            patch.chdir(folder)
        patch.setattr(sys, "stdin", _stream((stdin or "").encode()))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            status = main([*map(str, arguments)])
        except SystemExit as end:  # argparse
            status = end.code
    return subprocess.CompletedProcess(arguments, status, _text(out), _text(err))


def _stream(content=b""):
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="\n")


def _text(stream):
    stream.flush()
    return stream.buffer.getvalue().decode()


def _ended(done, status):
    assert done.returncode == status, (done.returncode, done.stdout[-2_000:], done.stderr[-4_000:])
    assert "Traceback" not in done.stderr, done.stderr
    return done
