"""Makes the completion files of the command from its parser.

``python -m siteline.cli.completions --write`` writes them into the folder of the same name; without
the option it says which of them are not what the parser says now.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from siteline.cli import completions_bash, completions_fish, completions_zsh
from siteline.cli.arguments import parser
from siteline.cli.command_tree import command_of
from siteline.cli.completion import FILES

__all__ = ["FOLDER", "scripts"]

FOLDER = Path(__file__).with_name("completions")


def scripts() -> dict[str, str]:
    """Make the files, by their names."""
    command = command_of(parser())
    shells = {"bash": completions_bash, "zsh": completions_zsh, "fish": completions_fish}
    return {FILES[shell]: module.script(command) for shell, module in shells.items()}


def main() -> int:
    """Write the files, or say which are not as they should be."""
    reader = argparse.ArgumentParser(description="Makes the completion files of siteline.")
    reader.add_argument("--write", action="store_true", help="write them")
    is_writing = reader.parse_args().write
    stale = []
    for name, text in scripts().items():
        path = FOLDER / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if is_writing:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    print(", ".join(stale) or "nothing", "written" if is_writing else "out of date")
    return 1 if stale and not is_writing else 0


if __name__ == "__main__":
    sys.exit(main())
