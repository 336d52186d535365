"""The states of feeds between two runs of a pipeline.

dlt keeps what a resource puts into its state in the working folder of the pipeline and, with each
load, in the destination (``_dlt_pipeline_state``), where others may read it. The state of a feed
has a cursor while one of its chains is unfinished. So dlt gets the state without its chains, which
is true as well: the next run begins them again. The whole state lies in the working folder, in a
file of the user alone, named by its SHA-256 digest; where it is still there, no page is read twice.

What counts is the state that the destination has: the working folder outlives a database that is
deleted, and a pipeline may be pointed at another dataset. Of the table, which may be another one in
the same dataset, the state has the name.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dlt
from dlt.common.destination.client import WithStateSync
from dlt.common.destination.exceptions import DestinationUndefinedEntity
from dlt.common.storages.exceptions import (
    CurrentLoadPackageStateNotAvailable,
    LoadPackageNotFound,
)
from dlt.pipeline.state_sync import load_pipeline_state_from_destination

from siteline import _doors
from siteline.errors import ConfigError, StoreBusy, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlt import Pipeline
    from dlt.common.storages.load_package import LoadPackageInfo

_log = logging.getLogger("siteline.dlt")


class KeptStates:
    """The states of a resource: those that its last complete load has stored, and newer ones."""

    def __init__(self) -> None:
        """Read them; to be called in a resource."""
        try:
            self._load: str = dlt.current.load_package_state()["load_id"]
        except CurrentLoadPackageStateNotAvailable as error:
            raise ConfigError(
                "Points are read by a pipeline of dlt, which keeps their states.",
                hint="pipeline.run(points)",
            ) from error
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
        """Return the states of these feeds, for a sync to begin with."""
        stored = self._stored.get("feeds", {})
        return {feed: self._whole(**stored[feed]) for feed in feeds if feed in stored}

    def keep(self, states: dict[str, bytes]) -> None:
        """Keep newer states, whose points dlt has."""
        self._newer.update(states)

    def hand_over(self) -> None:
        """Give the newer states to dlt, which stores them with this load."""
        if not self._newer:
            return
        feeds = self._stored.setdefault("feeds", {})
        for feed, state in self._newer.items():
            plain = _doors.without_cursors(state)
            feeds[feed] = {"state": plain.decode()}
            if plain != state:
                feeds[feed]["digest"] = self._write(state)
        self._stored.update(self._place, load=self._load)

    def _keep_what_is_here(self) -> None:
        """Begin anew where the points of the last load went elsewhere.

        dlt tells a resource no dataset that only ``run`` was given, so a run may have gone on there
        with the state of another one.
        """
        for kind, name in self._place.items():
            if self._stored.get(kind) not in (None, name):
                _log.warning("All is read anew for the %s %r, where it was not loaded.", kind, name)
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
        """Remove the files of states that no run can begin with any more."""
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path.name not in but:
                    path.unlink(missing_ok=True)


def _keep_what_is_loaded(pipeline: Pipeline, stored: dict[str, Any]) -> None:
    """Go back to the state whose points the destination has, where it has not those of this one.

    dlt keeps a new state when the pages have been extracted, before they are loaded. A load may be
    given up after that, and what was loaded may be gone, or in another place.
    """
    load = stored["load"]
    is_loaded, state = _is_loaded(pipeline, load), _state_in_destination(pipeline)
    if is_loaded and state is None:
        return
    source, resource = dlt.current.source().name, dlt.current.resource_name()
    known = (state or {}).get("sources", {}).get(source, {}).get("resources", {}).get(resource, {})
    if known.get("load") != load:
        _log.warning("The destination has not the load %s: what it has not is read again.", load)
        stored.clear()
        stored.update(known)


def _is_loaded(pipeline: Pipeline, load: str) -> bool:
    """Whether this folder knows a load as complete; one that is pending or failed is an error."""
    package: LoadPackageInfo | None = None
    with contextlib.suppress(LoadPackageNotFound):
        package = pipeline.get_load_package_info(load)
    if package is None:
        return False  # It was given up, or this folder is not that of the run that made it.
    if package.state in ("new", "extracted", "normalized"):
        raise StoreBusy(
            f"The load {load} of the pipeline {pipeline.pipeline_name!r} is not in the destination "
            "yet.",
            hint="pipeline.run(), without data, loads it; pipeline.abort_packages() gives it up.",
        )
    if package.state == "loaded" and package.jobs.get("failed_jobs"):
        raise StoreError(
            f"The load {load} of the pipeline {pipeline.pipeline_name!r} was completed without all "
            "of its rows.",
            hint="Run it once with refresh='drop_resources', which reads all again, and leave "
            "load.raise_on_failed_jobs as it is.",
        )
    return package.state == "loaded"


def _state_in_destination(pipeline: Pipeline) -> dict[str, Any] | None:
    """Return the state that was stored with the last complete load, or None if dlt stores none."""
    config = pipeline.config
    # Where each schema has a dataset of its own, it depends on dlt's version which has the states
    # of another schema than the default one.
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
