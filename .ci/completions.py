"""Writes the shell completions into the package, for the wheel and the source distribution.

The parser is imported from the source tree. A substitute replaces the compiled module, so this
needs no build, only shtab.
"""

from __future__ import annotations

import argparse
import sys
import types
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1] / "python"


class _Core(types.ModuleType):
    """Has a class for each name."""

    def __getattr__(self, name: str) -> object:
        if name == "__version__":
            return ""
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {})


_FILES = {"BACKUP", "FILE", "PATH", "STORE"}
_FOLDERS = {"FOLDER", "DIRECTORY"}


def generate(shell: str) -> str:
    """Returns the script of a shell."""
    import shtab
    from siteline.cli.parser import parser_of

    parser = parser_of()
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


def main() -> None:
    """Writes one file for each shell."""
    sys.path.insert(0, str(PYTHON))
    sys.modules["siteline._core"] = _Core("siteline._core")
    from siteline.cli import completion

    folder = Path(completion.FOLDER)
    folder.mkdir(exist_ok=True)
    for shell in completion.SHELLS:
        (folder / shell).write_text(generate(shell), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
