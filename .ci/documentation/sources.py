"""Writes the sources of the site: ``python -m documentation.sources FOLDER``.

The pages of ``docs/`` are written for readers of the repository. They link to programs, and to
pages outside the folder. This module copies each linked file into the site, adapts the links, and
adapts Markdown that the generator would render differently.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath

from documentation.docstrings import ITEM
from documentation.public import by_reference

ROOT = Path(__file__).resolve().parents[2]

# Pages outside docs/, and their paths in the site.
PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "README.md": "project/readme.md",
}
# Files that become pages, and files that are copied unchanged.
SHOWN = ("examples/*.py", "examples/recipes/*")
HANDED_OUT = (
    "examples/*.ipynb",
    "examples/grafana/*",
    "examples/prometheus/*",
    "docs/**/*.svg",
    "docs/assets/*",
    "docs/tutorials/*.py",
)
LISTED = {"examples": "Programs to run", "examples/recipes": "Recipes as files"}
LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".service": "ini", ".timer": "ini"}

WHOLE_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^( *)(```|~~~)")


def places() -> dict[str, str]:
    """Returns the path in the site for each file of the repository that is part of it."""
    found = dict(PAGES)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        found[_name(path)] = path.relative_to(ROOT / "docs").as_posix()
    for pattern in SHOWN:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                found[_name(path)] = f"{_name(path)}.md"
    for pattern in HANDED_OUT:
        for path in sorted(ROOT.glob(pattern)):
            found[_name(path)] = _name(path).removeprefix("docs/")
    found |= {folder: f"{folder}/index.md" for folder in LISTED}
    return found


def make(folder: Path) -> None:
    """Writes the sources into a folder, and removes its former contents."""
    shutil.rmtree(folder, ignore_errors=True)
    known = places()
    for path, place in known.items():
        source, made = ROOT / path, folder / place
        made.parent.mkdir(parents=True, exist_ok=True)
        if path in LISTED:
            made.write_text(_listing(source, LISTED[path]), encoding="utf-8")
        elif path.endswith(".md"):
            text = source.read_text(encoding="utf-8")
            made.write_text(page(text, path, known), encoding="utf-8")
        elif place.endswith(".md"):
            made.write_text(_shown(source), encoding="utf-8")
        else:
            shutil.copyfile(source, made)


def page(text: str, path: str, known: dict[str, str]) -> str:
    """Converts a page of the repository to a page of the site."""
    place = PurePosixPath(known[path])
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if mark or fence:
            # Python-Markdown requires a deeper indentation for a fence in a list.
            lines.append(f"  {line}" if (fence or line).startswith("  ") else line)
            if mark:
                fence = "" if fence else mark[0]
            continue
        before = lines[-1] if lines else ""
        if ITEM.match(line) and before.strip() and not (ITEM.match(before) or before[0] == " "):
            lines.append("")
        line = WHOLE_LINK.sub(lambda match: _link(match, path, place, known), line)
        is_prose = not line.startswith(("#", "    "))
        lines.append(by_reference(line) if is_prose else line)
    return "\n".join(lines)


def _link(match: re.Match[str], path: str, place: PurePosixPath, known: dict[str, str]) -> str:
    """Returns the link to the target's page, or only its text if the site has no such page."""
    picture, text, target = match.groups()
    name, _, anchor = target.partition("#")
    if re.match("[a-z]+:", target) or not name:
        return match[0]
    wanted = os.path.normpath(PurePosixPath(path).parent / name)
    if wanted not in known:
        return str(text)
    to = os.path.relpath(known[wanted], place.parent)
    return f"{picture}[{text}]({to}{'#' if anchor else ''}{anchor})"


def _shown(path: Path) -> str:
    """Returns a page with the contents of a file."""
    text = path.read_text(encoding="utf-8").rstrip("\n")
    language = LANGUAGES.get(path.suffix, "text")
    return f"# {path.name}\n\n```{language}\n{text}\n```\n"


def _listing(folder: Path, title: str) -> str:
    """Returns a page that lists the files of a folder with their summaries."""
    lines = [f"# {title}\n"]
    for path in sorted(
        path for path in folder.iterdir() if path.suffix in LANGUAGES or not path.suffix
    ):
        if path.is_file():
            lines.append(f"- [{path.name}]({path.name}.md){_summary(path)}")
    return "\n".join(lines) + "\n"


def _summary(path: Path) -> str:
    """Returns the first sentence of the first line of a file."""
    first = path.read_text(encoding="utf-8").split("\n", 1)[0].lstrip('"# ').partition(". ")[0]
    return f": {first.removesuffix('.')}"


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
