"""Colours of the command: on a terminal, and nowhere else."""

import pytest
from kit import systems
from kit.command import on_terminal

pytestmark = systems.TERMINAL
RED, GREEN = "\x1b[31m", "\x1b[32m"


def test_a_terminal_shows_the_status_in_colour(sandbox, tmp_path):
    _, shown = on_terminal("doctor", "--offline", env={"TERM": "xterm", **sandbox.env()})
    assert f"{GREEN}ok\x1b[0m       settings" in shown
    words = ("coverage", tmp_path / "\x1b[32mnone")
    status, failed = on_terminal(*words, env={"TERM": "xterm"})
    assert status == 2
    assert failed.startswith(f"{RED}siteline:\x1b[0m ")
    assert GREEN not in failed, "a name is escaped"


@pytest.mark.parametrize(
    ("more", "env"), [([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"}), (["--json"], {})], ids=str
)
def test_colours_can_be_avoided(sandbox, more, env):
    env = {"TERM": "xterm", **sandbox.env(), **env}
    _, shown = on_terminal("doctor", "--offline", *more, env=env)
    assert "settings" in shown
    assert "\x1b[" not in shown
