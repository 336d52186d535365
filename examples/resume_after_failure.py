"""A read fails half way: keep what was paid for, and go on later, in another process if need be.

The error carries ``.bookmark``, where to go on, and ``.partial``, what was read so far. A bookmark
contains the service's cursor: save it as you would save a password.
"""

import tempfile
from pathlib import Path

import pandas as pd
import siteline

POINT = ["site_id", "line_id", "machine_id", "device_id", "tag_guid", "timestamp"]


def week(client: siteline.Client) -> siteline.Scan:
    """Say what is wanted. To go on, the query must be the same: another one is refused."""
    return client.data(
        site="S1",
        line="L2",
        start="2026-11-01T00:00:00Z",
        end="2026-11-08T00:00:00Z",
        interval="5m",
        page_size=2_000,
    )


with (
    siteline.Sandbox(now="2026-11-09T00:00:00Z") as sandbox,
    tempfile.TemporaryDirectory() as folder,
):
    saved, place = Path(folder, "points.pkl"), Path(folder, "bookmark")
    client = sandbox.client()

    # The fourth page fails, at this attempt and at every retry.
    sandbox.fault(on="data", skip=3, times=4, status=503)
    try:
        frame = week(client).to_pandas()
    except siteline.SitelineError as error:
        if error.bookmark is None or error.partial is None:
            raise  # nothing was read yet
        error.partial.to_pandas().to_pickle(saved)
        place.touch(mode=0o600)
        place.write_bytes(error.bookmark.to_bytes())
        print(f"{type(error).__name__} after {error.bookmark.pages} pages: {error}")
        print(f"kept {len(error.partial):,} points; attempts {error.attempts}")

    # Later, somewhere else: only the rest is asked for.
    bookmark = siteline.Bookmark.from_bytes(place.read_bytes())
    rest = week(client).resume(bookmark).to_pandas()
    frame = pd.concat([pd.read_pickle(saved), rest])
    frame = frame.drop_duplicates(POINT, keep="last").sort_values(POINT, ignore_index=True)
    print(f"went on with {len(rest):,} points: {len(frame):,} together")

    whole = week(client).to_pandas()
    pd.testing.assert_frame_equal(frame, whole)
    print("the same as a read in one go")
