"""What every test here shares: the marks of the fault table, and where shared data lies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


@pytest.fixture(autouse=True)
def _fault_rows(request, record_property):
    """Write the rows that a test proves into the report, for tests/faults.py."""
    for mark in request.node.iter_markers("fault"):
        for row in mark.args:
            record_property("fault", row)


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path_factory, monkeypatch):
    """No test counts in the ledger of whoever runs the tests."""
    for name in ("XDG_STATE_HOME", "LOCALAPPDATA", *(["HOME"] if sys.platform == "darwin" else [])):
        monkeypatch.setenv(name, str(tmp_path_factory.getbasetemp() / "state"))
    monkeypatch.delenv("SITELINE_LEDGER", raising=False)


@pytest.fixture
def machine_temperature() -> Path:
    """Real readings of a machine's sensor."""
    path = SHARED / "data" / "machine_temperature.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    return path
