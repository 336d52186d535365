"""Charts by Altair: series, coverage, lateness, the allowance.

``python pictures.py FOLDER`` writes them to a folder, as SVG. The documentation shows them.
"""

import sys
import tempfile
from pathlib import Path

import altair as alt
import siteline

Chart = alt.LayerChart | alt.VConcatChart


def series(client: siteline.Client) -> Chart:
    """Draw two days of a machine: gaps are gaps, the band is from minimum to maximum."""
    table = client.read(
        site="S1",
        line="L2",
        machine="M3",
        start="2026-11-01",
        end="2026-11-03",
        interval="15m",
    )
    return table.plot(title="Machine M3, two days in November")


def temperatures(client: siteline.Client) -> Chart:
    """Draw a week of two machines in one panel."""
    week = client.read(site="S1", line="L2", start="2026-11-02", end="2026-11-09", interval="1h")
    return week.find("temperature").plot(overlay=True)


def of_a_store(sandbox: siteline.Sandbox, path: Path) -> dict[str, Chart]:
    """Draw twelve days of two lines that are synced twice a day."""
    feeds = [
        siteline.Feed(
            f"line-{line}",
            site="S1",
            line=f"L{line}",
            interval="30m",
            start=f"2026-11-{day:02}T00:00Z",
            page_size=500,
            audit_pages=4,
        )
        for line, day in ((1, 1), (2, 3))
    ]
    client = sandbox.client(daily_allowance=60)
    with siteline.Store(path) as store:
        for _ in range(24):
            client.sync(feeds, store)
            sandbox.clock.advance("12h")
        client.sync(feeds[0], store)
        client.scan(site="S1", line="L3", start="2026-11-21", interval="15m").collect()
        sandbox.clock.advance("3h")
        now = sandbox.clock.now()
        plan = client.plan(feeds, store)
        coverages = [store.coverage(name, now=now) for name in store.feeds]
        return {
            "coverage": siteline.plots.coverage(coverages, tz="Europe/Berlin"),
            "lateness": store.lateness("line-1").plot(),
            "allowance": siteline.plots.allowance(client.allowance, store, plan=plan),
        }


folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
with (
    siteline.Sandbox(now="2026-11-10T06:00:00Z") as sandbox,
    tempfile.TemporaryDirectory() as temporary,
):
    client = sandbox.client(tz="Europe/Berlin")
    charts = {"series": series(client), "temperatures": temperatures(client)}
    charts |= of_a_store(sandbox, Path(temporary, "plant.siteline"))
    for name, chart in charts.items():
        chart.save(Path(folder or temporary, f"{name}.svg"))
        print(f"{name}.svg: {chart.description}")
