"""Draws the pictures of :mod:`siteline.plots` as plain SVG. Imported when one is made.

- ``points``: series as lines over time; ``columns``: what a table gives, ``series`` and
  ``stretches``: what of it fits into pixels, with its gaps
- ``coverage``, ``lateness``, ``allowance``: the pictures of a store and of the day's requests
- ``axis``, ``numbers``, ``calendar_ticks``: axes with readable ticks; ``legend``: what colours mean
- ``drawing``: the elements of SVG; ``texts``: how wide a text is
- ``tidy``: the frames behind the pictures
"""

from __future__ import annotations

__all__: list[str] = []
