"""Faults in a wheel or a release that `.ci` rejects, and the conda recipe."""

import random
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

import licences  # noqa: E402
import release  # noqa: E402
import try_wheels  # noqa: E402
import wheels  # noqa: E402

pytestmark = pytest.mark.once

README = (ROOT / "README.md").read_text(encoding="utf-8")
INFO = "siteline-1.0.0.dist-info"
LIBRARY = "siteline/_core.abi3.so"


@pytest.fixture
def wheel(tmp_path):
    """Makes a wheel with the entries of each wheel, and more."""

    def make(**more):
        entries = {
            LIBRARY: b"library",
            "siteline/py.typed": b"",
            "siteline/cli/completions/bash": b"complete",
            f"{INFO}/METADATA": b"Name: siteline\n\n[docs](https://git.example/docs)\n",
            f"{INFO}/sboms/siteline.cyclonedx.json": b"{}",
            **{f"{INFO}/licenses/{name}": b"text" for name in ("LICENSE-MIT", "LICENSE-APACHE")},
            f"{INFO}/licenses/{licences.FILE}": b"text",
            **more,
        }
        path = tmp_path / "siteline-1.0.0-cp311-abi3-win_amd64.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in entries.items():
                if data is not None:
                    archive.writestr(name, data)
        return path

    return make


def test_a_complete_wheel_is_accepted(wheel):
    assert try_wheels.contents(wheel()) == []


@pytest.mark.parametrize(
    ("entries", "trouble"),
    [
        ({LIBRARY: b"None/home/ci/.cargo/registry/src/index-1949/rustls-0.23/src/x.rs"}, "rustls"),
        ({LIBRARY: b"/__w/siteline/aws-lc/crypto/mem.c"}, "names /__w/siteline/aws-lc"),
        ({LIBRARY: b"C:\\Users\\ada\\siteline\\src\\lib.rs"}, "names C:"),
        ({f"{INFO}/licenses/{licences.FILE}": None}, "is missing"),
        ({f"{INFO}/sboms/siteline.cyclonedx.json": None}, "sboms/ is missing"),
        ({"siteline/cli/completions/bash": None}, "completions/bash is missing"),
        ({f"{INFO}/METADATA": b"[docs](docs/sync.md)"}, "relative link"),
        ({"siteline/big": random.Random(7).randbytes(8_000_001)}, "are more than 8"),
    ],
)
def test_a_faulty_wheel_is_refused(wheel, entries, trouble):
    (found,) = try_wheels.contents(wheel(**entries))
    assert trouble in found


@pytest.mark.parametrize("repository", ["", "https://git.example/plant/siteline"])
def test_the_description_has_no_relative_link(repository):
    text = wheels.for_an_index_page(README, repository)
    assert not try_wheels.RELATIVE.search(text)
    assert try_wheels.BLOCK.search(text)[1] == try_wheels.BLOCK.search(README)[1]
    assert (f"/blob/v{wheels.version()}/docs/sync.md)" in text) == bool(repository)


def test_a_release_has_every_file_once():
    both = [
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
        "manylinux_2_17_aarch64.manylinux2014_aarch64",
        "macosx_10_12_x86_64",
        "macosx_11_0_arm64",
        "win_amd64",
    ]
    abi3 = [*both, "musllinux_1_2_x86_64", "musllinux_1_2_aarch64"]
    tags = [*(f"cp311-abi3-{one}" for one in abi3), *(f"cp314-cp314t-{one}" for one in both)]
    files = ["siteline-0.2.0.tar.gz", *(f"siteline-0.2.0-{tag}.whl" for tag in tags)]
    assert release.incomplete(files, "0.2.0") == []
    for name in files:
        without = [other for other in files if other != name]
        assert len(release.incomplete(without, "0.2.0")) == 1, name
    stray = "siteline-0.2.0-cp311-abi3-linux_x86_64.whl"
    assert release.incomplete([*files, stray], "0.2.0") == [f"{stray} is no file of 0.2.0"]
    assert release.incomplete(files, "0.2.1")


def test_the_conda_recipe_follows_pyproject():
    pyproject, cargo = (
        tomllib.loads((ROOT / name).read_text(encoding="utf-8"))
        for name in ("pyproject.toml", "Cargo.toml")
    )
    recipe = yaml.safe_load((ROOT / ".ci" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    project, needed = pyproject["project"], recipe["requirements"]
    assert recipe["context"]["version"] == cargo["workspace"]["package"]["version"]
    assert recipe["package"]["name"] == project["name"]
    about = {name: recipe["about"][name] for name in ("summary", "license", "license_file")}
    names = ("description", "license", "license-files")
    assert list(about.values()) == [project[name] for name in names]
    python = f"python {project['requires-python']}"
    built = [line.replace("maturin", "maturin ") for line in pyproject["build-system"]["requires"]]
    assert needed["run"] == [python]
    assert needed["host"] == [*built, "pip", python]
    [(command, function)] = project["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{command} = {function}"]
    groups = project["optional-dependencies"].values()
    extras = [Requirement(line) for group in groups for line in group]
    renamed = {"duckdb": "python-duckdb"}
    limits = {f"{renamed.get(one.name, one.name)} {one.specifier}" for one in extras}
    assert needed["run_constraints"] == sorted(limits)
