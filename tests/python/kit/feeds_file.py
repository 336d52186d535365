"""A file of feeds for the command, of the lines of the sandbox."""

FEEDS = """
[defaults]
site = "S1"
interval = "5m"
since = 2026-11-17
page_size = 500

[feeds.line-1]
line = "L1"

[feeds.line-2]
line = "L2"
"""
"""Two feeds of three days, on several pages each."""


def write_feeds(folder, text=FEEDS):
    """Write it into the folder; return its path."""
    path = folder / "feeds.toml"
    path.write_text(text, encoding="utf-8")
    return path
