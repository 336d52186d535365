"""The sources of the documentation site. ``make docs`` builds it and checks the rest."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest
from kit.charts import same_svg
from kit.pages import DOCS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

from documentation import docstrings, sources  # noqa: E402

pytestmark = pytest.mark.once

SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def pages_of_the_site():
    return {place for place in sources.places().values() if place.endswith(".md")}


def test_every_page_stands_in_the_navigation():
    listed = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", SITE, re.MULTILINE)
    assert len(listed) == len(set(listed))
    shown = {place for place in pages_of_the_site() if not place.startswith("examples/")}
    assert {place for place in listed if not place.startswith("examples/")} == shown
    assert set(listed) - shown == {"examples/index.md", "examples/recipes/index.md"}


def test_the_links_of_a_page_follow_what_they_lead_to():
    known = sources.places()
    text = (
        "# A page\nProse of `siteline.Feed`.\n"
        "- [a](../examples/pictures.py), [b](../CHANGELOG.md)\n"
        "- [c](reading.md#pages) [d](../src/lib.rs) [e](https://example.com) [f](#g)\n"
        "```text\n[a](../CHANGELOG.md)\n```\n  ```text\n  in a list\n  ```\n"
    )
    made = sources.page(text, "docs/sync.md", known)
    assert made == (
        "# A page\nProse of [`siteline.Feed`][siteline.Feed].\n\n"
        "- [a](examples/pictures.py.md), [b](project/changelog.md)\n"
        "- [c](reading.md#pages) d [e](https://example.com) [f](#g)\n"
        "```text\n[a](../CHANGELOG.md)\n```\n    ```text\n    in a list\n    ```\n"
    )
    assert sources.page("[s](docs/sync.md)", "README.md", known) == "[s](../sync.md)"


def test_a_docstring_becomes_markdown():
    text = inspect.cleandoc(
        """Read ``a  b``: see :meth:`Client.scan`.
        - ``x``: as ``y``, :class:`asyncio.Task`

        Like this::

            client.scan(start=None)

        or

        >>> scan  # doctest: +SKIP
        <Scan>

        The end.
        """
    )
    known = {"Client.scan": "siteline.Client.scan"}
    assert docstrings.markdown(text, known.get).split("\n") == [
        "Read `a b`: see [`Client.scan`][siteline.Client.scan].",
        "",
        "- `x`: as `y`, `asyncio.Task`",
        "",
        "Like this:",
        "",
        "```python",
        "client.scan(start=None)",
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
        "The end.",
        "",
    ]


def test_a_role_that_names_nothing_is_an_error():
    with pytest.raises(docstrings.UnresolvedReference, match=r"Client\.dta"):
        docstrings.markdown("See :meth:`Client.dta`.", {}.get)


TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_gives_the_page_and_the_pictures_that_are_committed(path):
    pytest.importorskip("pandas")
    tutorials = importlib.import_module("documentation.tutorials")
    made = tutorials.executed(path)
    committed = {one.name for one in path.parent.glob(f"{path.stem}*") if one.suffix != ".py"}
    assert made.keys() == committed
    for name, text in made.items():
        assert same_svg(text, (path.parent / name).read_text(encoding="utf-8")), name
