"""The locks of .ci/locks fit pyproject.toml, and .ci/locks.py notices where one does not."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("packaging")
ROOT = Path(__file__).resolve().parents[2]
LOCKS = runpy.run_path(str(ROOT / ".ci" / "locks.py"), run_name="locks")
HASH = f"    --hash=sha256:{'0' * 64}"
PROJECT = """
[project.optional-dependencies]
frames = ["a>=2"]
[dependency-groups]
demo = ["a>=2", "b; sys_platform == 'linux'"]
test = []
lint = []
torture = []
spark = []
wheels = []
audit = []
docs = []
"""
FITS = f"a==2.1 \\\n{HASH}\nb==1 ; sys_platform == 'linux' \\\n{HASH}\n    # via nobody\n"


@pytest.fixture
def faults(tmp_path):
    """What is wrong with a lock of the group `demo` of `PROJECT`, all others being right."""

    def check(demo):
        (tmp_path / "pyproject.toml").write_text(PROJECT)
        (tmp_path / "benches").mkdir(exist_ok=True)
        (tmp_path / "benches" / "requirements.txt").write_text("# nothing\n")
        for name in LOCKS["names"]():
            text = {"demo": demo, "lowest": FITS}.get(name, "")
            (tmp_path / f"{name}.txt").write_text(text)
        return LOCKS["check"](tmp_path, tmp_path)

    return check


def test_the_locks_of_this_checkout_fit_it():
    assert LOCKS["check"](LOCKS["LOCKS"], ROOT) == []


def test_each_group_of_pyproject_has_a_lock():
    groups = LOCKS["tomllib"].loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(LOCKS["names"]()) == {*groups["dependency-groups"], "bench", "lowest"}
    assert {path.stem for path in LOCKS["LOCKS"].iterdir()} == set(LOCKS["names"]())


def test_a_lock_that_fits_is_accepted(faults):
    assert faults(FITS) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("a==2.1", "a==1.9"), "a>=2 is not met by 1.9."),
        (("a==2.1", "c==2.1"), "a>=2 has 0 versions on 3.11, linux."),
        (("==2.1", "==2.1 ; sys_platform != 'darwin'"), "a>=2 has 0 versions on 3.11, darwin."),
        (
            (" ; sys_platform == 'linux'", " ; python_full_version < '3.14'"),
            "b; sys_platform == 'linux' has 0 versions on 3.14, linux.",
        ),
        ((HASH, "    # none"), "line 1 has no hash."),
        (("    # via nobody", "    # from https://host/a"), "line 5 has an address."),
        (
            ("    # via nobody", "--extra-index-url host"),
            "line 5 is neither a package, a hash nor a comment.",
        ),
    ],
)
def test_a_lock_that_does_not_fit_is_named(faults, change, fault):
    assert change[0] in FITS
    assert f"demo.txt: {fault}" in faults(FITS.replace(*change))


def test_a_lock_that_is_missing_is_named(tmp_path):
    assert "demo.txt is missing: run `make lock`." in LOCKS["check"](tmp_path, ROOT)
