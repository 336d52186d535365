"""References resolve: links of the pages, their anchors, and the sections that the code cites."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SOURCES = [
    path
    for folder in ("src", "crates", "python", "tests", "examples", "benches", "docs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".rs", ".py", ".pyi", ".md"} and "target" not in path.parts
]
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SECTION = re.compile(r"(RFC \d+,? )?§(\d+(?:\.\d+)*)(?:, rule (\d))?")


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


def cited_sections(text):
    """The sections of the interface that a text cites; sections of RFCs are excluded."""
    for rfc, section, rule in SECTION.findall(text):
        if not rfc:
            yield f"{section}.{rule}" if rule else section


def test_every_relative_link_and_anchor_resolves(tmp_path):
    broken = {str(page): found for page in PAGES if (found := list(broken_links(page)))}
    assert broken == {}
    page = tmp_path / "page.md"
    page.write_text("# §5.3 `One` page, *cited*\n[a](#53-one-page-cited) [b](#53-two) [c](no.md)")
    assert list(broken_links(page)) == ["#53-two", "no.md"]


def test_every_section_that_is_cited_has_a_heading_in_the_interface_page():
    page = read(ROOT / "docs" / "internals/interface.md")
    known = {
        heading.split()[0].removeprefix("§")
        for heading in HEADING.findall(page)
        if heading.startswith("§")
    }
    cited = {
        (section, path.relative_to(ROOT).as_posix())
        for path in [*SOURCES, *ROOT.glob("*.md")]
        for section in cited_sections(read(path))
    }
    assert len(cited) > 100
    assert not {(section, path) for section, path in cited if section not in known}


def test_places_of_the_architecture_page_exist_and_are_found():
    text = read(ROOT / "docs/internals/architecture.md")
    places = re.findall(r"`((?:crates|src|python)/[\w./]+)`", text)
    places += [f"src/{name}" for name in re.findall(r"`(bridge/\w+\.rs)`", text)]
    assert len(places) > 40
    assert [place for place in places if not (ROOT / place).exists()] == []
    rows = re.findall(r"^\| [^|]+ \| `([^`]+)` \| `([^`]+)` \|$", text, re.MULTILINE)
    assert len(rows) >= 12
    for term, place in rows:
        head = re.match(r"(?:(?:#|//!).*\n)*(?:\"{3}[^\"]*)?", read(ROOT / place))
        assert term in head[0], f"{place} does not begin with {term!r}"
