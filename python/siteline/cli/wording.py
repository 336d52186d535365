"""Texts of the library for users of the command: options and commands instead of Python calls."""

from __future__ import annotations

import re
from collections.abc import Container

_PROFILE = "in [NAME.shape] of a profile"
_TEXTS = {
    r"client\.series\(\)": "siteline series",
    r"client\.sync\(.*?\)": "siteline sync",
    r"\bCall (?:sync|collect)\(\) again": "Run the command again",
    r"\bcall (?:sync|collect)\(\) again": "run the command again",
    r" after retry_at": " later",
    r"See store\.lateness\(\)": "siteline coverage --lateness shows it",
    r"store\.coverage\(.*?\)": "siteline coverage",
    r'unread="warn" omits .*? arrived\.': "",
    r"Start again with changes\(since=0\)": "Start again with --since 0",
    r"sync\(\.\.\., reread=\(start, end\)\)": "--reread START/END",
    r"Accept the new definition .*?, or give": "Give",
    r"window=: store\.redefine\(feed\)": "window",
    r"(?:store\.)?\b(forget|compact)\(\)": r"\1",
    r"siteline\.PrivateKey\.generate\(\)": "siteline keygen",
    r"Store\.backup\(\)": "siteline store backup",
    r",? without read_only=": " for writing",
    r"state how: filter_names=\{.*?\}": "state how in [NAME.filter_names] of a profile",
    r"report\.not_recognised lists the members of the body; Client\(.*?\)\)\)": (
        f"siteline series --raw prints the body; discovery {_PROFILE}"
    ),
    r"(?<!\w)Shape\(([^()]*)\)": rf"\1 {_PROFILE}",
    r'client\.read\(\.\.\., interval=(\S+)\)\.resample\((\S+), "mean"\), or another agg': (
        r"--interval \1 --resample \2 --agg mean, or another --agg"
    ),
    r"with find\(\)": "with --find",
    r"credential=siteline\.MutualTls\(.*?\)": "certificate_file in the profile",
    r"MutualTls\(client_id=\)": "client_id in the profile",
    r" of MutualTls": "",
    r"sandbox\.env\(\)": "its env file",
    r",? or (?:pass )?clock=sandbox\.clock": "",
}
_OTHER_NAMES = {"filters": "filter"}
# Not the start of a path, such as site=S1/week.csv.
_KEYWORD = re.compile(r"""(?<![\w?&/'".-])([a-z][a-z_]*)=(?![^\s'"({[]*[/\\])(?=(.?))""", re.DOTALL)
_CALL = re.compile(r"\w\(|\b(?:client|error|report|scan|table)\.[a-z]")
_SENTENCE = re.compile(r"(?<=[.!?]) +")


def in_shell(text: str, options: Container[str] = ()) -> str:
    """Returns a text with the words of the command.

    A keyword such as ``page_size=`` becomes an option if the command has it; otherwise it is the
    name of a setting.
    """
    for call, command in _TEXTS.items():
        text = re.sub(call, command, text)

    def renamed(found: re.Match[str]) -> str:
        name, after = found[1], found[2]
        option = f"--{_OTHER_NAMES.get(name, name).replace('_', '-')}"
        is_named = not after or after in " ,.;:)\n"
        if option in options:
            return option if is_named else f"{option} "
        return name if is_named else found[0]

    return _KEYWORD.sub(renamed, text)


def hint_in_shell(text: str, options: Container[str] = ()) -> str:
    """Returns a hint with the words of the command, without the sentences for programs."""
    lines = (
        " ".join(one for one in _SENTENCE.split(line) if not _CALL.search(one))
        for line in in_shell(text, options).split("\n")
    )
    return "\n".join(filter(None, lines))
