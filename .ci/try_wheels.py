"""Checks the wheels in target/dist, and runs them.

The tools auditwheel, abi3audit, check-wheel-contents and twine check the tags, the contents and
the metadata. This script checks the licence texts, the bill of materials, the size, and that there
are no paths of the building machine and no relative links in the description. Then it installs a
wheel for each interpreter that it finds, and runs the first block of the README.

``--own`` only runs the README's block, on the interpreter that runs this script.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import licences
import wheels

sys.path.insert(0, str(wheels.ROOT / "tests"))
import pythons

LARGEST = 8_000_000
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
RELATIVE = re.compile(r"\]\((?!https?://|#)[^)]*\)")
# A source file in a home folder, a checkout or a folder of downloaded crates.
SOURCE = re.compile(
    rb"/(?:root|home|Users|work|__w|tmp|private/var)/[\w./+@-]+?\.(?:rs|c|cc|cpp|h|S)\b"
    rb"|[A-Z]:[\\/]\w[\w\\/ .+@-]*?\.(?:rs|c|cc|cpp|h|asm)\b"
    rb"|/(?:\.cargo|registry/src|\.rustup)/\w[\w./+@-]*"
)


def description(wheel: Path) -> str:
    """Returns the metadata of a wheel, followed by the README."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def contents(wheel: Path) -> list[str]:
    """Returns the faults of the contents of a wheel."""
    wrong = []
    with zipfile.ZipFile(wheel) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    for name, data in entries.items():
        if name.endswith((".so", ".pyd")):
            wrong += [f"{name} names {one.decode()}" for one in SOURCE.findall(data)[:1]]
    for part in ("licenses/LICENSE-MIT", "licenses/LICENSE-APACHE", f"licenses/{licences.FILE}",
                 "sboms/", "siteline/cli/completions/bash", "siteline/py.typed"):  # fmt: skip
        if not any(part in name for name in entries):
            wrong.append(f"{part} is missing")
    if (size := wheel.stat().st_size) > LARGEST:
        wrong.append(f"{size / 1e6:.1f} MB are more than {LARGEST / 1e6:.0f}")
    return [*wrong, *(f"relative link: {link}" for link in RELATIVE.findall(description(wheel)))]


def tool(name: str, *arguments: str) -> tuple[list[str], str]:
    """Runs a tool. Returns its complaint, if it failed, and its output."""
    command: list[str | Path] = [Path(sys.executable).parent / name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    printed = " ".join((done.stdout + done.stderr).split())
    return ([f"{name}: {printed}"] if done.returncode else []), printed


def check(made: list[Path], sdists: list[Path]) -> list[str]:
    """Returns the faults of the files."""
    wrong = tool("twine", "check", "--strict", *map(str, [*made, *sdists]))[0]
    for sdist in sdists:
        with tarfile.open(sdist) as archive:
            tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
        other = tops - {*wheels.FILES, *wheels.TREES, "PKG-INFO"}
        wrong += [f"{sdist.name}: {name} does not belong there" for name in sorted(other)]
    for wheel in made:
        found = [*contents(wheel), *tool("check-wheel-contents", "--ignore=W004", str(wheel))[0]]
        found += tool("abi3audit", "--strict", str(wheel))[0]
        if "manylinux" in wheel.name:
            trouble, printed = tool("auditwheel", "show", str(wheel))
            found += trouble
            if 'following platform tag: "manylinux_2_17_' not in printed:
                found.append(f"not manylinux_2_17: {printed}")
        wrong += [f"{wheel.name}: {one}" for one in found]
    return wrong


def try_on(python: str, dist: Path, text: str) -> None:
    """Installs pandas and the wheel that pip chooses, and runs a program with them."""
    place = wheels.ROOT / "target" / "try-wheel"
    subprocess.run([python, "-m", "venv", "--clear", place], check=True)
    own = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip: list[str | Path] = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    only: list[str | Path] = ["--no-deps", "--no-index", "--only-binary=:all:"]
    subprocess.run([*pip, *only, "--find-links", dist, f"siteline=={wheels.version()}"], check=True)
    subprocess.run([*pip, "pandas>=2.2"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        command: list[str | Path] = [own, "-I", "-c", text]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    if "M3 / D31 / temperature [degC]" not in done.stdout or "<Allowance 6 used" not in done.stdout:
        raise ValueError(f"{python} printed {done.stdout!r}")
    print(f"{python}: runs the README's first block", flush=True)


def main() -> int:
    """Checks the wheels and runs them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--own", action="store_true")
    options = parser.parse_args()
    made = sorted(wheels.DIST.glob(f"siteline-{wheels.version()}-*.whl"))
    wrong = [] if options.own else check(made, sorted(wheels.DIST.glob("*.tar.gz")))
    found = (
        [sys.executable] if options.own else list(filter(None, map(pythons.find, pythons.NAMES)))
    )
    readme = made and BLOCK.search(description(made[0]))
    if not readme or not found:
        sys.exit(f"{wheels.DIST} has no wheel with a README, or there is no interpreter")
    for python in found:
        try:
            try_on(python, wheels.DIST, readme[1])
        except (subprocess.CalledProcessError, ValueError) as error:
            wrong.append(f"{python} on {platform.machine()}: {error}")
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
