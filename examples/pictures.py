"""Pictures as SVG without a plotting package; and the frame behind one in matplotlib, if installed.

``python pictures.py FOLDER`` writes them to a folder: so those of the documentation are made.
"""

import sys
import tempfile
from pathlib import Path

import siteline


def series(client: siteline.Client) -> siteline.plots.Plot:
    """Draw two days of a machine: gaps are gaps, the band is from minimum to maximum."""
    table = client.scan(
        site="S1",
        line="L2",
        start="2026-11-01T00:00Z",
        end="2026-11-03T00:00Z",
        interval="15m",
        filters={"machineId": "M3"},
    ).collect()
    title = "Machine M3, two days in November"
    return table.plot(tz="Europe/Berlin", labels=client.series(), title=title)


def of_a_store(sandbox: siteline.Sandbox, path: Path) -> dict[str, siteline.plots.Plot]:
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


def with_matplotlib(plot: siteline.plots.Plot, path: Path) -> None:
    """Draw the frame of a picture of series: a line for each stretch, so that gaps stay gaps."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    frame = plot.to_pandas()
    names = frame["series"].unique()
    figure, axes = plt.subplots(len(names), sharex=True, squeeze=False, layout="constrained")
    for (axis,), name in zip(axes, names, strict=True):
        axis.set_title(name, loc="left", fontsize="small")
        for _, part in frame[frame["series"] == name].groupby("stretch"):
            at, dot = part["timestamp"], "." if len(part) == 1 else ""
            axis.fill_between(at, part["minimum"], part["maximum"], color="C0", alpha=0.25)
            axis.plot(at, part["value"], color="C0", marker=dot)
    figure.savefig(path)


folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
with (
    siteline.Sandbox(now="2026-11-10T06:00:00Z") as sandbox,
    tempfile.TemporaryDirectory() as temporary,
):
    plots = {"series": series(sandbox.client())}
    plots |= of_a_store(sandbox, Path(temporary, "plant.siteline"))
    for name, plot in plots.items():
        plot.save(Path(folder or temporary, f"{name}.svg"))
        print(f"{name}.svg: {plot.alt}")
    try:
        with_matplotlib(plots["series"], Path(temporary, "matplotlib.svg"))
        print("… and the same series in matplotlib")
    except ModuleNotFoundError as error:
        print(f"not drawn in matplotlib: {error.name} is not installed")
