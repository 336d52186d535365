"""A script that syncs the sandbox of its environment into a Delta table; prints its peak memory."""

import sys
from pathlib import Path

import siteline
from siteline.targets import Delta

folder, name, page, *reread = sys.argv[1:]
feed = siteline.Feed(
    name,
    site="S1",
    interval="1m",
    since="2026-09-01T00:00:00Z",
    page_size=int(page),
    window="70d",
)
with siteline.Client() as client, Delta(folder) as target:
    report = client.sync(
        feed, target, batch="chain", reread=(reread[0], reread[1]) if reread else None
    )
if not report.complete or report.inserted + report.unchanged < 900_000:
    raise SystemExit(str(report))
status = Path("/proc/self/status").read_text(encoding="ascii")
print(next(int(line.split()[1]) / 1e3 for line in status.splitlines() if line.startswith("VmHWM")))
