"""``siteline completion``: prints the completion script of a shell.

`make` writes the scripts with shtab before it builds a wheel, so that a wheel contains them. A
build without `make` contains none: then the command needs shtab.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from siteline.cli.arguments import add_command
from siteline.cli.output import Outcome
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from siteline.cli.arguments import _Commands

__all__ = ["FOLDER", "SHELLS", "add", "generate"]

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

_FILES = {"BACKUP", "FILE", "PATH", "STORE"}
_FOLDERS = {"FOLDER", "DIRECTORY"}


def add(commands: _Commands) -> None:
    """Adds the command."""
    made = add_command(commands, "completion", _run, SUMMARIES["completion"])
    made.epilog = _INSTALLATION
    made.add_argument("shell", choices=SHELLS, help="the shell")


def generate(shell: str) -> str:
    """Returns the script of a shell, made by shtab from the command's parser.

    Raises:
        ImportError: shtab is not installed.
    """
    import shtab

    from siteline.cli.parser import complete_parser

    parser = complete_parser()
    _complete_paths(parser, shtab.FILE, shtab.DIRECTORY)
    return str(shtab.complete(parser, shell))


def _complete_paths(parser: argparse.ArgumentParser, file: object, folder: object) -> None:
    """Marks the arguments that take a path. The name in the help decides."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            # shtab leaves out what has no entry in the help.
            action.help = ""
            for below in action.choices.values():
                _complete_paths(below, file, folder)
            continue
        name = action.metavar if isinstance(action.metavar, str) else action.dest
        words = set(name.upper().replace("-", "_").split("_"))
        if action.nargs != 0 and not action.choices and words & (_FILES | _FOLDERS):
            action.complete = file if words & _FILES else folder  # type: ignore[attr-defined]


def _run(options: argparse.Namespace) -> Outcome:
    try:
        with open(os.path.join(FOLDER, options.shell), encoding="utf-8") as file:
            script = file.read()
    except FileNotFoundError:
        script = _without_file(options.shell)
    return Outcome({"shell": options.shell, "script": script}, script.rstrip("\n"))


def _without_file(shell: str) -> str:
    from siteline.errors import ConfigError

    try:
        return generate(shell)
    except ImportError as error:
        raise ConfigError(
            "This build of siteline contains no completion scripts. Install shtab, and run the "
            "command again."
        ) from error
