"""What is asked of the built site: ``python -m documentation.checks FOLDER``.

Each link leads to a page and an anchor that are there. No page loads anything from elsewhere. Each
public name, and each public member of a class, is on a page of the API with its types and a text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from documentation.joined import public_names, typed

# What a browser fetches when a page is opened; an <a> it does not.
FETCHED = {"src", "srcset", "data", "poster"}
FETCHING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch"}
ELSEWHERE = re.compile(r"\s*(?:https?:)?//")
IN_STYLES = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?P<address>[^'\")]+)")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
SIGNATURE, TEXT = "doc-signature", "doc-contents"


class Page(HTMLParser):
    """The anchors, links and names of a page, and what a browser fetches to show it."""

    def __init__(self, text: str) -> None:
        """Read a page."""
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        # Of each name the text of its signature and of its docstring.
        self.names: dict[str, dict[str, str]] = {}
        self._open: list[set[str]] = []
        self._objects: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take anchors, links and what is fetched."""
        given = {name: value or "" for name, value in attrs}
        classes = set(given.get("class", "").split())
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and FETCHING_LINKS & set(given.get("rel", "").split()):
            self.fetched.append(given["href"])
        self.fetched += [given[name] for name in FETCHED & given.keys()]
        if "doc-object" in classes:
            self._objects.append("")
        if "doc-heading" in classes and self._objects:
            self._objects[-1] = given.get("id", "")
            self.names[given.get("id", "")] = {SIGNATURE: "", TEXT: ""}
        if tag not in VOID:
            self._open.append(classes)

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        if tag not in VOID and self._open and "doc-object" in self._open.pop():
            self._objects.pop()

    def handle_data(self, data: str) -> None:
        """Take the text of a signature, or of a docstring."""
        if not self._objects or self._objects[-1] not in self.names:
            return
        for classes in reversed(self._open):
            if part := classes & {SIGNATURE, TEXT}:
                self.names[self._objects[-1]][part.pop()] += data
            if classes & {SIGNATURE, TEXT, "doc-children", "doc-object"}:
                return


def pages(site: Path) -> dict[Path, Page]:
    """All pages of the site."""
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def broken_links(found: dict[Path, Page]) -> Iterator[str]:
    """The links within the site that lead nowhere."""
    for path, page in found.items():
        # The page of unknown addresses has links from the root.
        for link in page.links if path.name != "404.html" else ():
            if re.match(r"[a-z]+:|//", link):
                continue
            name, _, anchor = unquote(link).partition("#")
            target = (path.parent / name).resolve() if name else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{path}: no page {link}"
            elif anchor and target in found and anchor not in found[target].anchors:
                yield f"{path}: no anchor {link}"


def fetched_elsewhere(site: Path, found: dict[Path, Page]) -> Iterator[str]:
    """What a browser would fetch from another place to show the site."""
    for path, page in found.items():
        yield from (f"{path}: {one}" for one in page.fetched if ELSEWHERE.match(one))
    for path in sorted(site.rglob("*.css")):
        for match in IN_STYLES.finditer(path.read_text(encoding="utf-8")):
            if ELSEWHERE.match(match["address"]):
                yield f"{path}: {match['address']}"


def faults_of_names(found: dict[Path, Page]) -> Iterator[str]:
    """Public names without a place, a text or types."""
    shown = {name: said for page in found.values() for name, said in page.names.items()}
    homes = {name.partition(".")[2].rpartition(".")[2]: name for name in shown}
    count = 0
    for name, thing in public_names():
        count += 1
        said = shown.get(name) or shown.get(_in_its_module(name, homes))
        if said is None:
            yield f"{name} is on no page."
            continue
        if not said[TEXT].strip():
            yield f"{name} has no text."
        if not thing.is_class and not typed(thing, said[SIGNATURE]):
            yield f"{name} has no types: {said[SIGNATURE].strip()}"
    print(f"{count} public names and members, each asked for on a page, with types and text")


def _in_its_module(name: str, homes: dict[str, str]) -> str:
    """`siteline.QueryError` stands on its page as `siteline.errors.QueryError`."""
    head, _, rest = name.removeprefix("siteline.").partition(".")
    return f"{homes.get(head, '')}{'.' if rest else ''}{rest}"


def main(site: Path) -> int:
    """Check a site, print what is wrong."""
    site = site.resolve()
    found = pages(site)
    faults = [*broken_links(found), *fetched_elsewhere(site, found), *faults_of_names(found)]
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    print(f"{len(found)} pages, {sum(len(page.links) for page in found.values())} links")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
