"""The states of feeds between two runs of a pipeline.

dlt stores the state of a resource in the pipeline's working folder and, with each load, in the
destination (``_dlt_pipeline_state``), where others may read it. A feed's state contains a cursor
while a chain is unfinished. So dlt gets the state without its chains, and a run from it begins
them again. The complete state is in the working folder, in a private file named by its SHA-256
digest: while that file exists, no page is read twice.

The destination's state counts, because the working folder outlives a deleted database, and a
pipeline may get another dataset. The state names its table, because a dataset can have several.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dlt
from dlt.common.destination.client import WithStateSync
from dlt.common.destination.exceptions import DestinationUndefinedEntity
from dlt.common.storages.exceptions import CurrentLoadPackageStateNotAvailable, LoadPackageNotFound
from dlt.pipeline.state_sync import load_pipeline_state_from_destination

from siteline import _doors
from siteline.errors import ConfigError, StoreBusy, StoreError

if TYPE_CHECKING:
    from dlt import Pipeline
    from dlt.common.storages.load_package import LoadPackageInfo

_log = logging.getLogger("siteline.dlt")


class KeptStates:
    """The states of a resource: from its last complete load, and newer ones."""

    def __init__(self) -> None:
        try:
            self._load: str = dlt.current.load_package_state()["load_id"]
        except CurrentLoadPackageStateNotAvailable as error:
            text = "A pipeline of dlt must read the points, because it stores their states."
            raise ConfigError(text, hint="pipeline.run(points)") from error
        pipeline = dlt.current.pipeline()
        owner = f"{dlt.current.source().name}\n{dlt.current.resource_name()}"
        self._folder = Path(pipeline.working_dir) / "siteline" / _digest(owner.encode())[:16]
        self._stored: dict[str, Any] = dlt.current.resource_state()
        self._newer: dict[str, bytes] = {}
        table: Any = dlt.current.resource().compute_table_schema()
        self._place = {"dataset": pipeline.dataset_name, "table": table["name"]}
        if self._stored.get("load") not in (None, self._load):
            _keep_what_is_loaded(pipeline, self._stored)
            self._keep_what_is_here()
        self._remove_files(set(_digests(self._stored)))

    def read(self, feeds: Iterable[str]) -> dict[str, bytes]:
        stored = self._stored.get("feeds", {})
        return {feed: self._whole(**stored[feed]) for feed in feeds if feed in stored}

    def keep(self, states: dict[str, bytes]) -> None:
        # dlt already has the points of these states.
        self._newer.update(states)

    def hand_over(self) -> None:
        """Add the newer states to dlt's state, which dlt stores with this load."""
        if not self._newer:
            return
        feeds = self._stored.setdefault("feeds", {})
        for feed, state in self._newer.items():
            plain = _doors.of_state("without_cursors", state)
            feeds[feed] = {"state": plain.decode()}
            if plain != state:
                feeds[feed]["digest"] = self._write(state)
        self._stored.update(self._place, load=self._load)

    def _keep_what_is_here(self) -> None:
        """Discard the state if the last load went to another dataset or table.

        A resource does not see a dataset that only ``run`` got.
        """
        for kind, name in self._place.items():
            if self._stored.get(kind) not in (None, name):
                _log.warning("The %s %r has no earlier load: everything is read again.", kind, name)
                self._stored.clear()

    def _whole(self, state: str, digest: str | None = None) -> bytes:
        if digest is not None:
            with contextlib.suppress(FileNotFoundError):
                whole = (self._folder / digest).read_bytes()
                if _digest(whole) == digest:
                    return whole
        return state.encode()

    def _write(self, state: bytes) -> str:
        digest = _digest(state)
        _doors.create_folder(self._folder)
        with _doors.whole_file(self._folder / digest, mode=0o600, keeps=False) as part:
            part.write_bytes(state)
        return digest

    def _remove_files(self, but: set[str]) -> None:
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path.name not in but:
                    path.unlink(missing_ok=True)


def _keep_what_is_loaded(pipeline: Pipeline, stored: dict[str, Any]) -> None:
    """Go back to the destination's state if it does not have the points of this state.

    dlt stores a state before the load, which may be aborted. Loaded data may be deleted.
    """
    load = stored["load"]
    is_loaded, state = _is_loaded(pipeline, load), _state_in_destination(pipeline)
    if is_loaded and state is None:
        return
    source, resource = dlt.current.source().name, dlt.current.resource_name()
    known = (state or {}).get("sources", {}).get(source, {}).get("resources", {}).get(resource, {})
    if known.get("load") != load:
        _log.warning("The destination does not have the load %s: its data is read again.", load)
        stored.clear()
        stored.update(known)


def _is_loaded(pipeline: Pipeline, load: str) -> bool:
    """Whether a load is complete in this folder. A pending or failed load is an error."""
    package: LoadPackageInfo | None = None
    with contextlib.suppress(LoadPackageNotFound):
        package = pipeline.get_load_package_info(load)
    if package is None:
        return False  # It was aborted, or another folder made it.
    if package.state in ("new", "extracted", "normalized"):
        raise StoreBusy(
            f"The load {load} of the pipeline {pipeline.pipeline_name!r} is not in the destination "
            "yet.",
            hint="pipeline.run() without data loads it. pipeline.abort_packages() discards it.",
        )
    if package.state == "loaded" and package.jobs.get("failed_jobs"):
        raise StoreError(
            f"The load {load} of the pipeline {pipeline.pipeline_name!r} was completed without all "
            "of its rows.",
            hint="Run it once with refresh='drop_resources', which reads everything again, and "
            "do not change load.raise_on_failed_jobs.",
        )
    return package.state == "loaded"


def _state_in_destination(pipeline: Pipeline) -> dict[str, Any] | None:
    """Return the state that was stored with the last complete load, or None if dlt stores none."""
    config = pipeline.config
    # If each schema has its own dataset, the place of the states of other schemas than the default
    # one depends on dlt's version.
    is_known_where = (
        config.use_single_dataset
        or dlt.current.source().schema.name == pipeline.default_schema_name
    )
    if not (config.restore_from_destination and is_known_where):
        return None
    with pipeline.destination_client() as client:
        if not isinstance(client, WithStateSync):
            return None
        with contextlib.suppress(DestinationUndefinedEntity):
            found: Any = load_pipeline_state_from_destination(pipeline.pipeline_name, client)
            return found or {}
    return {}


def _digests(stored: dict[str, Any]) -> Iterable[str]:
    return (one["digest"] for one in stored.get("feeds", {}).values() if "digest" in one)


def _digest(state: bytes) -> str:
    return hashlib.sha256(state).hexdigest()
