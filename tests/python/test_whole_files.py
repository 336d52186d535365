"""Files that siteline writes appear whole or not at all, and belong to the right user."""

import errno
import os
import stat

import pytest
from kit import systems
from siteline._files import whole_file


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_failed_block_keeps_the_former_file(tmp_path, error):
    path = tmp_path / "out.csv"
    path.write_text("former")

    def fail():
        with whole_file(path) as part:
            part.write_text("half")
            raise error

    with pytest.raises(type(error)) as caught:
        fail()
    assert (os.listdir(tmp_path), path.read_text()) == (["out.csv"], "former")
    if isinstance(error, OSError):
        assert caught.value.filename == str(path)


def test_an_error_names_the_path_of_the_user(tmp_path):
    path = tmp_path / "missing" / "out.csv"
    with pytest.raises(FileNotFoundError) as caught, whole_file(path):
        pass
    assert caught.value.filename == str(path)
    assert (caught.value.errno, caught.value.strerror) == (errno.ENOENT, os.strerror(errno.ENOENT))
    with pytest.raises(OSError, match="it is not a regular file") as caught, whole_file(tmp_path):
        pass
    assert caught.value.filename == str(tmp_path)
    # A reader of the block failed, and not the file.
    with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "out.csv"):
        (tmp_path / "other.csv").read_text()
    assert caught.value.filename == str(tmp_path / "other.csv")
    assert os.listdir(tmp_path) == []


@systems.MODES
def test_new_files_have_the_mode_of_the_umask(tmp_path):
    former = os.umask(0o027)
    try:
        for name, options, mode in (
            ("shared", {}, 0o640),
            ("private", {"mode": 0o600}, 0o600),
            ("metrics", {"mode": 0o644, "keeps": False}, 0o644),
        ):
            for _ in range(2):
                with whole_file(tmp_path / name, **options):
                    pass
                assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
    finally:
        os.umask(former)


@systems.ROOT
def test_root_leaves_files_to_their_users(tmp_path):
    path, user = tmp_path / "siteline.prom", (12_345, 12_346)
    os.chown(tmp_path, *user)
    for keeps, owner in ((False, user), (True, (12_347, 12_348))):
        if keeps:
            os.chown(path, *owner)
        with whole_file(path, mode=0o644, keeps=keeps):
            pass
        assert (path.stat().st_uid, path.stat().st_gid) == owner
