"""``siteline completion``: prints the completion script of a shell.

`make` writes the scripts with shtab before it builds a wheel (.ci/completions.py).
"""

from __future__ import annotations

import os

from siteline.cli.arguments import Commands, Options, add_command
from siteline.cli.output import Outcome
from siteline.errors import ConfigError

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


def add(commands: Commands) -> None:
    """Adds the command."""
    made = add_command(commands, "completion", _run)
    made.epilog = _INSTALLATION
    made.add_argument("shell", choices=SHELLS, help="the shell")


def _run(options: Options) -> Outcome:
    try:
        with open(os.path.join(FOLDER, options.shell), encoding="utf-8") as file:
            script = file.read()
    except FileNotFoundError:
        raise ConfigError(
            "This build of siteline contains no completion scripts.",
            hint="Released wheels have them; in a checkout, `make` writes them.",
        ) from None
    return Outcome({"shell": options.shell, "script": script}, script.rstrip("\n"))
