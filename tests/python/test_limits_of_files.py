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
OPERATIONS = (
    "read",
    "key",
    "new_key",
    "ledger",
    "default_ledger",
    "profile",
    "authorities",
    "new_store",
    "stored",
    "backup",
    "sandbox",
    "agent",
    "pull",
    "keygen",
    "command_sync",
)


@pytest.fixture
def limited(tmp_path):
    """Returns a function that runs an operation before, during and after a descriptor shortage."""
    sandbox = siteline.Sandbox()
    profiles = tmp_path / "profiles.toml"
    key = tmp_path / "key.pem"
    key.touch(0o600)
    key.write_text(sandbox.env()["SITELINE_PRIVATE_KEY"])
    profiles.write_text(
        f'[plant]\nbase_url = "{sandbox.base_url}"\nsubject = "subject"\n'
        f'private_key_file = "{key}"\n'
    )

    def run(operation, left):
        own = {
            "HOME": str(tmp_path),
            "SITELINE_CONFIG": str(profiles),
            "KEY_FILE": str(tmp_path / "key.pem"),
        }
        command = [sys.executable, str(PROGRAM), operation, str(left), str(tmp_path)]
        done = subprocess.run(
            command,
            input=json.dumps(sandbox.env()),
            env=os.environ | own,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    with sandbox:
        yield run


@systems.MODES
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_missing_descriptor_is_named_with_its_limit(limited, operation):
    for left in (0, 1, 2, 4, 6):
        before, with_limit, after = limited(operation, left)
        assert "returned" in before, before
        assert "returned" in after, after
        if "returned" not in with_limit:
            text = with_limit["text"]
            assert "too many open files: this process may open 128 (RLIMIT_NOFILE)" in text, text
            assert with_limit.get("retryable", True), with_limit
            assert with_limit.get("status", 4) == 4, with_limit
        else:
            assert left, with_limit
