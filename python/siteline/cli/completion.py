"""``siteline completion``: prints the completion script of a shell.

`make` writes the scripts with shtab before it builds a wheel (.ci/completions.py).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from siteline.cli.arguments import add_command
from siteline.cli.output import Outcome
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse

    from siteline.cli.arguments import _Commands

__all__ = ["FOLDER", "SHELLS", "add"]

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")

FOLDER = os.path.join(os.path.dirname(__file__), "completions")
"""One script for each shell, named after it."""

_INSTALLATION = """\
install it with:
  bash        siteline completion bash \\
                > ~/.local/share/bash-completion/completions/siteline
  zsh         siteline completion zsh > FOLDER/_siteline, in a folder of $fpath
  fish        siteline completion fish \\
                > ~/.config/fish/completions/siteline.fish
  tcsh        siteline completion tcsh > ~/.siteline.tcsh, sourced in ~/.tcshrc
  powershell  siteline completion powershell >> $PROFILE"""


def add(commands: _Commands) -> None:
    """Adds the command."""
    made = add_command(commands, "completion", _run, SUMMARIES["completion"])
    made.epilog = _INSTALLATION
    made.add_argument("shell", choices=SHELLS, help="the shell")


def _run(options: argparse.Namespace) -> Outcome:
    from siteline.errors import ConfigError

    try:
        with open(os.path.join(FOLDER, options.shell), encoding="utf-8") as file:
            script = file.read()
    except FileNotFoundError:
        raise ConfigError(
            "This build of siteline contains no completion scripts.",
            hint="Released wheels have them; in a checkout, `make` writes them.",
        ) from None
    return Outcome({"shell": options.shell, "script": script}, script.rstrip("\n"))
