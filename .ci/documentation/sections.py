"""Links from ``§4.4`` to that section of the page on the service's interface."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "interface.md"
HEADING = re.compile(r"^#+ +(§(?P<section>[\d.]+) .+?) *$", re.MULTILINE)
# Code, links and citations of RFCs stay as they are.
KEPT = re.compile(
    r"(`+).*?\1|\[(?:[^][]|\[[^]]*\])*\][([][^)\]]*[)\]]|RFC \d+,? §[\d.]*\d", re.DOTALL
)
CITED = re.compile(r"§(?P<section>\d+(?:\.\d+)*)(?:, rule (?P<rule>\d))?")


@cache
def anchors() -> dict[str, str]:
    """The anchor of each section."""
    text = PAGE.read_text(encoding="utf-8")
    return {match["section"]: slug(match[1]) for match in HEADING.finditer(text)}


def slug(heading: str) -> str:
    """The anchor of a heading, as repositories' pages and the site have it."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def by_address(text: str, page: str) -> str:
    """The text with links to the page at this relative address."""
    return _linked(text, lambda anchor: f"({page}#{anchor})")


def by_reference(text: str) -> str:
    """The text with links to the anchor, wherever its page is."""
    return _linked(text, lambda anchor: f"[{anchor}]")


def _linked(text: str, target: Callable[[str], str]) -> str:
    def link(match: re.Match[str]) -> str:
        number = match["section"] + (f".{match['rule']}" if match["rule"] else "")
        return f"[{match[0]}]{target(anchors()[number])}"

    made, at = [], 0
    for kept in KEPT.finditer(text):
        made += [CITED.sub(link, text[at : kept.start()]), kept[0]]
        at = kept.end()
    return "".join([*made, CITED.sub(link, text[at:])])
