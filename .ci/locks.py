"""The locked Python environments of the Makefile, one file each in ``.ci/locks``.

``make`` resolves them again: ``python .ci/locks.py make --uv PATH``. ``check`` compares them with
pyproject.toml: every requirement is met by what is locked, each package has hashes, and no file
says where a package comes from.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / ".ci" / "locks"

# The oldest Python of pyproject.toml, and those that a lock must have an answer for.
OLDEST = "3.11"
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
SYSTEMS = ("linux", "darwin", "win32")

# Locks that are installed into one environment, one after another, so that they must agree.
TOGETHER = ("demo", "test", "lint")
# An environment of its own for each.
ALONE = ("torture", "spark", "wheels", "audit", "docs")
# The lowest versions: of what users may have beside siteline, and of the tests' tools.
LOWEST = ("--all-extras", "--group", "pyproject.toml:test")

PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?==(?P<version>[^ ;\\]+)(?P<marker> ; [^\\]+)?"
)
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")
COMMENT = re.compile(r"^ *#")


def names() -> list[str]:
    """The names of the locks."""
    return [*TOGETHER, *ALONE, "bench", "lowest"]


def sources(name: str) -> list[str]:
    """The arguments of uv that say what is locked."""
    if name == "bench":
        return ["benches/requirements.txt"]
    if name == "lowest":
        return ["pyproject.toml", *LOWEST, "--resolution", "lowest-direct"]
    return ["--group", f"pyproject.toml:{name}"]


def make(uv: str, upgrade: bool) -> None:
    """Resolve each lock. What is locked already stays where it still fits, unless `upgrade`."""
    compile_ = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", OLDEST]
    compile_ += ["--no-config", "--custom-compile-command", "make lock"]
    compile_ += ["--upgrade"] if upgrade else []
    LOCKS.mkdir(exist_ok=True)
    common = ROOT / "target" / "locks" / "together.txt"
    common.parent.mkdir(parents=True, exist_ok=True)
    before = [LOCKS / f"{name}.txt" for name in TOGETHER]
    common.write_text("".join(path.read_text() for path in before if path.exists()))
    groups = [part for name in TOGETHER for part in sources(name)]
    _run([*compile_, *groups, "--output-file", str(common)])
    for name in names():
        command = [*compile_, *sources(name), "--generate-hashes"]
        command += ["--constraints", str(common)] if name in TOGETHER else []
        _run([*command, "--output-file", str(LOCKS / f"{name}.txt")])


def check(locks: Path, root: Path) -> list[str]:
    """What is wrong with the locks, one sentence each."""
    found = []
    for name in names():
        path = locks / f"{name}.txt"
        if not path.exists():
            found.append(f"{path.name} is missing: run `make lock`.")
            continue
        text = path.read_text(encoding="utf-8")
        found += [f"{path.name}: {fault}" for fault in form(text)]
        found += [f"{path.name}: {fault}" for fault in unmet(required(name, root), pins(text))]
    return found


def form(text: str) -> list[str]:
    """What a lock may not contain: addresses, other options than hashes, packages without."""
    found, lines = [], text.splitlines()
    for number, line in enumerate(lines, 1):
        if "://" in line:
            found.append(f"line {number} has an address.")
        elif PIN.match(line):
            following = lines[number] if number < len(lines) else ""
            if not HASH.match(following):
                found.append(f"line {number} has no hash.")
        elif line.strip() and not COMMENT.match(line) and not HASH.match(line):
            found.append(f"line {number} is neither a package, a hash nor a comment.")
    return found


def pins(text: str) -> dict[str, list[tuple[str, str]]]:
    """The locked versions of each package, each with its marker."""
    found = defaultdict(list)
    for line in text.splitlines():
        if match := PIN.match(line):
            marker = (match["marker"] or "").removeprefix(" ; ").strip()
            found[canonical(match["name"])].append((match["version"], marker))
    return dict(found)


def required(name: str, root: Path) -> list[str]:
    """What the lock must meet, as pyproject.toml or the file of the benchmarks says it."""
    if name == "bench":
        lines = (root / "benches" / "requirements.txt").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line and not line.startswith("#")]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    groups: dict[str, list[str]] = project["dependency-groups"]
    if name == "lowest":
        extras: dict[str, list[str]] = project["project"]["optional-dependencies"]
        return [*groups["test"], *(line for extra in extras.values() for line in extra)]
    return groups[name]


def unmet(requirements: list[str], locked: dict[str, list[tuple[str, str]]]) -> list[str]:
    """The requirements that the lock does not meet on some Python or system."""
    from packaging.markers import Marker
    from packaging.requirements import Requirement

    found = []
    for text in requirements:
        wanted = Requirement(text)
        for system in SYSTEMS:
            for python in PYTHONS:
                where = _environment(python, system)
                if wanted.marker and not wanted.marker.evaluate(where):
                    continue
                versions = [
                    version
                    for version, marker in locked.get(canonical(wanted.name), [])
                    if not marker or Marker(marker).evaluate(where)
                ]
                if len(versions) != 1:
                    found.append(f"{text} has {len(versions)} versions on {python}, {system}.")
                elif not wanted.specifier.contains(versions[0], prereleases=True):
                    found.append(f"{text} is not met by {versions[0]}.")
    return list(dict.fromkeys(found))


def canonical(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _environment(python: str, system: str) -> dict[str, str]:
    """The values of markers on a Python and a system."""
    return {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system,
        "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[system],
        "os_name": "nt" if system == "win32" else "posix",
        "platform_machine": "AMD64" if system == "win32" else "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def main() -> int:
    """Make the locks, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("--uv", default="uv")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    options = parser.parse_args()
    if options.what == "make":
        make(options.uv, options.upgrade)
    found = check(LOCKS, ROOT)
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
