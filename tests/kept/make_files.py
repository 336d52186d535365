"""Make the files of the version that is installed, before its release: tests/kept/VERSION/.

``python tests/kept/make_files.py``, once for each version that changes a form: what is here is what
users of that version have on their disks, so it is never made again. ``docs/stability.md`` says
what later versions do with it; ``tests/python/test_kept_files.py`` holds them to it.
"""

import sys
from pathlib import Path

import siteline

NOW = "2026-11-20T00:00:00Z"


def make(folder: Path) -> None:
    """Write a store that was synced twice, its points, and a bookmark within a chain."""
    folder.mkdir()
    path = folder / "plant.siteline"
    with siteline.Sandbox(seed=7, now=NOW) as sandbox, siteline.Store(path) as store:
        client = sandbox.client()
        feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start="2026-11-18")
        client.sync(feed, store)
        sandbox.clock.advance("1h")
        client.sync(feed, store)
        frame = store.read("line-2").to_pandas()
        frame.to_csv(folder / "points.csv", index=False)
        scan = client.scan(
            site="S1", line="L2", interval="1h", page_size=20, start="2026-11-18", end="2026-11-19"
        )
        bookmark = next(scan.pages()).bookmark
        assert bookmark, "the chain goes on after a page"
        (folder / "chain.bookmark").write_bytes(bookmark.to_bytes())
    for beside in folder.glob("plant.siteline-*"):
        beside.unlink()
    print(f"{folder}: {len(frame)} points, {path.stat().st_size} bytes")


if __name__ == "__main__":
    make(Path(__file__).parent / (sys.argv[1] if sys.argv[1:] else siteline.__version__))
