"""The time of a sandbox, and time ranges of its data."""

NOW = "2026-11-20T00:00:00Z"
"""The time of the `sandbox` fixture's clock."""

DAY = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z", "interval": "5m"}
"""A day in buckets of five minutes: several thousand points."""

HOURLY = {**DAY, "interval": "1h"}
"""The same day in buckets of an hour: 288 points."""

SIX_HOURS = {**DAY, "end": "2026-11-01T06:00Z", "interval": "1h", "page_size": 30}
"""Six hours in buckets of an hour: 72 points on three pages."""
