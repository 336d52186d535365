"""What every test here shares: the marks of the fault table, and where shared data lies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import siteline
from tls_service import Authority

SHARED = Path(__file__).resolve().parents[3] / "shared"


@pytest.fixture(autouse=True)
def _fault_rows(request, record_property):
    """Write the rows that a test proves into the report, for tests/faults.py."""
    for mark in request.node.iter_markers("fault"):
        for row in mark.args:
            record_property("fault", row)


@pytest.fixture(autouse=True, scope="session")
def _state_of_its_own(tmp_path_factory):
    """No test, and no process that it starts, counts in the ledger of whoever runs the tests."""
    state = str(tmp_path_factory.mktemp("state"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
            patch.setenv(name, state)
        if sys.platform == "darwin":
            patch.setenv("HOME", state)
        patch.delenv("SITELINE_LEDGER", raising=False)
        yield


@pytest.fixture
def machine_temperature() -> Path:
    """Real readings of a machine's sensor."""
    path = SHARED / "data" / "machine_temperature.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    return path


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    """A certificate authority of the tests' own."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def key_file(tmp_path_factory) -> Path:
    """A private key on disk."""
    path = tmp_path_factory.mktemp("key") / "key.pem"
    siteline.PrivateKey.generate(2048).save(path)
    return path
