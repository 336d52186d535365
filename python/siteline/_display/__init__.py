"""Renders objects for notebooks as plain HTML and SVG. Imported when it is needed.

- ``html``: clients, queries, scans, pages and tables; ``series_html``: series and discovery
- ``sync_html``: feeds, stores and syncs; ``diagnosis_html``: the checks of the doctor
- ``elements``: HTML elements for all; ``sparklines``: series as small drawings
- ``calendar``: the rows and cells of a coverage, and its text
"""

from __future__ import annotations
