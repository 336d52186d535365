"""A marimo notebook in Chromium, without a network. `make campaigns ONLY=marimo` runs this."""

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
# The text of the page with its shadow roots, and the marks of its charts.
LOOK = """(() => {
    const parts = [], roots = [document.documentElement];
    let marks = 0;
    while (roots.length) {
        const root = roots.pop();
        parts.push(root.innerText ?? root.textContent);
        marks += root.querySelectorAll(".mark-line path, canvas.marks").length;
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


@pytest.mark.parametrize("mode", ["run", "edit"])
def test_marimo_shows_tables_charts_and_progress(mode, run, tmp_path):
    (tmp_path / "notebook.py").write_text(NOTEBOOK)
    (tmp_path / "pyproject.toml").write_text("[tool.marimo.runtime]\nauto_instantiate = true\n")
    port = unused_port()
    profile = tmp_path / "profile"
    options = ["--headless", "--no-token", "--port", str(port)]
    run(sys.executable, "-m", "marimo", mode, str(tmp_path / "notebook.py"), *options)
    local = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    debugging = ["--remote-debugging-port=0", f"--user-data-dir={profile}"]
    run(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", local, *debugging)
    numbers = count(1)

    def ready():
        try:
            return urlopen(f"http://127.0.0.1:{port}/health").status == 200
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
            found = send("Runtime.evaluate", expression=LOOK)["result"]
            return json.loads(found.get("value", '{"text": "", "marks": 0}'))

        send("Page.navigate", url=f"http://127.0.0.1:{port}/")
        wanted = ["72 points · 12 series", "M1 / D11 / pieces [1]", "with a bar72 / 72"]
        # An app shows no standard error.
        wanted += ["S1: 100%|"] if mode == "edit" else []
        until(lambda: (now := page())["marks"] and all(one in now["text"] for one in wanted))
