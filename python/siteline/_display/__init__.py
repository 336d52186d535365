"""What notebooks and files show: plain HTML and SVG. Imported when something is drawn.

- ``html``: clients, queries, scans, pages and tables; ``sync_html``: feeds, stores and syncs
- ``elements``: the HTML elements that both are made of; ``sparklines``: series as small lines
- ``coverage_svg``, ``coverage_text``: a coverage as a calendar, whose rows ``calendar`` makes
- ``protocols``: what is read of the objects that are drawn
"""

from __future__ import annotations

__all__: list[str] = []
