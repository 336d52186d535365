"""The commands of the program as its parser knows them, for those who write completion files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Argument", "Command", "Value", "command_of"]

_OF_FILES = {"BACKUP", "FILE", "PATH", "STORE"}
_OF_FOLDERS = {"FOLDER", "DIRECTORY"}
_REPEATED = {"_AppendAction", "_ExtendAction", "_CountAction"}


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


def _value(action: argparse.Action) -> Value | None:
    if action.nargs == 0:
        return None
    name = action.metavar or action.dest
    first = name if isinstance(name, str) else name[0]
    return Value(first.upper().replace("-", "_"), tuple(map(str, action.choices or ())))
