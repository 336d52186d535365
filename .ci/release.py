"""Checks a release: ``python .ci/release.py TAG``.

The tag, Cargo.toml, Cargo.lock and the newest heading of CHANGELOG.md name one version, and the
heading has a date. If target/dist exists, it contains every file of the release and no other. The
section of CHANGELOG.md is written to target/results/release-notes.md.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import wheels

HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)
SYSTEMS = (r"manylinux\S*_x86_64", r"manylinux\S*_aarch64", r"macosx_\d+_\d+_x86_64",
           r"macosx_\d+_\d+_arm64", "win_amd64")  # fmt: skip
MUSL = (r"musllinux_\d+_\d+_x86_64", r"musllinux_\d+_\d+_aarch64")


def disagreements(tag: str, version: str, lock: str, changelog: str) -> list[str]:
    """Returns the reasons why this tag cannot be released, one sentence each."""
    found = []
    if tag != f"v{version}":
        found.append(f'The tag is "{tag}", and the version in Cargo.toml is {version}.')
    packages = tomllib.loads(lock)["package"]
    if {one["version"] for one in packages if one["name"] == "siteline"} != {version}:
        found.append("Cargo.lock has another version of siteline: run `cargo check`.")
    heading = HEADING.search(changelog)
    if not heading or not re.fullmatch(
        rf"\[?{re.escape(version)}\]? +\S +\d{{4}}(-\d\d){{2}}", heading[1]
    ):
        found.append(f"CHANGELOG.md does not begin with {version} and a date.")
    return found


def notes(changelog: str) -> str:
    """Returns the newest section of CHANGELOG.md."""
    return HEADING.split(changelog)[2].strip() + "\n"


def incomplete(names: list[str], version: str) -> list[str]:
    """Returns the files of a release that are missing, exist twice, or do not belong to it."""
    # A free-threaded Python cannot load abi3 wheels.
    wheels = [f"cp311-abi3-{system}" for system in (*SYSTEMS, *MUSL)]
    wheels += [f"cp314-cp314t-{system}" for system in SYSTEMS]
    number = re.escape(version)
    patterns = [rf"siteline-{number}\.tar\.gz", *(rf"siteline-{number}-{w}\.whl" for w in wheels)]
    matching = [[name for name in names if re.fullmatch(one, name)] for one in patterns]
    found = [
        f"{len(those)} files are {pattern}"
        for pattern, those in zip(patterns, matching, strict=True)
        if len(those) != 1
    ]
    other = set(names) - {name for those in matching for name in those}
    return found + [f"{name} is no file of {version}" for name in sorted(other)]


def main() -> int:
    """Checks the release, and writes the release notes."""
    version = wheels.version()
    changelog = (wheels.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    lock = (wheels.ROOT / "Cargo.lock").read_text(encoding="utf-8")
    found = disagreements(sys.argv[1], version, lock, changelog)
    if wheels.DIST.exists():
        found += incomplete([path.name for path in wheels.DIST.iterdir()], version)
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    made = Path("target/results/release-notes.md")
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(notes(changelog), encoding="utf-8")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
