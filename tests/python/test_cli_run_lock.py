"""The lock file of a command that writes."""

import os

import pytest
import siteline
from kit import systems
from siteline.cli import run_lock


@systems.SIGNALS
def test_a_removed_file_is_no_lock(tmp_path, monkeypatch):
    path, tried = str(tmp_path / "run"), []
    lock = run_lock._try

    def lock_late(file):
        tried.append(file)
        if len(tried) == 1:
            os.unlink(path)  # the run that held it ends between opening and locking
        return lock(file)

    monkeypatch.setattr(run_lock, "_try", lock_late)
    with run_lock.locked(path, "out.csv"):
        assert len(tried) == 2
        with pytest.raises(siteline.errors.StoreBusy), run_lock.locked(path, "out.csv"):
            pass


@systems.ROOT
def test_a_lock_has_the_owner_of_its_folder(tmp_path):
    os.chown(tmp_path, 65534, 65534)
    path = tmp_path / "run"
    with run_lock.locked(str(path), "out.csv"):
        assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


@systems.MODES
def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    locked = run_lock.locked(str(tmp_path / "run"), "out.csv")
    with pytest.raises(OSError, match="symbolic links"), locked:
        pass
    assert not (tmp_path / "elsewhere").exists()
