"""Reads a query, in the driver and in tasks, independent of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from siteline.errors import ConfigError
from siteline.spark._access import Access, own_access
from siteline.spark._batches import schema_of
from siteline.spark._partitions import MOST_PAGES, Density, Part, measure, parts, plan_of

if TYPE_CHECKING:
    import pyarrow as pa

    from siteline import Scan
    from siteline.client import Client
    from siteline.spark._options import Options
    from siteline.types import Plan


@dataclass
class Registered:
    """The state of a session: the access by profile, and the densities of plans."""

    accesses: dict[str | None, Access] = field(default_factory=dict)
    densities: dict[str, Density] = field(default_factory=dict)

    def access(self, profile: str | None) -> Access:
        """Return the access to a profile. Without a name, there must be only one."""
        if profile in self.accesses:
            return self.accesses[profile]
        if profile is None and len(self.accesses) == 1:
            [only] = self.accesses.values()
            return only
        if profile is None and self.accesses:
            names = ", ".join(sorted(filter(None, self.accesses)))
            text = f"Several profiles are registered, {names}: option('profile', ...) names one."
            raise ConfigError(text)
        return own_access(profile)


@dataclass(frozen=True)
class Reading:
    """One query with a fixed range, and its access. It can be pickled and contains no secret."""

    options: Options
    access: Access
    density: Density | None = None

    def fixed(self) -> Reading:
        with self.access.client() as client:
            query = self.scan(client).query
        return replace(self, options=self.options.between(query.start, query.end))

    def scan(self, client: Client) -> Scan:
        return client.scan(**self.options.query, labels=False)

    def planned(self, client: Client) -> tuple[Plan, list[Part], Density]:
        """Plan the read. An unknown density costs a page."""
        scan, query = self.scan(client), self.options.query
        density, most = self.density, self.options.max_pages or MOST_PAGES
        if density is None:
            density, _ = measure(client, scan, query, most)
        found = parts(scan, density, self.options.by)
        return plan_of(client, scan, found), found, density

    def read(self, part: Part, zone: bool, *, is_bounded: bool) -> Iterator[pa.RecordBatch]:
        """Read a part to its end, then yield its points in batches of ``page_size``.

        A later page may revise a point of an earlier one, and a batch cannot be recalled. So a task
        holds all points of its partition.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        query = {**self.options.query, "start": part.start, "end": part.end}
        most = part.most if is_bounded else None
        # Closing the client returns the unused part of its allowance to the agent.
        with self.access.client(part.share) as client:
            points = client.scan(**query, labels=False, max_pages=most).to_arrow()
            if not part.is_last:
                end = pa.scalar(part.end, points["timestamp"].type)
                # If the service includes `end`, the next partition has these points too.
                points = points.filter(pc.less(points["timestamp"], end))
            schema = schema_of(zone)
            for batch in points.to_batches(max_chunksize=query["page_size"]):
                if batch.num_rows:
                    yield batch.cast(schema)
