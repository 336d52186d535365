"""Pipelines of dlt with a destination and folders for one test."""

import json
from pathlib import Path

import dlt
from dlt.common.versioned_state import decompress_state

POINT = "site_id line_id machine_id device_id tag_guid timestamp value minimum maximum sample_count"


class Pipelines:
    """A destination, and the pipeline that loads points into it from one or more machines."""

    def __init__(self, folder: Path, destination, database=""):
        self.folder, self.destination, self.database = folder, destination, database
        # Several tests share a server, so each has its own dataset.
        self.dataset = f"d{abs(hash(folder))}"
        self.machine = 0
        self.pipeline = self.attach()

    def attach(self, name="plant"):
        """Returns the pipeline as a new process would open it."""
        self.pipeline = dlt.pipeline(
            name,
            destination=self.destination,
            dataset_name=self.dataset,
            pipelines_dir=str(self.folder / f"machine{self.machine}"),
        )
        return self.pipeline

    def move(self):
        """Returns the pipeline on another machine with an empty folder."""
        self.machine += 1
        return self.attach()

    @property
    def kept(self):
        """The files that siteline keeps in the pipeline's working folder."""
        working = Path(self.pipeline.working_dir) / "siteline"
        return sorted(path for path in working.rglob("*") if path.is_file())

    def _query(self, columns, table):
        with self.pipeline.sql_client() as client:
            return client.execute_sql(
                f"SELECT {columns} FROM {client.make_qualified_table_name(table)}"
            )

    def points(self, feed="line-2", before=None, table="points"):
        """Returns the points of a feed. Each point must exist only once."""
        rows = [row[1:] for row in self._rows(table) if row[0] == feed]
        found = {row[:6]: row[6:] for row in rows}
        assert len(found) == len(rows)
        return {key: row for key, row in found.items() if before is None or key[5] < before}

    def _rows(self, table):
        columns = f"feed {POINT}".split()
        if self.destination.destination_name != "filesystem":
            return self._query(", ".join(columns), table)
        from deltalake import DeltaTable

        path = self.folder / "lake" / self.dataset / table
        table = DeltaTable(str(path)).to_pyarrow_table(columns=columns)
        return [tuple(row.values()) for row in table.to_pylist()]

    def stored_texts(self):
        """Returns all states that dlt has stored in the destination, as text."""
        rows = self._query("state", "_dlt_pipeline_state")
        return [json.dumps(decompress_state(state), default=str) for (state,) in rows]
