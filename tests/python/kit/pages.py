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


def python_blocks(page):
    """Returns each Python block of a page with the output that the page shows for it, if any."""
    found = re.findall(
        r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?",
        text_of(page),
        re.MULTILINE | re.DOTALL,
    )
    return [(block, output or None) for block, output in found]


def without_trailing_spaces(text):
    """Returns a text without spaces at the ends of its lines, as pages show it."""
    return "\n".join(map(str.rstrip, text.splitlines()))
