"""Without free descriptors each operation reports the limit, and works again afterwards."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import siteline
from kit import systems

PROGRAM = Path(__file__).parent / "limited_files.py"
OPERATIONS = {
    "ledgers": ("ledger", "default_ledger"),
    "others": ("read", "new_store", "backup", "agent", "command_read"),
}
"""Attempts of the others move the clock of the sandbox, and then no ledger file counts by it."""


@systems.MODES
@pytest.mark.parametrize("operations", OPERATIONS.values(), ids=OPERATIONS)
def test_a_missing_descriptor_is_named_with_its_limit(tmp_path, operations):
    with siteline.Sandbox() as sandbox:
        done = subprocess.run(
            [sys.executable, PROGRAM, tmp_path, "0,1,3,6", *operations],
            input=json.dumps(sandbox.env()),
            env=os.environ | {"HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    before, during, after = json.loads(done.stdout)
    for name in operations:
        assert "returned" in before[name], (name, before[name])
        assert "returned" in after[name], (name, after[name])
        assert "returned" not in during[name]["0"], (name, during[name]["0"])
        for found in during[name].values():
            if "returned" not in found:
                limit = "too many open files: this process may open 128 (RLIMIT_NOFILE)"
                assert limit in found["text"], (name, found)
                assert found.get("retryable", True), (name, found)
                assert found.get("status", 4) == 4, (name, found)
