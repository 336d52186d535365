"""Without free descriptors each operation reports the limit, and works again afterwards."""

import json
import sys
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.command import run_program

PROGRAM = Path(__file__).parent / "limited_files.py"
OPERATIONS = {
    "ledgers": ("ledger",),
    "others": (
        *("read", "key", "new_key", "profile", "authorities", "new_store", "stored", "backup"),
        *("sandbox", "agent", "command_read", "command_sync"),
    ),
}
"""Repeated requests move the clock of the sandbox, and then no ledger file counts by it."""


@systems.MODES
@pytest.mark.parametrize("operations", OPERATIONS.values(), ids=OPERATIONS)
def test_a_missing_descriptor_is_named_with_its_limit(tmp_path, key_file, operations):
    profiles = tmp_path / "profiles.toml"
    with siteline.Sandbox() as sandbox:
        profiles.write_text(
            f'[plant]\nbase_url = "{sandbox.base_url}"\nsubject = "subject"\n'
            f'private_key_file = "{key_file}"\n'
        )
        own = {"HOME": tmp_path, "SITELINE_CONFIG": profiles, "KEY_FILE": key_file}
        program = (sys.executable, PROGRAM, tmp_path, "0,1,3,6", *operations)
        env = {name: str(value) for name, value in own.items()}
        done = run_program(*program, env=env, input=json.dumps(sandbox.env()))
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
