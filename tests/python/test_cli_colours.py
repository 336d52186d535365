"""Colours of the command: on a terminal, and nowhere else."""

import os
import subprocess

import pytest
from kit.command import COMMAND, environment

pty = pytest.importorskip("pty")
RED, GREEN = "\x1b[31m", "\x1b[32m"


def on_terminal(*words, env):
    """The output of a command on a terminal."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words], stdout=its, stderr=its, env=environment({"TERM": "xterm", **env})
    ) as process:
        os.close(its)
        parts = []
        while True:
            try:
                parts.append(os.read(ours, 65_536))
            except OSError:  # the command has ended
                break
    os.close(ours)
    assert process.returncode in (0, 2)
    return b"".join(parts).decode()


def test_a_terminal_shows_the_status_in_colour(sandbox, tmp_path):
    shown = on_terminal("doctor", "--offline", env=sandbox.env())
    assert f"{GREEN}ok\x1b[0m       settings" in shown
    failed = on_terminal("coverage", str(tmp_path / "\x1b[32mnone"), env={})
    assert failed.startswith(f"{RED}siteline:\x1b[0m ")
    assert GREEN not in failed, "a name is escaped"


@pytest.mark.parametrize(
    ("more", "env"), [([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"}), (["--json"], {})], ids=str
)
def test_colours_can_be_avoided(sandbox, more, env):
    shown = on_terminal("doctor", "--offline", *more, env={**sandbox.env(), **env})
    assert "settings" in shown
    assert "\x1b[" not in shown
