"""Run the Python tests on every interpreter found, all with the same wheel.

``python3.11`` to ``python3.14`` are searched on PATH and among pyenv's versions;
``PYTHONS="python3.12 /opt/python/bin/python3"`` selects others, ``--newest`` the last of them. Each
gets its own environment under target/, with what ``.ci/locks/test.txt`` locks (``--lock lowest``:
another lock). An interpreter that is missing, or for which the tests' packages cannot be installed,
is reported and skipped; if ``PYTHONS`` names it, this is an error.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ("python3.11", "python3.12", "python3.13", "python3.14")
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def version_of(python: str) -> str | None:
    """The version that the interpreter prints; ``None`` if it does not run."""
    try:
        done = subprocess.run([python, "-c", VERSION], capture_output=True, text=True, timeout=30)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def find(name: str) -> str | None:
    """The interpreter of this name, if it runs."""
    on_path = shutil.which(name)
    if on_path and version_of(on_path):
        return on_path
    pyenv = shutil.which("pyenv")
    if not pyenv:
        return None
    # A shim of pyenv runs only when a version is selected.
    command = [pyenv, "prefix", name.removeprefix("python")]
    prefix = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    known = Path(prefix, "bin", name)
    return str(known) if prefix and known.exists() and version_of(str(known)) else None


def environment(python: str, version: str, lock: str, wheel: Path) -> Path:
    """Create the environment of an interpreter, with the wheel and the packages of a lock."""
    place = ROOT / "target" / f"venv-{version}{'' if lock == 'test' else f'-{lock}'}"
    own = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip: list[str | Path] = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    marker = place / "ready"
    locked = ROOT / ".ci" / "locks" / f"{lock}.txt"
    if not marker.exists() or marker.stat().st_mtime < locked.stat().st_mtime:
        subprocess.run([python, "-m", "venv", "--clear", place], check=True)
        subprocess.run([*pip, "--require-hashes", "--requirement", locked], check=True)
        marker.touch()
    subprocess.run([*pip, "--no-deps", "--no-index", "--force-reinstall", wheel], check=True)
    return own


def main() -> int:
    """Run the tests on each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--but", default="", help="a version that was tested already: 3.11")
    parser.add_argument("--newest", action="store_true", help="of those found, the newest alone")
    parser.add_argument("--lock", default="test", help="the lock of the tests' packages")
    options, pytest = parser.parse_known_args()  # the rest are arguments of pytest
    names = os.environ.get("PYTHONS", "").split() or list(NAMES)
    if options.newest:
        names = [name for name in names if find(name)][-1:]
    failed = []
    for name in names:
        python = find(name)
        version = version_of(python) if python else None
        if not python or not version:
            print(f"{name}: NOT FOUND, so nothing is tested there", flush=True)
            if "PYTHONS" in os.environ:
                failed.append(name)
            continue
        if version == options.but:
            print(f"{name}: tested already", flush=True)
            continue
        print(f"{name}: testing on {version}", flush=True)
        try:
            own = environment(python, version, options.lock, options.wheel.resolve())
        except subprocess.CalledProcessError:
            print(f"{name}: CANNOT BE SET UP, so nothing is tested there", flush=True)
            if "PYTHONS" in os.environ:
                failed.append(name)
            continue
        command: list[str | Path] = [
            own,
            "-m",
            "pytest",
            "--quiet",
            "-p",
            "no:cacheprovider",
            *pytest,
        ]
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(name)
    if failed:
        print("failed on", ", ".join(failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
