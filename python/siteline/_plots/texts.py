"""How wide a text is, and texts of others made short enough to be drawn.

A file cannot ask for the width of a text, because the reader's font is not known. The estimate is
that of DejaVu Sans, the widest of the usual fonts: another one leaves more room.
"""

from __future__ import annotations

from unicodedata import combining, east_asian_width

from siteline._escape import escaped

__all__: list[str] = []

# In thousandths of the font's size.
_WIDTHS = {
    **dict.fromkeys("ijl'|", 280),
    **dict.fromkeys("fr.,:;!I()[]/\\- \N{MIDDLE DOT}", 410),
    **dict.fromkeys("mwMW@%\N{EM DASH}", 1_000),
    **dict.fromkeys(
        "OQGDHNU&\N{HORIZONTAL ELLIPSIS}#+=<>~_\N{MINUS SIGN}\N{RIGHTWARDS ARROW}", 850
    ),
}
_DIGIT_OR_SMALL, _CAPITAL, _WIDE = 640, 720, 1_050


def width(text: str, size: float = 11) -> float:
    """Estimate the width of a text in pixels; it is seldom less."""
    return sum(map(_thousandths, text)) * size / 1_000


def _thousandths(one: str) -> int:
    if known := _WIDTHS.get(one):
        return known
    if combining(one):
        return 0
    if one.isascii():
        return _CAPITAL if one.isupper() else _DIGIT_OR_SMALL
    return _WIDE if east_asian_width(one) in "FWA" or not one.isalpha() else 820


def fitted(text: object, room: float, size: float = 11) -> str:
    """Shorten a text until it fits into so many pixels."""
    # No picture has room for more, and a text of a megabyte is not measured.
    shown = escaped(str(text)[:400])
    if width(shown, size) <= room:
        return shown
    left = room - width("…", size)
    for end, one in enumerate(shown):
        left -= _thousandths(one) * size / 1_000
        if left < 0:
            return f"{shown[:end].rstrip()}…"
    return shown
