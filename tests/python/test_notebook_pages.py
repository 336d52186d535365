"""Notebooks in Chromium, without a network. `make campaigns ONLY=notebooks` runs this."""

import json
import shutil
import subprocess
import sys
import time
from itertools import count
from urllib.request import urlopen

import pytest
from kit.tls_service import unused_port

pytest.importorskip("marimo")
pytest.importorskip("jupyterlab")
connect = pytest.importorskip("websockets.sync.client").connect
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "google-chrome"])), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo
    import siteline

    client = siteline.Sandbox().client()
    hours = {"start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z", "interval": "1h"}
    query = {"site": "S1", "page_size": 30, **hours}
    return client, marimo, query


@app.cell
def _(client, query):
    table = client.read(**query, progress=True)
    table
    return (table,)


@app.cell
def _(client, marimo, query):
    with marimo.status.progress_bar(total=72, title="with a bar") as bar:
        client.read(**query, progress=lambda now: bar.update(now.points - bar.current))
    return


@app.cell
def _(table):
    table.plot()
    return
"""
CELLS = [
    """import siteline
client = siteline.Sandbox().client()
hours = {"start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z", "interval": "1h"}
table = client.read(site="S1", page_size=30, progress=True, **hours)
table""",
    # The default renderer of Altair needs the network.
    """import altair
altair.renderers.enable("svg")
table.plot()""",
]
# The text of the page with its shadow roots, and the marks of its charts.
LOOK = """(() => {
    const parts = [], roots = [document.documentElement];
    let marks = 0;
    while (roots.length) {
        const root = roots.pop();
        parts.push(root.innerText ?? root.textContent);
        marks += root.querySelectorAll(".mark-line path, canvas.marks, img[src*='svg+xml']").length;
        for (const one of root.querySelectorAll("*"))
            if (one.shadowRoot) roots.push(one.shadowRoot);
    }
    return JSON.stringify({text: parts.join("\\n"), marks});
})()"""


@pytest.fixture
def run(tmp_path):
    """Starts programs, and ends them after the test."""
    started = []

    def start(*command):
        with (tmp_path / f"{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path))

    yield start
    for one in started:
        one.kill()
        one.wait()


def until(look, seconds=120):
    """Returns the first true result."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "the page did not show it"
        time.sleep(0.1)
    return found


def begin_marimo(mode, run, folder, port):
    """Starts a server of marimo; returns the path of the notebook, which runs when it is opened."""
    (folder / "notebook.py").write_text(NOTEBOOK)
    (folder / "pyproject.toml").write_text("[tool.marimo.runtime]\nauto_instantiate = true\n")
    options = ["--headless", "--no-token", "--port", str(port)]
    run(sys.executable, "-m", "marimo", mode, str(folder / "notebook.py"), *options)
    return ""


def begin_jupyterlab(_mode, run, folder, port):
    """Starts JupyterLab; returns the path of the notebook."""
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**cell, "id": f"c{place}", "source": source} for place, source in enumerate(CELLS)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (folder / "notebook.ipynb").write_text(json.dumps(notebook))
    options = ["--no-browser", "--allow-root", f"--port={port}", "--ServerApp.token="]
    options += ["--expose-app-in-browser", f"--notebook-dir={folder}"]
    # It would look for news and newer versions.
    never = "jupyterlab.handlers.announcements.NeverCheckForUpdate"
    options += ["--LabApp.news_url=None", f"--LabApp.check_for_updates_class={never}"]
    run(sys.executable, "-m", "jupyterlab", *options)
    return "lab/tree/notebook.ipynb"


HEALTH = {"run": "health", "edit": "health", "lab": "api"}
# An app of marimo shows no standard error.
BARS = {
    "run": ["with a bar72 / 72"],
    "edit": ["with a bar72 / 72", "S1: 100%|"],
    "lab": ["S1: 100%"],
}
# Runs the cells of JupyterLab once its kernel is ready.
RUN = """(() => {
    if (window.ran || !window.jupyterapp) return;
    const shown = [...jupyterapp.shell.widgets("main")].find((one) => one.sessionContext);
    if (shown?.sessionContext.session?.kernel?.status !== "idle") return;
    window.ran = true;
    jupyterapp.shell.activateById(shown.id);
    jupyterapp.commands.execute("notebook:run-all-cells");
})()"""


@pytest.mark.parametrize(
    ("begin", "mode"),
    [(begin_marimo, "run"), (begin_marimo, "edit"), (begin_jupyterlab, "lab")],
    ids=["app", "editor", "jupyterlab"],
)
def test_notebooks_show_tables_charts_and_progress(begin, mode, run, tmp_path):
    port = unused_port()
    profile = tmp_path / "profile"
    path = begin(mode, run, tmp_path, port)
    local = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    debugging = ["--remote-debugging-port=0", f"--user-data-dir={profile}"]
    run(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", local, *debugging)
    numbers = count(1)

    def ready():
        try:
            return urlopen(f"http://127.0.0.1:{port}/{HEALTH[mode]}").status == 200
        except OSError:
            return False

    until(ready)
    debugger = until(lambda: (profile / "DevToolsActivePort").exists() and
                     (profile / "DevToolsActivePort").read_text().split())  # fmt: skip
    tabs = json.load(urlopen(f"http://127.0.0.1:{debugger[0]}/json/list"))
    tab = next(one["webSocketDebuggerUrl"] for one in tabs if one["type"] == "page")
    with connect(tab, max_size=None) as socket:

        def send(method, **params):
            number = next(numbers)
            socket.send(json.dumps({"id": number, "method": method, "params": params}))
            while (reply := json.loads(socket.recv())).get("id") != number:
                pass
            return reply["result"]

        def page():
            if mode == "lab":
                send("Runtime.evaluate", expression=RUN)
            found = send("Runtime.evaluate", expression=LOOK)["result"]
            return json.loads(found.get("value", '{"text": "", "marks": 0}'))

        send("Page.navigate", url=f"http://127.0.0.1:{port}/{path}")
        wanted = ["72 points · 12 series", "M1 / D11 / pieces [1]", *BARS[mode]]
        until(lambda: (now := page())["marks"] and all(one in now["text"] for one in wanted))
