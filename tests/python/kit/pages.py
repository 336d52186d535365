"""The pages of docs/ and their code blocks."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"


def text_of(page):
    """Returns the text of a page of docs/, or of any page by its absolute path."""
    return (DOCS / page).read_text(encoding="utf-8")


def blocks(page, language):
    """Returns the blocks of a language on a page, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL)


def languages():
    """Returns each language of a code block, with the pages that use it."""
    found = {}
    for path in sorted(DOCS.rglob("*.md")):
        for language in re.findall(r"^```(\w+)$", text_of(path), re.MULTILINE):
            found.setdefault(language, set()).add(path.relative_to(DOCS).as_posix())
    return found
