"""Makes the completion files of the command from its parser.

``python -m siteline.cli.completions --write`` writes them into the folder of the same name; without
the option it says which of them are not what the parser says now.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from siteline.cli.completion import FILES

__all__ = ["FOLDER", "Argument", "Command", "Value", "command_of", "scripts"]

FOLDER = Path(__file__).with_name("completions")

_OF_FILES = {"FILE", "PATH", "STORE"}
_OF_FOLDERS = {"FOLDER", "DIRECTORY"}


class Value(NamedTuple):
    """What an option or an argument takes."""

    name: str
    """As the help names it."""
    choices: tuple[str, ...]
    """All there are; empty where any text will do."""

    @property
    def is_file(self) -> bool:
        """Whether it is the path of a file, by its name in the help."""
        return not _OF_FILES.isdisjoint(self.name.split("_"))

    @property
    def is_folder(self) -> bool:
        """Whether it is the path of a folder."""
        return not _OF_FOLDERS.isdisjoint(self.name.split("_"))


class Argument(NamedTuple):
    """An option, or an argument by its place."""

    names: tuple[str, ...]
    """Those of an option; none of an argument by its place."""
    help: str
    value: Value | None
    """``None`` where the option takes none."""
    is_repeated: bool


class Command(NamedTuple):
    """A command, with those below it."""

    words: tuple[str, ...]
    """Without the name of the program."""
    help: str
    options: tuple[Argument, ...]
    arguments: tuple[Argument, ...]
    commands: tuple[Command, ...]

    def all(self) -> Iterator[Command]:
        """Give this command and all below it, in the order of the help."""
        yield self
        for below in self.commands:
            yield from below.all()


def command_of(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = (), help: str = ""
) -> Command:
    """Read a parser."""
    options: list[Argument] = []
    arguments: list[Argument] = []
    commands: list[Command] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help for each in action._choices_actions}
            commands += [
                command_of(action.choices[name], (*words, name), text or "")
                for name, text in helps.items()
            ]
        elif action.help != argparse.SUPPRESS:
            (options if action.option_strings else arguments).append(_argument(action, parser))
    return Command(words, help, tuple(options), tuple(arguments), tuple(commands))


def _argument(action: argparse.Action, parser: argparse.ArgumentParser) -> Argument:
    text = (action.help or "") % {**vars(action), "prog": parser.prog}
    is_repeated = action.nargs in ("*", "+") or type(action).__name__ in _REPEATED
    names = tuple(action.option_strings)
    return Argument(names, " ".join(text.split()), _value(action), is_repeated)


_REPEATED = {"_AppendAction", "_ExtendAction", "_CountAction"}


def _value(action: argparse.Action) -> Value | None:
    if action.nargs == 0:
        return None
    name = action.metavar or action.dest
    first = name if isinstance(name, str) else name[0]
    return Value(first.upper().replace("-", "_"), tuple(map(str, action.choices or ())))


def scripts() -> dict[str, str]:
    """Make the files, by their names."""
    from siteline.cli import completions_bash, completions_fish, completions_zsh
    from siteline.cli.arguments import parser

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
