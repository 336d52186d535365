"""Each command that writes exits with status 4 on a full or failing disk."""

import errno
from pathlib import Path

import pytest
from crash.harness import SHIM
from kit import systems
from kit.command import run_command, run_json, run_process
from kit.feeds_file import write_feeds
from kit.preloads import compiled

pytestmark = [systems.PRELOAD, pytest.mark.once]
DAY = ["--site", "S1", "--interval", "1h", "--start", "2026-11-01", "--end", "2026-11-03"]
FAULTS = [("open", "EIO"), ("write", "ENOSPC"), ("sync", "EDQUOT"), ("name", "ENOSPC")]
MORE_FAULTS = [("open", "ENFILE"), ("write", "EIO"), ("sync", "EIO")]
FEEDS = '[feeds.plant]\nsite = "S1"\ninterval = "1h"\nstart = "2026-11-18T00:00:00Z"\n'


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The library that makes system calls fail."""
    return compiled(SHIM, tmp_path_factory.mktemp("library"))


def commands(folder, kept):
    """Returns the commands that write to a folder: those that rename a file, and the others."""
    renaming = [
        ["keygen", "--bits", "2048", folder / "key.pem"],
        ["read", *DAY, "--restart", "-o", folder / "day.csv"],
        ["read", *DAY, "--restart", "-o", folder / "day.parquet"],
        ["store", "backup", kept / "plant.siteline", folder / "backup.siteline"],
        ["changes", kept / "plant.siteline", "plant", "--since", 0, "-o", folder / "changes.csv"],
        ["profile", "init", "--subject", "s", "--base-url", "https://plant.example", "plant"],
    ]
    return renaming, [["sync", kept / "feeds.toml", folder / "plant.siteline"]]


@pytest.mark.parametrize(
    ("call", "name"),
    [*FAULTS, *(pytest.param(*fault, marks=pytest.mark.campaign) for fault in MORE_FAULTS)],
)
def test_a_disk_fault_ends_commands_with_4(shared_sandbox, library, tmp_path, call, name):
    kept, folder = tmp_path / "kept", tmp_path / "disk"
    kept.mkdir()
    folder.mkdir()
    write_feeds(kept, FEEDS)
    env = shared_sandbox.env()
    run_command("sync", kept / "feeds.toml", kept / "plant.siteline", env=env)
    fault = {"FOLDER": folder, "MODE": "fail", "CALLS": call, "ERRNO": getattr(errno, name)}
    fault |= {"AT": 1, "TIMES": 1 << 30}
    faulty = {f"CRASH_{word}": str(value) for word, value in fault.items()}
    faulty["LD_PRELOAD"] = str(library)
    renaming, others = commands(folder, kept)
    for words in renaming if call == "name" else others + renaming:
        if words[0] == "profile":
            env = {"SITELINE_CONFIG": str(folder / "profiles.toml")}
        error = run_json(*words, env=env | faulty, status=4, run=run_process)["error"]
        assert error["retryable"] or words[0] != "keygen"
        assert "uncategorized" not in error["message"]
        assert not (folder / Path(words[-1]).name).exists() or words[0] == "sync", words
        # The same command succeeds after the disk has recovered.
        run_command(*words, env=env)
