"""Where a wheel is tried: an interpreter, and how packages are installed for it.

An interpreter of this machine gets a virtual environment. One of Debian's newer suites was unpacked
into a folder: pip of another interpreter installs for it into a second folder, from wheels alone;
the folder of another processor runs under qemu.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import debian

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "target"
sys.path.insert(0, str(ROOT / "tests"))
import pythons  # noqa: E402

# The suite of each version of Python that this machine may not have.
SUITES = {"3.14": "sid", "3.15": "sid"}
QEMU_SUITE = "trixie"
OLDEST_GLIBC, NEWEST_GLIBC = 17, 43


@dataclass
class Interpreter:
    """An interpreter with a folder for packages.

    :param command: the beginning of its command
    :param pip: the beginning of the command that installs packages for it
    :param variables: environment variables that it needs
    :param options: what pip is told of it
    """

    name: str
    command: list[str]
    pip: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def install(self, *arguments: str) -> None:
        """Install packages.

        :raises subprocess.CalledProcessError: if pip fails
        """
        command = [*self.pip, "install", "--quiet", *self.options, *arguments]
        subprocess.run(command, check=True)

    def run(self, *arguments: str, folder: Path) -> str:
        """What a command of the interpreter prints; what it writes to stderr is shown.

        :raises subprocess.CalledProcessError: if it fails
        """
        variables = {**os.environ, **self.variables}
        done = subprocess.run(
            [*self.command, *arguments], cwd=folder, env=variables, text=True,
            stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
        return done.stdout


def of_this_machine(python: str, version: str) -> Interpreter:
    """An interpreter of this machine, with an environment of its own, made anew."""
    place = TARGET / f"try-{version}"
    subprocess.run([python, "-m", "venv", "--clear", place], check=True)
    own = str(place / ("Scripts" if os.name == "nt" else "bin") / "python")
    return Interpreter(f"CPython {version}", [own, "-I"], [own, "-m", "pip"])


def unpacked(version: str, suite: str, architecture: str) -> Interpreter:
    """An interpreter of a newer suite of Debian, also of another processor.

    :raises debian.Unavailable: if it cannot be had
    """
    folder = TARGET / f"debian/python{version}-{architecture}"
    names = [f"python{version}-minimal", f"libpython{version}-stdlib", "libstdc++6"]
    root = debian.unpack(folder, suite, names, architecture)
    program = f"usr/bin/python{version}"
    command = root.command(program)
    if architecture != debian.machine():
        command = [*emulator(architecture, root), str(root.path / program)]
    packages = TARGET / f"try-{version}-{architecture}"
    processor = debian.PROCESSORS[architecture]
    platforms = [
        f"--platform=manylinux_2_{minor}_{processor}"
        for minor in range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)
    ]
    code = "cp" + version.replace(".", "")
    options = (
        "--target", str(packages), "--upgrade", "--only-binary=:all:", "--implementation=cp",
        f"--python-version={version}", f"--abi={code}", "--abi=abi3", "--abi=none",
        f"--platform=manylinux2014_{processor}", *platforms,
    )  # fmt: skip
    variables = {
        "PYTHONHOME": str(root.path / "usr"),
        "PYTHONPATH": str(packages),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    pip = [sys.executable, "-m", "pip"]
    return Interpreter(f"CPython {version} {processor}", command, pip, variables, options)


def emulator(architecture: str, root: debian.Root) -> list[str]:
    """The beginning of a command that runs a program of another processor."""
    processor = debian.PROCESSORS[architecture]
    qemu = debian.unpack(TARGET / "debian/qemu", QEMU_SUITE, ["qemu-user"])
    return [str(qemu.path / f"usr/bin/qemu-{processor}"), "-L", str(root.path)]


def find(version: str) -> Interpreter:
    """An interpreter of a version, of this machine or of Debian.

    :raises debian.Unavailable: if there is neither
    """
    if known := pythons.find(f"python{version}"):
        return of_this_machine(known, version)
    if version not in SUITES:
        raise debian.Unavailable(f"python{version} was not found")
    return unpacked(version, SUITES[version], debian.machine())
