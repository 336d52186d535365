"""The completion file for bash. It needs no bash-completion, and nothing that bash 3.2 lacks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siteline.cli.completions.tree import Command, Value

__all__ = ["script"]

_HEAD = """\
# Completion of siteline for bash. Made from its parser: python -m siteline.cli.completions --write

_siteline_reply() {
    local line
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done
}

_siteline_words() {
    _siteline_reply < <(compgen -W "$1" -- "$current")
}

_siteline_paths() {
    compopt -o filenames 2>/dev/null || :
    _siteline_reply < <(compgen "$1" -- "$current")
}
"""

_MAIN = """\
_siteline() {
    local current=${COMP_WORDS[COMP_CWORD]} command="" option="" place=1 index word
    local commands options valued
    COMPREPLY=()
    _siteline_describe
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if [[ $word == "=" ]]; then
            # bash splits --option=value there.
            continue
        elif [[ -n $option ]]; then
            option=""
        elif [[ $word == -* ]]; then
            if [[ " $valued " == *" $word "* ]]; then
                option=$word
            fi
        elif [[ " $commands " == *" $word "* ]]; then
            command=${command:+$command }$word
            _siteline_describe
        else
            place=$((place + 1))
        fi
    done
    if [[ $current == "=" ]]; then
        current=""
    fi
    if [[ -n $option ]]; then
        _siteline_value "$option"
    elif [[ $current == -* ]]; then
        _siteline_words "$options"
    elif [[ -n $commands ]]; then
        _siteline_words "$commands"
    else
        _siteline_value "$place"
    fi
}

complete -F _siteline siteline
"""


def script(command: Command) -> str:
    """Write the file."""
    return "\n".join([_HEAD, *_describe(command), "", *_values(command), "", _MAIN])


def _describe(root: Command) -> Iterator[str]:
    """The function that sets what there is for a command."""
    yield "_siteline_describe() {"
    yield '    commands="" options="" valued=""'
    yield "    case $command in"
    for command in root.all():
        names = [name for option in command.options for name in option.names]
        valued = [name for option in command.options if option.value for name in option.names]
        yield f'    "{" ".join(command.words)}")'
        yield f'        commands="{" ".join(below.words[-1] for below in command.commands)}"'
        yield f'        options="{" ".join(names)}"'
        yield f'        valued="{" ".join(valued)}"'
        yield "        ;;"
    yield "    esac"
    yield "}"


def _values(root: Command) -> Iterator[str]:
    """The function that completes the value of an option, or the argument at a place."""
    yield "_siteline_value() {"
    yield '    case "$command $1" in'
    for command in root.all():
        words = " ".join(command.words)
        for option in command.options:
            if option.value and (how := _completed(option.value)):
                patterns = "|".join(f'"{words} {name}"' for name in option.names)
                yield f"    {patterns}) {how} ;;"
        for place, argument in enumerate(command.arguments, 1):
            if argument.value and (how := _completed(argument.value)):
                after = "*" if argument.is_repeated else ""
                yield f'    "{words} "{after or place}) {how} ;;'
    yield "    esac"
    yield "}"


def _completed(value: Value) -> str:
    if value.choices:
        return f"_siteline_words {shlex.quote(' '.join(value.choices))}"
    if value.is_file:
        return "_siteline_paths -f"
    return "_siteline_paths -d" if value.is_folder else ""
