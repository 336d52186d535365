"""Renders objects for notebooks and files as plain HTML and SVG. Imported when it is needed.

- ``html``: clients, queries, scans, pages and tables; ``sync_html``: feeds, stores and syncs
- ``elements``: HTML elements for both; ``sparklines``: series as small line charts
- ``coverage_svg``, ``coverage_text``: a coverage as a calendar, with the rows of ``calendar``
- ``protocols``: the attributes that rendering reads
"""

from __future__ import annotations

__all__: list[str] = []
