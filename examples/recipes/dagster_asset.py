"""Dagster: the store of plant A as an asset, brought up to date each hour.

The command's one JSON document becomes the metadata of the asset, and its exit status decides
whether a retry makes sense.
"""

import json
import os
import subprocess
from typing import Any

from dagster import (
    Definitions,
    Failure,
    MaterializeResult,
    RetryPolicy,
    ScheduleDefinition,
    asset,
    define_asset_job,
)

COMMAND = [
    "/opt/siteline/bin/siteline",
    "sync",
    "/etc/siteline/feeds.toml",
    "/var/lib/siteline/plant.siteline",
    "--profile=plant-a",
    "--wait=10m",
    "--json",
]
ENVIRONMENT = {"SITELINE_CONFIG": "/etc/siteline/config.toml"}

DONE, TEMPORARY, SPENT, INCOMPLETE, BUSY = 0, 4, 5, 6, 75
TOLD = ("complete", "resumes_at", "requests", "inserted", "revised", "withdrawn", "read_through")


def document_of(stdout: str) -> dict[str, Any]:
    """Return the document, which a command that was killed has not printed."""
    return dict(json.loads(stdout)) if stdout else {}


@asset(retry_policy=RetryPolicy(max_retries=2, delay=300))
def plant_a() -> MaterializeResult:
    """Sync the store. If the day's allowance is spent, ``complete`` is false."""
    # Warnings and errors stay on stderr, which Dagster shows.
    done = subprocess.run(
        COMMAND,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, **ENVIRONMENT},
    )
    told = document_of(done.stdout)
    if done.returncode not in (DONE, SPENT):
        what = told.get("error", {}).get("message", "see the log")
        raise Failure(
            description=f"siteline ended with status {done.returncode}: {what}",
            allow_retries=done.returncode in (TEMPORARY, INCOMPLETE, BUSY),
        )
    return MaterializeResult(metadata={name: told.get(name) for name in TOLD})


hourly = ScheduleDefinition(
    job=define_asset_job("sync_plant_a", selection=[plant_a]), cron_schedule="7 * * * *"
)
definitions = Definitions(assets=[plant_a], schedules=[hourly])
