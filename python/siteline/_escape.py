"""Escapes external text (names from the service, file names, settings) before it is shown.

Unescaped text could clear a screen, hide a part of a line, or imitate a line that siteline prints.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def escaped(text: object, spell: Callable[[str], str] | None = None) -> str:
    r"""Replace each unprintable character with its escape, as ``repr`` does.

    ``spell`` returns the escape of one character, by default Python's.
    """
    content = str(text)
    if content.isprintable():
        return content
    spell = spell or _spelt
    return "".join(one if one.isprintable() else spell(one) for one in content)


def escaped_lines(text: object) -> str:
    """Escape each line of a text."""
    content = str(text)
    return content if content.isprintable() else "\n".join(map(escaped, content.split("\n")))


def escaped_json(text: str) -> str:
    """Escape the lines of a JSON document without changing its value."""
    return "\n".join(escaped(line, _spelt_in_json) for line in text.split("\n"))


def described(value: object) -> str:
    """Return the type of a value, without its content."""
    if value is None:
        return "None (is an environment variable unset?)"
    return f"an object of type {type(value).__name__}"


def _spelt(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")


def _spelt_in_json(one: str) -> str:
    # JSON escapes each UTF-16 code unit.
    code = one.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4))
