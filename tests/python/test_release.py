"""Which tags and files .ci/release.py lets through."""

import runpy
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "release.py"
RELEASE = runpy.run_path(str(SCRIPT), run_name="release")
CHANGELOG = """# Changelog

## 0.2.0 - 2026-12-01

### Added
- Wheels.

## 0.1.0 - 2026-11-01

- The first.
"""
WHEELS = [
    f"siteline-0.2.0-{python}-{system}.whl"
    for python, musl in (("cp311-abi3", True), ("cp314-cp314t", False))
    for system in (
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
        "manylinux_2_17_aarch64.manylinux2014_aarch64",
        "macosx_10_12_x86_64",
        "macosx_11_0_arm64",
        "win_amd64",
        *(["musllinux_1_2_x86_64", "musllinux_1_2_aarch64"] if musl else []),
    )
]
FILES = ["siteline-0.2.0.tar.gz", *WHEELS]


@pytest.fixture
def project(tmp_path):
    def write(version="0.2.0", locked="0.2.0", changelog=CHANGELOG):
        package = f'name = "siteline"\nversion = "{version}"\n'
        (tmp_path / "Cargo.toml").write_text(f"[workspace.package]\n{package}")
        other = '[[package]]\nname = "other"\nversion = "9.0.0"\n'
        lock = f'[[package]]\nname = "siteline"\nversion = "{locked}"\n{other}'
        (tmp_path / "Cargo.lock").write_text(lock)
        (tmp_path / "CHANGELOG.md").write_text(changelog)
        return tmp_path

    return write


@pytest.mark.parametrize("heading", ["0.2.0 - 2026-12-01", "[0.2.0] - 2026-12-01"])
def test_a_tag_is_the_version_and_the_newest_heading(project, heading):
    changelog = CHANGELOG.replace("0.2.0 - 2026-12-01", heading)
    assert RELEASE["check"]("v0.2.0", project(changelog=changelog)) == []


@pytest.mark.parametrize(
    ("tag", "of", "fault"),
    [
        ("v0.2.1", {}, 'The tag is "v0.2.1", and the version in Cargo.toml is 0.2.0.'),
        ("0.2.0", {}, 'The tag is "0.2.0", and the version in Cargo.toml is 0.2.0.'),
        ("v0.2.0", {"locked": "0.1.0"}, "Cargo.lock has another version of siteline"),
        (
            "v0.3.0",
            {"version": "0.3.0"},
            "CHANGELOG.md begins with 0.2.0, and Cargo.toml has 0.3.0.",
        ),
        (
            "v0.2.0",
            {"changelog": "## Unreleased\n" + CHANGELOG},
            'The newest heading of CHANGELOG.md is "Unreleased"',
        ),
        (
            "v0.2.0",
            {"changelog": "## 0.2.0\n"},
            'The newest heading of CHANGELOG.md is "0.2.0"',
        ),
        ("v0.2.0", {"changelog": ""}, 'The newest heading of CHANGELOG.md is ""'),
    ],
)
def test_a_tag_that_disagrees_is_refused(project, tag, of, fault):
    found = RELEASE["check"](tag, project(**of))
    assert any(sentence.startswith(fault) for sentence in found), found


def test_the_notes_are_the_newest_section(project):
    assert RELEASE["notes"](project()) == "### Added\n- Wheels.\n"
    assert RELEASE["notes"](project(changelog="## 0.2.0 - 2026-12-01\nAll.")) == "All.\n"


def test_a_release_has_every_file_once_and_no_other():
    assert RELEASE["incomplete"](FILES, "0.2.0") == []
    for name in FILES:
        without = [other for other in FILES if other != name]
        assert len(RELEASE["incomplete"](without, "0.2.0")) == 1, name
    stray = "siteline-0.2.0-cp311-abi3-linux_x86_64.whl"
    assert RELEASE["incomplete"]([*FILES, stray], "0.2.0") == [f"{stray} is no file of 0.2.0"]
    second = "siteline-0.2.0-cp311-abi3-macosx_12_0_arm64.whl"
    assert len(RELEASE["incomplete"]([*FILES, second], "0.2.0")) == 1
    assert RELEASE["incomplete"](FILES, "0.2.1")


def test_the_bill_of_materials_of_each_wheel_is_copied_out(tmp_path):
    for name, inside in ((WHEELS[0], "siteline-0.2.0.dist-info/sboms/x.json"), (WHEELS[1], "a.py")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(inside, "{}")
    bills = tmp_path / "bills"
    found = RELEASE["copy_bills"](tmp_path, bills)
    assert found == [f"{WHEELS[1]} has 0 bills of materials"]
    assert [path.read_text() for path in bills.iterdir()] == ["{}"]
    assert (bills / WHEELS[0].replace(".whl", ".cdx.json")).exists()
