"""Makes text of others safe to show: names of the service, files, settings.

Such text could otherwise clear a screen, hide a part of a line, or look like a line of siteline's.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__: list[str] = []


def escaped(text: object, spell: Callable[[str], str] | None = None) -> str:
    r"""Replace each character that is not printable by its escape, as ``repr`` does.

    Args:
        text: The text; of another object, its ``str``.
        spell: Returns the escape of one character. Without it the escapes are those of Python:
            ``\x1b``, ``\n``, ``\u202e``.
    """
    content = str(text)
    if content.isprintable():
        return content
    spell = spell or _spelt
    return "".join(one if one.isprintable() else spell(one) for one in content)


def escaped_lines(text: object) -> str:
    """Escape a text of several lines, each by itself."""
    content = str(text)
    return content if content.isprintable() else "\n".join(map(escaped, content.split("\n")))


def escaped_json(text: str) -> str:
    """Escape the lines of a JSON text: it has the same value afterwards."""
    return "\n".join(escaped(line, spelt_in_json) for line in text.split("\n"))


def _spelt(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")


def spelt_in_json(one: str) -> str:
    """Return the escape of a character in a JSON text."""
    return "".join(f"\\u{ord(half):04x}" for half in _halves(one))


def _halves(one: str) -> str:
    """Return the UTF-16 code units of a character, as JSON writes it."""
    code = ord(one) - 0x10000
    return one if code < 0 else f"{chr(0xD800 + (code >> 10))}{chr(0xDC00 + (code & 0x3FF))}"
