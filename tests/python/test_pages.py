"""The relative links of the pages and their anchors resolve."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def read(path):
    return path.read_text(encoding="utf-8")


def slug(heading):
    """The anchor of a heading, as GitHub makes it."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(text):
    return {slug(heading) for heading in HEADING.findall(FENCED.sub("", text))}


def broken_links(page):
    for target in LINK.findall(FENCED.sub("", read(page))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists() or (anchor and anchor not in anchors(read(path))):
            yield target


def test_every_relative_link_and_anchor_resolves(tmp_path):
    broken = {str(page): found for page in PAGES if (found := list(broken_links(page)))}
    assert broken == {}
    page = tmp_path / "page.md"
    page.write_text("# §5.3 `One` page, *cited*\n[a](#53-one-page-cited) [b](#53-two) [c](no.md)")
    assert list(broken_links(page)) == ["#53-two", "no.md"]
