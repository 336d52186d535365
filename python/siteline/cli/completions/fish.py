"""The completion file for fish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteline.cli.completions.tree import Argument, Command, Value

__all__ = ["script"]

_HEAD = """\
# Completion of siteline for fish. Made from its parser: python -m siteline.cli.completions --write
"""

_FUNCTION = """\
function __siteline_at --description 'Whether the words so far are of this command'
    set -l command
    set -l is_value 0
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if test $is_value = 1
            set is_value 0
        else if contains -- $word $__siteline_valued
            set is_value 1
        else if contains -- "$command $word" $__siteline_commands
            set command "$command $word"
        end
    end
    test "$command" = "$argv[1]"
end

complete -c siteline -f
"""


def script(command: Command) -> str:
    """Write the file."""
    paths = [_path(each) for each in command.all() if each.words]
    valued = {
        name
        for each in command.all()
        for option in each.options
        if option.value
        for name in option.names
    }
    known = [
        f"set -g __siteline_commands {' '.join(map(_quoted, paths))}",
        f"set -g __siteline_valued {' '.join(sorted(valued))}",
    ]
    lines = [line for each in command.all() for line in _completions(each)]
    return "\n".join([_HEAD, *known, "", _FUNCTION, *lines]) + "\n"


def _path(command: Command) -> str:
    """Each word has a blank before it, as the function joins them."""
    return "".join(f" {word}" for word in command.words)


def _completions(command: Command) -> Iterator[str]:
    at = _quoted(f"__siteline_at {_quoted(_path(command))}")
    start = f"complete -c siteline -n {at}"
    for below in command.commands:
        yield f"{start} -a {below.words[-1]} -d {_quoted(below.help)}"
    for option in command.options:
        names = " ".join(
            f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
        )
        value = f" {_completed(option.value)}" if option.value else ""
        yield f"{start} {names}{value} -d {_quoted(option.help)}"
    for argument in command.arguments:
        if line := _placed(argument):
            yield f"{start} {line}"


def _completed(value: Value) -> str:
    """Write what an option takes: -r and -x need a value, -F completes files."""
    if value.choices:
        return f"-x -a {_quoted(' '.join(value.choices))}"
    if value.is_file:
        return "-r -F"
    return "-x -a '(__fish_complete_directories)'" if value.is_folder else "-x"


def _placed(argument: Argument) -> str:
    value = argument.value
    if value is None:
        return ""
    if value.choices:
        return f"-a {_quoted(' '.join(value.choices))}"
    if value.is_file:
        return "-F"
    return "-a '(__fish_complete_directories)'" if value.is_folder else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
