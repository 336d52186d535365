"""The notebooks of ``examples/`` run in a real kernel, from the first cell to the last."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("pandas")

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TOUR, JOBS = EXAMPLES / "tour.ipynb", EXAMPLES / "jobs.ipynb"
# Two lines, a machine, a month, six ranges of a first sync. Looking at results sends nothing.
CHECK = """
sent = sandbox.stats
assert (sent.data_requests, sent.discovery_requests, sent.token_requests) == (10, 1, 1)
"""
RUN = """
import sys, nbformat
from nbclient import NotebookClient
tour = nbformat.read(sys.argv[1], 4)
tour.cells += [nbformat.v4.new_code_cell(cell) for cell in sys.argv[4:]]
NotebookClient(tour, timeout=120, kernel_name="python3").execute(cwd=sys.argv[2])
nbformat.write(tour, sys.argv[3])
"""


def executed(notebook, folder, done, *more):
    """Runs a notebook and more cells. Returns the code cells with their outputs."""
    done = done / "done.ipynb"
    own = {f"JUPYTER_{name}_DIR": str(done.parent / name) for name in ("RUNTIME", "CONFIG", "DATA")}
    environment = os.environ | own | {"IPYTHONDIR": str(done.parent / "ipython")}
    command = [sys.executable, "-c", RUN, str(notebook), str(folder), str(done), *more]
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4_000:]
    cells = json.loads(done.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tour")
    cells = executed(TOUR, folder, tmp_path_factory.mktemp("done"))
    assert {path.name for path in folder.iterdir()} >= {"plant-a.pem", "plant.siteline"}
    return cells


def shown(cells, word):
    """Returns the output of the cell with this word, by content type."""
    [cell] = [cell for cell in cells if word in "".join(cell["source"])]
    data = [output.get("data", {}) for output in cell["outputs"]]
    return {kind: "".join(text) for one in data for kind, text in one.items()}


def test_no_cell_fails_or_warns(cells):
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert kinds == {"execute_result"}


def test_each_step_shows_what_it_is_about(cells):
    assert "18 series" in shown(cells, "series = client.series()")["text/html"]
    assert "D31 / temperature [degC]" in shown(cells, 'find("temperature"')["text/html"]
    week = shown(cells, "week.plot")
    assert week["image/svg+xml"].count("<svg") == 1
    assert "temperature" in week["image/svg+xml"]
    assert "D31 / speed [1/min]" in shown(cells, "week.pivot")["text/html"]
    assert "6 series, 1d in Europe/Berlin" in shown(cells, "week.completeness")["text/plain"]
    assert "SyncReport complete" in shown(cells, "first = client.sync")["text/plain"]
    assert "revised" in shown(cells, "store.changes")["text/plain"]
    for picture in ("store.coverage", "plots.allowance"):
        assert "<svg" in shown(cells, picture)["image/svg+xml"]


def test_fifteen_jobs_take_two_statements_each_and_no_request_twice(tmp_path):
    folder, done = tmp_path / "jobs", tmp_path / "done"
    folder.mkdir()
    done.mkdir()
    _, *jobs, _ = executed(JOBS, folder, done, CHECK)
    assert len(jobs) == 15
    for job in jobs:
        source = "".join(job["source"])
        assert len(ast.parse(source).body) <= 2, source
        assert {output["output_type"] for output in job["outputs"]} <= {"execute_result"}, source
