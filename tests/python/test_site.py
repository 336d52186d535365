"""The documentation site: its sources, its pages of names, its tutorials.

``make docs`` builds it, and asks the same of what was built (``.ci/documentation/checks.py``).
"""

import importlib
import inspect
import re
import sys
import types
from pathlib import Path

import pytest
from kit.pages import DOCS
from kit.pictures import CHROMIUM

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

from documentation import docstrings, public, sections, sources  # noqa: E402

pytestmark = pytest.mark.once

SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def directives():
    """Each path that a page of names shows, with the members that are chosen, or None for all."""
    found = {}
    for page in sorted((DOCS / "api").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for block in re.split(r"^(?=:::)", text, flags=re.MULTILINE):
            if match := re.match(r"::: (\S+)\n", block):
                chosen = re.search(r"members: \[(.*)\]", block)
                found[match[1]] = chosen and set(chosen[1].split(", "))
    return found


def unshown(found):
    """The public names that no page shows."""
    shown = {path.rpartition(".")[2] for path in found}
    for module in public.MODULES[1:]:
        if module in found:
            shown |= set(public.exported(module)) if found[module] is None else found[module]
    return sorted(name for name in public.names() if name.rpartition(".")[2] not in shown)


def test_every_public_name_is_on_a_page_of_names():
    assert len(public.names()) > 150
    assert not unshown(directives())


def test_a_public_name_on_no_page_is_found():
    without = {path: chosen for path, chosen in directives().items() if path != "siteline.Feed"}
    assert unshown(without) == ["siteline.Feed"]


def test_the_public_names_are_those_of_the_modules_and_of_the_stability_page():
    said = (DOCS / "stability.md").read_text(encoding="utf-8").split("## What is public")[1]
    assert set(re.findall(r"`(siteline\.[a-z]+)`", said.split("- **Results")[0])) <= public.names()
    for module in ("siteline", "siteline.errors", "siteline.plots", "siteline.reports"):
        assert public.exported(module) == importlib.import_module(module).__all__


def test_what_the_pages_of_names_show_is_public():
    for path, chosen in directives().items():
        assert path in public.names(), path
        assert not chosen or chosen <= set(public.exported(path)), path


def test_code_of_a_page_that_names_something_public_links_to_it():
    text = "`siteline.Feed`, `help(siteline.Client.data)`, `siteline.Shape(...)`, `siteline.errors`"
    assert public.by_reference(text) == (
        "[`siteline.Feed`][siteline.Feed], [`help(siteline.Client.data)`][siteline.Client.data], "
        "[`siteline.Shape(...)`][siteline.Shape], [`siteline.errors`][siteline.errors]"
    )
    for kept in ("`siteline.feed`", "[`siteline.Feed`](api/sync.md)", "`siteline.retry.wait`"):
        assert public.by_reference(kept) == kept


def pages_of_the_site():
    return {place for place in sources.places().values() if place.endswith(".md")}


def test_every_page_stands_in_the_navigation():
    listed = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", SITE, re.MULTILINE)
    assert len(listed) == len(set(listed))
    shown = {place for place in pages_of_the_site() if not place.startswith("examples/")}
    assert {place for place in listed if not place.startswith("examples/")} == shown
    assert set(listed) - shown == {"examples/index.md", "examples/recipes/index.md"}


def test_no_page_is_made_of_two_files():
    places = list(sources.places().values())
    assert len(places) == len(set(places))


def test_the_links_of_a_page_follow_what_they_lead_to():
    known = sources.places()
    text = (
        "# A page\nProse of §4.4 and `§4.4`.\n"
        "- [a](../examples/pictures.py), [b](../CHANGELOG.md)\n"
        "- [c](reading.md#pages) [d](../src/lib.rs) [e](https://example.com) [f](#g)\n"
        "```text\n[a](../CHANGELOG.md) §4.4\n```\n  ```text\n  in a list\n  ```\n"
    )
    made = sources.page(text, "docs/sync.md", known)
    assert made == (
        "# A page\nProse of [§4.4](interface.md#44-paging) and `§4.4`.\n\n"
        "- [a](examples/pictures.py.md), [b](project/changelog.md)\n"
        "- [c](reading.md#pages) d [e](https://example.com) [f](#g)\n"
        "```text\n[a](../CHANGELOG.md) §4.4\n```\n    ```text\n    in a list\n    ```\n"
    )
    assert sources.page("[s](docs/sync.md)", "README.md", known) == "[s](../sync.md)"


def test_a_docstring_becomes_markdown():
    text = inspect.cleandoc(
        """Read ``a  b`` (§4.2): see :meth:`Client.data`.
        - ``x``: as ``§4.4``, :class:`asyncio.Task`

        Like this::

            client.data(start=None)

        or

        >>> scan  # doctest: +SKIP
        <Scan>

        The end (RFC 1952 §2.3.1).
        """
    )
    known = {"Client.data": "siteline.Client.data"}
    assert docstrings.markdown(text, known.get).split("\n") == [
        "Read `a b` ([§4.2][42-discovery]): see [`Client.data`][siteline.Client.data].",
        "",
        "- `x`: as `§4.4`, `asyncio.Task`",
        "",
        "Like this:",
        "",
        "```python",
        "client.data(start=None)",
        "```",
        "",
        "or",
        "",
        "",
        "```pycon",
        ">>> scan",
        "<Scan>",
        "```",
        "",
        "",
        "The end (RFC 1952 §2.3.1).",
        "",
    ]


def test_a_role_that_names_nothing_is_an_error():
    with pytest.raises(docstrings.UnresolvedReference, match=r"Client\.dta"):
        docstrings.markdown("See :meth:`Client.dta`.", {}.get)


def test_every_section_has_the_anchor_that_the_site_gives_it():
    assert sections.anchors()["4.4.3"] == "443-opaque-cursor"
    with pytest.raises(KeyError):
        sections.by_reference(f"§{99.1}")


@pytest.fixture
def checks(monkeypatch):
    """The checks of a built site, without what reads the names."""
    stand_in = types.SimpleNamespace(public_names=list, typed=None)
    monkeypatch.setitem(sys.modules, "documentation.joined", stand_in)
    return importlib.import_module("documentation.checks")


def test_broken_links_and_what_is_fetched_from_elsewhere_are_found(checks, tmp_path):
    site = tmp_path.resolve()
    (site / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#there">b</a><a href="b.html#not">b</a>'
        '<a href="c.html">c</a><a href="https://example.com">out</a><a href="#top">up</a>'
        '<script src="https://example.com/x.js"></script><img src="here.svg">'
        '<link rel="stylesheet" href="//example.com/x.css">'
        '<link rel="canonical" href="https://e.com">'
    )
    (site / "b.html").write_text('<h1 id="there">B</h1>')
    (site / "s.css").write_text("a{background:url(https://example.com/p.png)} b{src:url(f.woff)}")
    found = checks.pages(site)
    assert list(checks.broken_links(found)) == [
        f"{site}/a.html: no anchor b.html#not",
        f"{site}/a.html: no page c.html",
    ]
    assert [one.rpartition(": ")[2] for one in checks.fetched_elsewhere(site, found)] == [
        "https://example.com/x.js",
        "//example.com/x.css",
        "https://example.com/p.png",
    ]


def test_names_are_read_with_their_signature_and_text(checks):
    page = checks.Page(
        '<div class="doc-object"><h2 id="a.B" class="doc-heading">B</h2>'
        '<div class="doc-signature">B(x: int)</div><div class="doc-contents"><p>Text.</p>'
        '<div class="doc-children"><div class="doc-object">'
        '<h3 id="a.B.c" class="doc-heading">c</h3>'
        '<div class="doc-contents"> </div></div></div></div></div>'
    )
    assert page.names["a.B"] == {"doc-signature": "B(x: int)", "doc-contents": "Text."}
    assert page.names["a.B.c"] == {"doc-signature": "", "doc-contents": " "}


BAD = """<body style="background: #fff; color: #bbb"><p>Pale</p><p style="color: #000">Plain</p>
<div style="width: 800px; height: 1px"></div><img src="http://127.0.0.1:9/x.png"></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_what_chromium_shows_badly_is_found(tmp_path, monkeypatch):
    browser = importlib.import_module("documentation.browser")
    monkeypatch.setattr(browser, "PAGES", ("bad.html",))
    (tmp_path / "bad.html").write_text(f'<meta charset="utf-8">{BAD}')
    found = browser.seen(tmp_path, CHROMIUM)
    bad = (tmp_path / "bad.html").as_uri()
    assert found["views"] == 4
    assert set(found["wrong"]) == {
        *(f'{bad}, {width} px, {scheme}: contrast 1.92 of "Pale"'
          for width in (400, 1200) for scheme in ("default", "slate")),
        *(f"{bad}, 400 px, {scheme}: is wider than its frame" for scheme in ("default", "slate")),
        f"{bad}: fetches http://127.0.0.1:9/x.png",
        "no field has the focus after /",
    }  # fmt: skip


TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_gives_the_page_and_the_pictures_that_are_committed(path):
    pytest.importorskip("pandas")
    tutorials = importlib.import_module("documentation.tutorials")
    made = tutorials.executed(path)
    committed = {one.name for one in path.parent.glob(f"{path.stem}*") if one.suffix != ".py"}
    assert made.keys() == committed
    for name, text in made.items():
        assert text == (path.parent / name).read_text(encoding="utf-8"), name


def test_there_are_tutorials_with_pictures_and_no_failed_cell():
    assert len(TUTORIALS) >= 3
    assert len(list((DOCS / "tutorials").glob("*.svg"))) >= 4
    for path in TUTORIALS:
        assert "Traceback" not in path.with_suffix(".md").read_text(encoding="utf-8")


def test_the_first_page_prints_what_it_shows(capsys):
    pytest.importorskip("pandas")
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    shown = re.findall(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    assert shown
    for program, output in shown:
        space = {}
        exec(program, space)
        space["sandbox"].close()
        assert capsys.readouterr().out == output
