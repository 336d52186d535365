"""Runs a smoke selection of the Python tests on other interpreters, with the wheel of `make test`.

By default it uses the newest of ``python3.11`` to ``python3.14`` that it finds on PATH and among
pyenv's versions. ``PYTHONS="python3.12 /opt/python/bin/python3"`` selects others; it is an error if
one is missing. Each interpreter gets its own environment under target/ with the packages of a lock.
The default lock is `smoke`. ``--lock lowest`` installs the lowest versions of pyproject.toml.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ("python3.11", "python3.12", "python3.13", "python3.14")
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"

# One file for each area that depends on the interpreter or on the version of a package.
SMOKE = [
    "asyncio",
    "cli",
    "converting",
    "credential",
    "errors",
    "frames",
    "logging",
    "paging",
    "pickled_tables",
    "plots",
    "progress",
    "store",
    "sync",
    "tables",
    "target_duckdb",
]
# One file for each extra that only the lock `lowest` contains.
EXTRAS = ["dlt", "otel", "target_delta", "target_postgres"]


def version_of(python: str) -> str | None:
    """Returns the interpreter's version, or ``None`` if it does not run."""
    try:
        done = subprocess.run([python, "-c", VERSION], capture_output=True, text=True, timeout=30)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def find(name: str) -> str | None:
    """Returns the path of the interpreter with this name, or ``None`` if none runs."""
    on_path = shutil.which(name)
    if on_path and version_of(on_path):
        return on_path
    pyenv = shutil.which("pyenv")
    if not pyenv:
        return None
    # pyenv puts a shim on PATH that fails if the version is not selected.
    command = [pyenv, "prefix", name.removeprefix("python")]
    prefix = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    known = Path(prefix, "bin", name)
    return str(known) if prefix and known.exists() and version_of(str(known)) else None


def environment(python: str, version: str, lock: str, wheel: Path) -> Path:
    """Creates an environment with the wheel and a lock's packages; returns its interpreter."""
    place = ROOT / "target" / f"venv-{version}-{lock}"
    own = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    uv = Path(sys.executable).with_name("uv")
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--system-certs", "--python", own]
    marker = place / "ready"
    locked = ROOT / ".ci" / "locks" / f"{lock}.txt"
    if not marker.exists() or marker.stat().st_mtime < locked.stat().st_mtime:
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", place], check=True)
        subprocess.run([*install, "--require-hashes", "--requirement", locked], check=True)
        marker.touch()
    subprocess.run([*install, "--no-deps", "--offline", "--reinstall", wheel], check=True)
    return own


def main() -> int:
    """Runs the tests on each interpreter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--lock", default="smoke", choices=["smoke", "lowest"])
    options, pytest = parser.parse_known_args()  # the rest are arguments of pytest
    files = [*SMOKE, *(EXTRAS if options.lock == "lowest" else [])]
    tests = [f"tests/python/test_{name}.py" for name in files]
    named = os.environ.get("PYTHONS", "").split()
    names = named or [name for name in NAMES if find(name)][-1:]
    failed = []
    for name in names:
        python = find(name)
        version = version_of(python) if python else None
        if not python or not version:
            print(f"{name}: NOT FOUND, nothing is tested with it", flush=True)
            failed.append(name)
            continue
        print(f"{name}: testing on {version} with the lock {options.lock}", flush=True)
        own = environment(python, version, options.lock, options.wheel.resolve())
        command: list[str | Path] = [own, "-m", "pytest", "--quiet", "-p", "no:cacheprovider"]
        command += ["-m", "not campaign and not once", *tests, *pytest]
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(name)
    if failed:
        print("failed on", ", ".join(failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
