"""The source distribution: what a wheel is built from, without benches, tests' data and documents.

The README is prepared for an index page, where a relative link leads nowhere: with the address of
the repository each link becomes an absolute one of this version, without it a link becomes its text
and a picture is left out. The licences of all crates in the library stand in a file beside our own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import licences

ROOT = Path(__file__).resolve().parents[1]
FILES = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "CHANGELOG.md", "SECURITY.md",
         "LICENSE", "LICENSE-MIT", "LICENSE-APACHE", licences.FILE)  # fmt: skip
TREES = (".cargo", "crates", "src", "python")
THIRD_PARTIES = licences.FILE
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")


def version() -> str:
    """The version of the crates, which is that of the package."""
    with (ROOT / "Cargo.toml").open("rb") as file:
        return str(tomllib.load(file)["workspace"]["package"]["version"])


def for_an_index_page(readme: str, repository: str, tag: str) -> str:
    """The README with links that work outside the repository.

    :param repository: the address of the repository's page; empty if there is none
    :param tag: the tag of the version that the links lead to
    """

    def replace(link: re.Match[str]) -> str:
        is_picture, text, target = link.groups()
        if not repository:
            return "" if is_picture else text
        kind = "raw" if is_picture else "blob"
        return f"{is_picture}[{text}]({repository.rstrip('/')}/{kind}/{tag}/{target})"

    return LINK.sub(replace, readme)


def with_addresses(pyproject: str, repository: str, tag: str) -> str:
    """pyproject.toml with the project's addresses."""
    ours = f'license-files = ["LICENSE-MIT", "LICENSE-APACHE", "{THIRD_PARTIES}"]'
    if ours not in pyproject or "[project.optional-dependencies]" not in pyproject:
        raise ValueError("pyproject.toml: license-files or the optional dependencies have changed")
    if not repository:
        return pyproject
    page = repository.rstrip("/")
    addresses = {
        "Repository": page,
        "Documentation": f"{page}/tree/{tag}/docs",
        "Changelog": f"{page}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{page}/issues",
    }
    lines = "\n".join(f'{name} = "{address}"' for name, address in addresses.items())
    optional = "[project.optional-dependencies]"
    return pyproject.replace(optional, f"[project.urls]\n{lines}\n\n{optional}", 1)


def stage(folder: Path, repository: str) -> None:
    """Write the files of the source distribution into a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in FILES:
        shutil.copyfile(ROOT / name, folder / name)
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.py[co]")
    for name in TREES:
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    tag = f"v{version()}"
    readme, pyproject = folder / "README.md", folder / "pyproject.toml"
    readme.write_text(for_an_index_page(readme.read_text(), repository, tag))
    pyproject.write_text(with_addresses(pyproject.read_text(), repository, tag))
    if trouble := licences.outdated(ROOT):
        raise ValueError(trouble)


def committed_at() -> str:
    """The time of the last commit, which all files in the artefacts have, in seconds since 1970."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    # 1980, where the times of a zip begin, in a source tree that is no checkout.
    return done.stdout.strip() or "315619200"
