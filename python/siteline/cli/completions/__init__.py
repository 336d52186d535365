"""Makes the completion files of the command from its parser.

They are in this folder. ``python -m siteline.cli.completions --write`` writes them; without the
option it says which of them are not what the parser says now.
"""

from __future__ import annotations

from pathlib import Path

from siteline.cli.completion import FILES
from siteline.cli.completions import bash, fish, zsh
from siteline.cli.completions.tree import command_of
from siteline.cli.parser import complete_parser

__all__ = ["FOLDER", "scripts"]

FOLDER = Path(__file__).parent


def scripts() -> dict[str, str]:
    """Make the files, by their names."""
    command = command_of(complete_parser())
    shells = {"bash": bash, "zsh": zsh, "fish": fish}
    return {FILES[shell]: module.script(command) for shell, module in shells.items()}
