"""Each command that writes exits with status 4 on a full or failing disk."""

import errno
import json
import os
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.command import run_command
from kit.disk_faults import compiled
from siteline.cli.exits import Exit, status_of

NUMBERS = ("ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM")
FAULTS = [
    ("open", "EIO"),
    ("open", "ENFILE"),
    ("write", "ENOSPC"),
    ("write", "EIO"),
    ("fsync", "EDQUOT"),
    ("fsync", "EIO"),
    ("rename", "ENOSPC"),
]
DAY = ["--site", "S1", "--interval", "1h", "--start", "2026-11-01", "--end", "2026-11-03"]
FEEDS = """
[feeds.plant]
site = "S1"
interval = "1h"
since = "2026-11-18T00:00:00Z"
"""


@pytest.mark.parametrize("name", NUMBERS)
def test_a_disk_fault_of_any_class_is_temporary(name):
    number = getattr(errno, name)
    assert status_of(OSError(number, os.strerror(number), "plant.csv")) is Exit.TEMPORARY
    assert status_of(OSError(errno.ENOENT, "no such file", "plant.csv")) is Exit.USAGE
    assert status_of(PermissionError(errno.EACCES, "denied", "plant.csv")) is Exit.USAGE
    assert status_of(OSError(errno.EROFS, "read-only", "plant.csv")) is Exit.USAGE


@pytest.mark.parametrize(
    "kind", [siteline.StoreError, siteline.CredentialError, siteline.ConfigError]
)
def test_an_error_that_may_pass_is_temporary(kind):
    assert status_of(kind("no descriptor", retryable=True)) is Exit.TEMPORARY
    assert status_of(kind("a wrong setting")) is Exit.USAGE


def commands(folder, kept):
    """Returns the commands that write to a folder."""
    return (
        ["keygen", folder / "key.pem"],
        ["pull", *DAY, "--restart", "-o", folder / "day.csv"],
        ["pull", *DAY, "--restart", "-o", folder / "day.parquet"],
        ["sync", kept / "feeds.toml", folder / "plant.siteline"],
        ["store", "backup", kept / "plant.siteline", folder / "backup.siteline"],
        ["changes", kept / "plant.siteline", "plant", "--since", 0, "-o", folder / "changes.csv"],
        ["profile", "init", "--subject", "s", "--base-url", "https://plant.example", "plant"],
    )


@systems.PRELOAD
@pytest.mark.parametrize(("call", "name"), FAULTS)
def test_each_command_ends_with_4_on_a_disk_fault(sandbox, tmp_path, call, name):
    kept, library, folder = tmp_path / "kept", compiled(tmp_path), tmp_path / "disk"
    kept.mkdir()
    folder.mkdir()
    (kept / "feeds.toml").write_text(FEEDS, encoding="utf-8")
    env = sandbox.env()
    run_command("sync", kept / "feeds.toml", kept / "plant.siteline", env=env)
    fault = f"{call} {getattr(errno, name)} {folder}"
    faulty = {"LD_PRELOAD": str(library), "SITELINE_DISK_FAULT": fault}
    for words in commands(folder, kept):
        if (call, words[0]) == ("rename", "sync"):  # sync renames no file
            continue
        if words[0] == "profile":
            env = {"SITELINE_CONFIG": str(folder / "profiles.toml")}
        done = run_command(*words, env=env | faulty, status=4)
        assert "uncategorized" not in done.stderr
        assert not (folder / Path(words[-1]).name).exists() or words[0] == "sync", words
        # The same command succeeds after the disk has recovered.
        run_command(*words, env=env)


@systems.PRELOAD
def test_a_fault_of_the_disk_is_retryable_in_json(sandbox, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    fault = f"fsync {errno.EIO} {folder}"
    env = {**sandbox.env(), "LD_PRELOAD": str(compiled(tmp_path)), "SITELINE_DISK_FAULT": fault}
    done = run_command("keygen", folder / "key.pem", "--json", env=env, status=4)
    error = json.loads(done.stdout)["error"]
    assert error["retryable"]
    assert "input/output error" in f"{error['message']} {error['hint']}".lower()
