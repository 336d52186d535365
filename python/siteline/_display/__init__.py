"""Renders objects for notebooks as plain HTML and SVG. Imported when it is needed.

- ``html``: clients, queries, scans, pages and tables; ``series_html``: series and discovery
- ``sync_html``: feeds, stores and syncs; ``diagnosis_html``: the checks of the doctor
- ``elements``: HTML elements for all; ``sparklines``: series as small drawings
- ``coverage_text``: a coverage as text, with the rows of ``calendar``
"""

from __future__ import annotations

__all__: list[str] = []
