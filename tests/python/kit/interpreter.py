"""Runs a script in a fresh interpreter."""

import os
import subprocess
import sys
import textwrap

FORK_WITH_THREADS = ("-W", "ignore::DeprecationWarning")
"""Options for a script that forks. Since 3.12, Python warns if a process with threads forks."""


def run_script(
    script, *options, python=sys.executable, status=0, timeout=120, environment=None, arguments=()
):
    """Runs a script and returns its output. It must exit with `status` and an empty stderr."""
    done = subprocess.run(
        [python, *options, "-c", textwrap.dedent(script), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == status, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()
