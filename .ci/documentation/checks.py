"""Checks the built site: ``python -m documentation.checks FOLDER``.

zensical reports broken links. This module checks that no page loads anything from another host, and
that each public name is on a page of the API reference with its types and a text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from documentation.reference import public_names, typed

FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\b(?:src|srcset|data)=[\"']?(?:https?:)?//"
    r"|<link\b(?![^>]*rel=[\"']?(?:canonical|edit|prev|next))[^>]*?href=[\"']?(?:https?:)?//"
)
IN_STYLES = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?:https?:)?//")
NAME = re.compile(r'<h\d id="(siteline[^"]*)" class="doc doc-heading">')
TAG = re.compile(r"<[^>]+>")


def fetched_elsewhere(site: Path) -> Iterator[str]:
    """Yields the files that make a browser load something from another host."""
    for pattern, name in ((FETCHED, "*.html"), (IN_STYLES, "*.css")):
        for path in sorted(site.rglob(name)):
            yield from (
                f"{path}: {match[0]}" for match in pattern.finditer(path.read_text("utf-8"))
            )


def shown_names(site: Path) -> dict[str, tuple[str, str]]:
    """Returns the signature and the text of each name in the API reference."""
    found = {}
    for path in sorted((site / "api").glob("*.html")):
        page = path.read_text(encoding="utf-8")
        headings = list(NAME.finditer(page))
        ends = [one.start() for one in headings[1:]] + [len(page)]
        for heading, end in zip(headings, ends, strict=True):
            whole = page[heading.start() : end]
            signature, _, text = whole.partition('<div class="doc doc-contents')
            text = text.partition('<div class="doc doc-children">')[0].partition(">")[2]
            found[heading[1]] = (unescape(TAG.sub("", signature)), TAG.sub("", text))
    return found


def faults_of_names(shown: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yields the public names that are on no page, or that have no text or no types."""
    modules = {name.rpartition(".")[2]: name for name in shown if name.count(".") == 2}
    for name, thing in public_names():
        # The page of `siteline.errors.QueryError` contains it as `siteline.errors.QueryError`.
        head, _, member = name.removeprefix("siteline.").partition(".")
        elsewhere = modules.get(head, "") + (f".{member}" if member else "")
        if (found := shown.get(name) or shown.get(elsewhere)) is None:
            yield f"{name} is on no page."
        elif not found[1].strip():
            yield f"{name} has no text."
        elif not thing.is_class and not typed(thing, found[0]):
            yield f"{name} has no types: {found[0].strip()}"


def main(site: Path) -> int:
    """Checks a site and prints its faults."""
    faults = [*fetched_elsewhere(site), *faults_of_names(shown_names(site))]
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
