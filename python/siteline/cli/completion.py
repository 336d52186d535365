"""``siteline completion``: what completes the command in a shell."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from siteline.cli.arguments import add_command
from siteline.cli.output import Outcome
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from siteline.cli.arguments import _Commands

__all__ = ["FILES", "add"]

FILES = {"bash": "siteline.bash", "zsh": "_siteline", "fish": "siteline.fish"}
"""The shells, and their files in the folder ``completions``."""

_INSTALLATION = """\
to install:
  bash  siteline completion bash > ~/.local/share/bash-completion/completions/siteline
  zsh   siteline completion zsh > FOLDER/_siteline, in a folder of $fpath
  fish  siteline completion fish > ~/.config/fish/completions/siteline.fish
for one shell alone: source <(siteline completion bash), the same with zsh;
  siteline completion fish | source
"""


def add(commands: _Commands) -> None:
    """Add the command."""
    made = add_command(commands, "completion", _run, SUMMARIES["completion"])
    made.epilog = _INSTALLATION
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("shell", choices=list(FILES), help="the shell")


def _run(options: argparse.Namespace) -> Outcome:
    folder = os.path.join(os.path.dirname(__file__), "completions")
    with open(os.path.join(folder, FILES[options.shell]), encoding="utf-8") as file:
        script = file.read()
    return Outcome({"shell": options.shell, "script": script}, script.rstrip("\n"))
