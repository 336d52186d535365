"""Makes and checks the locks of the Makefile's Python environments in ``.ci/locks``.

``python .ci/locks.py make --uv PATH`` resolves the locks again. ``check`` compares them with
pyproject.toml: each requirement is met, each package has a hash, and no file names an index.
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

# The Python versions that each lock supports. The first is the oldest one of pyproject.toml.
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
SYSTEMS = ("linux", "darwin", "win32")
# These locks are installed into one environment, so their versions must agree.
TOGETHER = ("demo", "test", "lint")
# Each of these locks has its own environment.
ALONE = ("smoke", "spark", "notebooks", "wheels", "audit", "docs")
# `make smoke` tests the lowest versions of these extras. Sail is not among them: it is large and
# accepts only one version of PySpark.
LOWEST = (
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "postgres",
    "delta",
    "dlt",
    "plot",
    "progress",
    "otel",
)
PIN = re.compile(r"^(?P<name>[\w.-]+)(\[[^]]*\])?==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]+))?")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def names() -> list[str]:
    """Returns the names of the locks."""
    return [*TOGETHER, *ALONE, "bench", "lowest"]


def sources(name: str) -> list[str]:
    """Returns the arguments for uv that select the requirements of a lock."""
    if name == "bench":
        return ["benches/requirements.txt"]
    if name == "lowest":
        extras = [option for extra in LOWEST for option in ("--extra", extra)]
        group = ["--group", "pyproject.toml:smoke", "--resolution", "lowest-direct"]
        return ["pyproject.toml", *extras, *group]
    return ["--group", f"pyproject.toml:{name}"]


def make(uv: str, upgrade: bool) -> None:
    """Resolves each lock. Keeps locked versions that still fit, except if `upgrade` is set."""
    command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", PYTHONS[0]]
    command += ["--no-config", "--custom-compile-command", "make lock"]
    command += ["--upgrade"] if upgrade else []
    common = ROOT / "target" / "locks" / "together.txt"
    common.parent.mkdir(parents=True, exist_ok=True)
    before = [LOCKS / f"{name}.txt" for name in TOGETHER]
    common.write_text("".join(path.read_text() for path in before if path.exists()))
    groups = [part for name in TOGETHER for part in sources(name)]
    _run([*command, *groups, "--output-file", str(common)])
    for name in names():
        constraints = ["--constraints", str(common)] if name in TOGETHER else []
        output = ["--generate-hashes", "--output-file", str(LOCKS / f"{name}.txt")]
        _run([*command, *sources(name), *constraints, *output])


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def required(name: str) -> list[str]:
    """Returns the requirements of a lock."""
    if name == "bench":
        lines = (ROOT / "benches" / "requirements.txt").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line and not line.startswith("#")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups: dict[str, list[str]] = project["dependency-groups"]
    if name != "lowest":
        return groups[name]
    extras: dict[str, list[str]] = project["project"]["optional-dependencies"]
    return [*groups["smoke"], *(line for extra in LOWEST for line in extras[extra])]


def faults(text: str, requirements: list[str]) -> list[str]:
    """Returns the faults of a lock, one sentence each."""
    from packaging.markers import Marker
    from packaging.requirements import Requirement

    found, lines = [], [*text.splitlines(), ""]
    pins: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for number, line in enumerate(lines, 1):
        if pin := PIN.match(line):
            pins[_canonical(pin["name"])].append((pin["version"], (pin["marker"] or "").strip()))
            if not HASH.match(lines[number]):
                found.append(f"line {number} has no hash.")
        elif "://" in line or not (HASH.match(line) or re.match(r" *(#|$)", line)):
            found.append(f"line {number} is neither a package, a hash nor a comment.")
    for python, system in ((python, system) for python in PYTHONS for system in SYSTEMS):
        where = {
            "python_version": python,
            "python_full_version": f"{python}.0",
            "sys_platform": system,
            "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[system],
            "os_name": "nt" if system == "win32" else "posix",
            "platform_machine": "AMD64" if system == "win32" else "x86_64",
            "extra": "",
        }
        for wanted in map(Requirement, requirements):
            if wanted.marker and not wanted.marker.evaluate(where):
                continue
            versions = [
                version
                for version, marker in pins[_canonical(wanted.name)]
                if not marker or Marker(marker).evaluate(where)
            ]
            if len(versions) != 1 or not wanted.specifier.contains(versions[0], prereleases=True):
                found.append(f"{wanted} is not met on {python}, {system}: {versions}.")
    return found


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Makes the locks if requested, then checks them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("--uv", default="uv")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    options = parser.parse_args()
    if options.what == "make":
        make(options.uv, options.upgrade)
    found = [
        f"{name}.txt: {fault}"
        for name in names()
        for fault in faults((LOCKS / f"{name}.txt").read_text(encoding="utf-8"), required(name))
    ]
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
