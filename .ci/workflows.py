"""What zizmor and actionlint do not ask of .github/workflows.

- A step runs one command in one line: a target that the Makefile has, or one of ``OTHER``. So all
  that a workflow does can be done, and is tried, on any machine.
- An action is one of ``ACTIONS``, by a full commit with its version beside it, the same everywhere.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Commands beside make: the toolchain that a runner does not have yet, and the release's own page.
OTHER = ("rustup toolchain install ", "rustup target add ", "gh release create ")
ACTIONS = (
    "actions/attest",
    "actions/checkout",
    "actions/download-artifact",
    "actions/setup-python",
    "actions/upload-artifact",
    "pypa/gh-action-pypi-publish",
)

RUN = re.compile(r"^ *(?:- +)?run: *(?P<command>.*?) *$")
USES = re.compile(r"^ *(?:- +)?uses: *(?P<action>.*?) *$")
PINNED = re.compile(r"^(?P<name>[\w./-]+)@(?P<commit>[0-9a-f]{40}) # (?P<version>v\d+\.\d+\.\d+)$")
TARGET = re.compile(r"^(?P<names>[A-Za-z][A-Za-z -]*):(?!=)", re.MULTILINE)
SETTING = re.compile(r'^[A-Z_]+=("[^"`]*"|[\w./-]+)$')
WORD = re.compile(r'[A-Z_]+="[^"]*"|\S+')


def targets(makefile: str) -> set[str]:
    """The targets of a Makefile that are no files."""
    return {name for match in TARGET.finditer(makefile) for name in match["names"].split()}


def faults(workflow: str, known: set[str]) -> list[str]:
    """What is wrong with a workflow, one sentence each, with the line."""
    found, lines = [], workflow.splitlines()
    for number, line in enumerate(lines, 1):
        run = RUN.match(line)
        if run and not (run["command"] == "" and "shell:" in "".join(lines[number : number + 1])):
            found += [f"{number}: {fault}" for fault in _command(run["command"], known)]
        if uses := USES.match(line):
            found += [f"{number}: {fault}" for fault in _action(uses["action"])]
    return found


def disagreeing(workflows: list[str]) -> list[str]:
    """The actions that the workflows take by more than one commit or version."""
    pins: dict[str, set[tuple[str, str]]] = {}
    for line in "\n".join(workflows).splitlines():
        uses = USES.match(line)
        if uses and (pinned := PINNED.match(uses["action"])):
            pins.setdefault(pinned["name"], set()).add((pinned["commit"], pinned["version"]))
    return [
        f"{name} is taken by {len(them)} commits." for name, them in pins.items() if len(them) > 1
    ]


def _command(command: str, known: set[str]) -> list[str]:
    if command.startswith(OTHER):
        return []
    if command in {"", "|", ">", "|-", ">-"}:
        return ["A step runs one command in one line."]
    words = WORD.findall(command)
    if words[0] != "make" or len(words) == 1:
        return [f'"{command}" is no target of make.']
    unknown = [word for word in words[1:] if not SETTING.match(word) and word not in known]
    return [f'The Makefile has no target "{word}".' for word in unknown]


def _action(action: str) -> list[str]:
    if action.startswith("$/"):
        return [] if (ROOT / action[2:]).exists() else [f"{action} is missing."]
    pinned = PINNED.match(action)
    if not pinned:
        return [f'"{action}" is not a full commit with its version beside it.']
    return [] if pinned["name"] in ACTIONS else [f"{pinned['name']} is not in the list of actions."]


def main() -> int:
    """Read every workflow."""
    known = targets((ROOT / "Makefile").read_text(encoding="utf-8"))
    paths = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    found = disagreeing(texts)
    for path, text in zip(paths, texts, strict=True):
        found += [f"{path.name}:{fault}" for fault in faults(text, known)]
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return bool(found) or not paths


if __name__ == "__main__":
    sys.exit(main())
