"""The completion file for zsh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteline.cli.completions.tree import Argument, Command, Value

__all__ = ["script"]

_HEAD = """\
#compdef siteline
# Completion of siteline for zsh. Made from its parser: python -m siteline.cli.completions --write
"""

_END = """\
# In a folder of $fpath the file itself is the function; from source <(...) it is not.
if [[ $funcstack[1] == _siteline ]]; then
    _siteline "$@"
else
    compdef _siteline siteline
fi
"""


def script(command: Command) -> str:
    """Write the file."""
    functions = ["\n".join(_function(each)) + "\n" for each in command.all()]
    return "\n".join([_HEAD, *functions, _END])


def _function(command: Command) -> Iterator[str]:
    yield f"{_name(command)}() {{"
    if command.commands:
        yield '    local curcontext="$curcontext" state line'
        yield "    local -a commands"
    yield f"    _arguments {'-C ' if command.commands else ''}\\"
    specs = [spec for option in command.options for spec in _option(option)]
    specs += [_argument(argument) for argument in command.arguments]
    if command.commands:
        specs += ["'1: :->command'", "'*:: :->arguments'"]
    yield " \\\n".join(f"        {spec}" for spec in specs)
    if command.commands:
        yield from _choice(command)
    yield "}"


def _choice(command: Command) -> Iterator[str]:
    """Complete the names of the commands below, and what follows them."""
    yield "    case $state in"
    yield "    command)"
    yield "        commands=("
    for below in command.commands:
        yield f"            {_quoted(f'{below.words[-1]}:{below.help}')}"
    yield "        )"
    yield "        _describe -t commands command commands"
    yield "        ;;"
    yield "    arguments)"
    yield "        case $words[1] in"
    for below in command.commands:
        yield f"        {below.words[-1]}) {_name(below)} ;;"
    yield "        esac"
    yield "        ;;"
    yield "    esac"


def _name(command: Command) -> str:
    return "_".join(["_siteline", *command.words]).replace("-", "_")


def _option(option: Argument) -> Iterator[str]:
    """Write a spec for each name; those of one option exclude each other."""
    others = " ".join(option.names)
    before = "*" if option.is_repeated else f"({others})"
    for name in option.names:
        equals = "=" if option.value and name.startswith("--") else ""
        value = f":{_escaped(option.value.name)}:{_completed(option.value)}" if option.value else ""
        yield _quoted(f"{before}{name}{equals}[{_bracketed(option.help)}]{value}")


def _argument(argument: Argument) -> str:
    assert argument.value is not None
    before = "*" if argument.is_repeated else ""
    name = _escaped(argument.value.name)
    # A message alone, where an option is being written, would keep it from being completed.
    completed = _completed(argument.value).strip() or f'_guard "^-*" {name}'
    return _quoted(f"{before}:{_escaped(argument.help) or name}:{completed}")


def _completed(value: Value) -> str:
    if value.choices:
        return f"({' '.join(value.choices)})"
    if value.is_file:
        return "_files"
    return "_files -/" if value.is_folder else " "


def _bracketed(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
