"""Parses the HTML of an object for notebooks."""

import re
from html.parser import HTMLParser

TAGS = {"div", "span", "b", "table", "tbody", "tr", "td", "th", "svg", "rect", "path"}
"""The elements that drawings may use."""
# Markup that fetches or runs something, or that may affect another object on the page.
FORBIDDEN = re.compile(r"href|src=|url\(|\son\w+=|javascript|\bid=|class=|<style|@import", re.I)


class Reader(HTMLParser):
    """Collects elements and text; asserts that every element is closed.

    ``unboxed`` are the tables and wide drawings that do not scroll in a box within the card.
    """

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.text = [], [], ""
        self.styles, self.unboxed = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        boxes = sum("max-width:100%;overflow-x:auto" in style for style in self.styles)
        is_wide = tag == "table" or (tag == "svg" and int(dict(attrs)["width"]) > 200)
        if is_wide and boxes < 2:  # the first is the card
            self.unboxed.append((tag, dict(attrs)))
        self.open.append(tag)
        self.styles.append(dict(attrs).get("style", ""))

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.styles.pop()

    def handle_data(self, data):
        self.text = " ".join(f"{self.text} {data}".split())


def read_html(shown):
    """Parses the HTML of an object, which must contain only plain elements."""
    html = shown._repr_html_()
    assert not FORBIDDEN.search(html)
    reader = Reader(html)
    assert {tag for tag, _ in reader.seen} <= TAGS
    colours = {
        style for _, attrs in reader.seen for style in attrs.get("style", "").split(";")
        if style.startswith(("color:", "background"))
    }  # fmt: skip
    assert colours <= {"color:inherit", "background:transparent"}, "themes set the colours"
    return reader


def drawn(shown):
    """Parses the drawing of an object, which must not fetch or run anything."""
    html = shown._repr_html_()
    # The URL in xmlns is only a name, so nothing fetches it.
    assert not FORBIDDEN.search(html.replace('xmlns="http://www.w3.org/2000/svg"', ""))
    reader = Reader(html)
    assert {tag for tag, _ in reader.seen} <= TAGS | {"text", "title"}
    return reader
