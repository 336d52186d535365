"""A read fails: keep the pages that were read, and resume later, also in another process.

The error carries ``.bookmark``, the position to resume from, and ``.partial``, the points read so
far. A bookmark contains the service's cursor: protect it like a password.
"""

import tempfile
from pathlib import Path

import pandas as pd
import siteline

POINT = ["site_id", "line_id", "machine_id", "device_id", "tag_guid", "timestamp"]


def week(client: siteline.Client) -> siteline.Scan:
    """The scan of a week. A bookmark is accepted only with the same query.

    Two frames with labels would have two sets of categories.
    """
    return client.scan(
        site="S1",
        line="L2",
        start="2026-11-01T00:00:00Z",
        end="2026-11-08T00:00:00Z",
        interval="5m",
        page_size=2_000,
        labels=False,
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

    # Later, perhaps on another machine: only the remaining pages are requested.
    bookmark = siteline.types.Bookmark.from_bytes(place.read_bytes())
    rest = week(client).resume(bookmark).to_pandas()
    frame = pd.concat([pd.read_pickle(saved), rest])
    frame = frame.drop_duplicates(POINT, keep="last").sort_values(POINT, ignore_index=True)
    print(f"resumed with {len(rest):,} points: {len(frame):,} in total")

    complete = week(client).to_pandas()
    pd.testing.assert_frame_equal(frame, complete)
    print("equal to an uninterrupted read")
