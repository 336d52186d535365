"""One series, and one point."""

from datetime import datetime
from typing import Any, NamedTuple

from siteline._times import iso


class SeriesIds(NamedTuple):
    """The five ids of a series. An id that it does not have is ``None``."""

    site_id: str | None
    """The site."""
    line_id: str | None
    """The production line."""
    machine_id: str | None
    """The machine."""
    device_id: str | None
    """The device of the machine."""
    tag_guid: str | None
    """The tag."""

    def to_dict(self) -> dict[str, str | None]:
        """Return the fields as JSON values."""
        return self._asdict()


class Record(NamedTuple):
    """One point, as ``records(named=True)`` yields it.

    The fields are the columns of a table. Only the dicts that ``records()`` yields also contain
    ``extra_columns``, ``change`` and ``withdrawn``.

    >>> record = next(scan.records(named=True))
    >>> record.site_id, record.timestamp.isoformat(), record.sample_count
    ('S1', '2026-11-01T00:00:00+00:00', 132)
    """

    site_id: str | None
    """The site."""
    line_id: str | None
    """The production line."""
    machine_id: str | None
    """The machine."""
    device_id: str | None
    """The device of the machine."""
    tag_guid: str | None
    """The tag."""
    timestamp: datetime
    """The bucket's timestamp, aware, in UTC."""
    value: float | None
    """The bucket's value. The service does not document its computation."""
    minimum: float | None
    """The lowest reading of the bucket."""
    maximum: float | None
    """The highest reading of the bucket."""
    sample_count: int | None
    """The number of readings in the bucket."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**self._asdict(), "timestamp": iso(self.timestamp)}


for _public in (SeriesIds, Record):
    _public.__module__ = "siteline.types"
