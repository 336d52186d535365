"""Renders objects for notebooks as plain HTML and SVG. Imported when it is needed.

- ``html``: clients, queries, scans, pages and tables; ``series_html``: series and discovery
- ``sync_html``: feeds, stores, syncs, and the checks of the doctor
- ``elements``: HTML elements for all; ``calendar``: the rows of a coverage, and its text
"""

from __future__ import annotations
