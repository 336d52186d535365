"""Runs the command ``siteline`` in a process of its own."""

import json
import os
import subprocess
import sys

COMMAND = [sys.executable, "-m", "siteline"]


def run_command(*arguments, env=None, status=0, folder=None, stdin=None, timeout=120):
    """Run it to its end, which must have this exit status; return the finished process."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=folder,
        input=stdin,
        env=environment(env),
    )
    assert done.returncode == status, (done.returncode, done.stdout[-2_000:], done.stderr[-4_000:])
    assert "Traceback" not in done.stderr, done.stderr
    return done


def run_json(*arguments, **options):
    """Run it with ``--json``; return the one document on stdout."""
    done = run_command(*arguments, "--json", **options)
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout
    document = json.loads(lines[0])
    assert document["schema"] == 1
    assert document["exit"] == done.returncode
    return document


def environment(more=None):
    """Return the environment without settings of siteline, and with these variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SITELINE_")}
    return {**kept, **(more or {})}
