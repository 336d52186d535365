"""The navigation and the tutorials of the documentation site. ``make docs`` checks the rest."""

import importlib
import re
import sys
from pathlib import Path

import pytest
from kit.charts import same_svg
from kit.pages import DOCS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

from documentation import sources  # noqa: E402

pytestmark = pytest.mark.once

SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_page_stands_in_the_navigation():
    listed = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", SITE, re.MULTILINE)
    assert len(listed) == len(set(listed))
    pages = {place for place in sources.places().values() if place.endswith(".md")}
    shown = {place for place in pages if not place.startswith("examples/")}
    assert {place for place in listed if not place.startswith("examples/")} == shown
    assert set(listed) - shown == {"examples/index.md", "examples/recipes/index.md"}


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
