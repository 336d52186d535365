"""``examples/tour.ipynb`` runs in a real kernel, from its first cell to its last."""

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

TOUR = Path(__file__).resolve().parents[2] / "examples" / "tour.ipynb"
RUN = """
import sys, nbformat
from nbclient import NotebookClient
tour = nbformat.read(sys.argv[1], 4)
NotebookClient(tour, timeout=120, kernel_name="python3").execute(cwd=sys.argv[2])
nbformat.write(tour, sys.argv[3])
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The cells of code with their outputs."""
    folder, done = tmp_path_factory.mktemp("tour"), tmp_path_factory.mktemp("done") / "tour.ipynb"
    own = {f"JUPYTER_{name}_DIR": str(done.parent / name) for name in ("RUNTIME", "CONFIG", "DATA")}
    environment = os.environ | own | {"IPYTHONDIR": str(done.parent / "ipython")}
    command = [sys.executable, "-c", RUN, str(TOUR), str(folder), str(done)]
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4_000:]
    assert {path.name for path in folder.iterdir()} >= {"plant-a.pem", "plant.siteline"}
    executed = json.loads(done.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in executed if cell["cell_type"] == "code"]


def shown(cells, word):
    """The output of the cell with this word, by type of content."""
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


def test_the_notebook_is_kept_without_outputs():
    notebook = json.loads(TOUR.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 10
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    words = sum(len("".join(cell["source"]).split()) for cell in notebook["cells"])
    assert words < 700, "five minutes of reading"
