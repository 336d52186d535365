"""The pages of docs/, and the blocks on them."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"


def text_of(page):
    """The text of a page of docs/, or of one elsewhere by its absolute path."""
    return (DOCS / page).read_text(encoding="utf-8")


def blocks(page, language):
    """The blocks of a language on a page, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL)


def languages():
    """Each language of a block, with the pages that have one."""
    found = {}
    for path in sorted(DOCS.rglob("*.md")):
        for language in re.findall(r"^```(\w+)$", text_of(path), re.MULTILINE):
            found.setdefault(language, set()).add(path.relative_to(DOCS).as_posix())
    return found
