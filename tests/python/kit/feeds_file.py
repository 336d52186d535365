"""A feeds file for the command, for two lines of the sandbox."""

FEEDS = """
[defaults]
site = "S1"
interval = "5m"
start = 2026-11-17
page_size = 500

[feeds.line-1]
line = "L1"

[feeds.line-2]
line = "L2"
"""
"""Two feeds that start on 17 November; each is read on several pages."""


def write_feeds(folder, text=FEEDS):
    """Writes the feeds file into the folder and returns its path."""
    path = folder / "feeds.toml"
    path.write_text(text, encoding="utf-8")
    return path
