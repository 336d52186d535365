"""Whether a tag may be released, and what the release says of itself.

``check TAG``: the tag, the version in Cargo.toml and the newest heading of CHANGELOG.md are one,
and that heading has a date. ``notes`` prints the section under that heading.
``files FOLDER BILLS``: every file of a release is in the folder, and no other; the bills of
materials of the wheels are copied out of them.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)
DATED = re.compile(r"^\[?(?P<version>\d+\.\d+\.\d+\S*?)\]? +(?:-|–|—) +\d{4}-\d{2}-\d{2}$")  # noqa: RUF001

ABI3 = "cp311-abi3"
# What free-threaded Python loads: it takes no abi3 wheel.
FREE_THREADED = "cp314-cp314t"
EVERYWHERE = (
    r"manylinux\S*_x86_64",
    r"manylinux\S*_aarch64",
    r"macosx_\d+_\d+_x86_64",
    r"macosx_\d+_\d+_arm64",
    "win_amd64",
)
MUSL = (r"musllinux_\d+_\d+_x86_64", r"musllinux_\d+_\d+_aarch64")


def check(tag: str, root: Path) -> list[str]:
    """Why this tag may not be released, one sentence each."""
    version = _version(root / "Cargo.toml")
    found = []
    if tag != f"v{version}":
        found.append(f'The tag is "{tag}", and the version in Cargo.toml is {version}.')
    locked = tomllib.loads((root / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    if {package["version"] for package in locked if package["name"] == "siteline"} != {version}:
        found.append("Cargo.lock has another version of siteline: run `cargo check`.")
    heading = HEADING.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    newest = heading[1] if heading else ""
    dated = DATED.match(newest)
    if not dated:
        found.append(
            f'The newest heading of CHANGELOG.md is "{newest}": a version and its date go there.'
        )
    elif dated["version"] != version:
        found.append(f"CHANGELOG.md begins with {dated['version']}, and Cargo.toml has {version}.")
    return found


def notes(root: Path) -> str:
    """What CHANGELOG.md says under its newest heading."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = [*HEADING.finditer(text)]
    end = headings[1].start() if len(headings) > 1 else len(text)
    return text[headings[0].end() : end].strip() + "\n"


def expected(version: str) -> list[str]:
    """A pattern for each file of a release."""
    wheels = [(ABI3, system) for system in (*EVERYWHERE, *MUSL)]
    wheels += [(FREE_THREADED, system) for system in EVERYWHERE]
    number = re.escape(version)
    return [
        rf"siteline-{number}\.tar\.gz",
        *(rf"siteline-{number}-{python}-{system}\.whl" for python, system in wheels),
    ]


def incomplete(names: list[str], version: str) -> list[str]:
    """Which files of a release are missing, are there twice, or do not belong to it."""
    found, belonging = [], set()
    for pattern in expected(version):
        matching = [name for name in names if re.fullmatch(pattern, name)]
        belonging.update(matching)
        if len(matching) != 1:
            found.append(f"{len(matching)} files are {pattern}")
    return found + [f"{name} is no file of {version}" for name in names if name not in belonging]


def copy_bills(dist: Path, bills: Path) -> list[str]:
    """Copy the bill of materials out of each wheel; the wheels that have none."""
    bills.mkdir(parents=True, exist_ok=True)
    found = []
    for wheel in sorted(dist.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if ".dist-info/sboms/" in name]
            if len(names) == 1:
                (bills / f"{wheel.stem}.cdx.json").write_bytes(archive.read(names[0]))
            else:
                found.append(f"{wheel.name} has {len(names)} bills of materials")
    return found


def _version(manifest: Path) -> str:
    workspace = tomllib.loads(manifest.read_text(encoding="utf-8"))["workspace"]
    return str(workspace["package"]["version"])


def main() -> int:
    """Check a tag or files, or print the notes."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    commands.add_parser("check").add_argument("tag", help="as v0.2.0")
    commands.add_parser("notes")
    files = commands.add_parser("files")
    files.add_argument("dist", type=Path)
    files.add_argument("bills", type=Path)
    options = parser.parse_args()
    if options.what == "notes":
        sys.stdout.write(notes(ROOT))
        return 0
    if options.what == "files":
        names = sorted(path.name for path in options.dist.glob("*"))
        found = incomplete(names, _version(ROOT / "Cargo.toml"))
        found += copy_bills(options.dist, options.bills)
    else:
        found = check(options.tag, ROOT)
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
