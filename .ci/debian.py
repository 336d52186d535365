"""Unpack packages of Debian, newer ones than this machine's too, into a folder of their own.

``python .ci/debian.py FOLDER SUITE PACKAGE...`` unpacks the packages of a suite (``trixie``) with
all that they depend on. Nothing is installed: the programs run by the loader that was unpacked with
them, see :meth:`Root.command`, so that this machine's libraries are neither used nor changed. What
is unpacked stays until the folder is removed; ``PACKAGE:arm64`` is a package of another
architecture.

The packages come from where this machine's own come from: no host is named here.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

# By the name of the processor, and the other way.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PROCESSORS = {architecture: processor for processor, architecture in ARCHITECTURES.items()}
LOADERS = {"amd64": "lib64/ld-linux-x86-64.so.2", "arm64": "lib/ld-linux-aarch64.so.1"}
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}


class Unavailable(RuntimeError):
    """Packages of Debian cannot be had on this machine."""


class Root:
    """A folder into which packages were unpacked.

    :param path: the folder
    :param architecture: ``amd64`` or ``arm64``
    """

    def __init__(self, path: Path, architecture: str) -> None:
        """Name the folder; nothing is read."""
        self.path = path.resolve()
        self.architecture = architecture

    def command(self, program: str) -> list[str]:
        """The beginning of a command that runs a program of the folder, on its own processor."""
        libraries = [self.path / "usr/lib" / TRIPLETS[self.architecture], self.path / "usr/lib"]
        loader = self.path / LOADERS[self.architecture]
        paths = ":".join(str(path) for path in libraries)
        return [str(loader), "--library-path", paths, str(self.path / program)]

    def wrapper(self, program: str, *arguments: str) -> Path:
        """A script that runs a program of the folder with these arguments first."""
        script = self.path / "bin-wrapped" / Path(program).name
        script.parent.mkdir(exist_ok=True)
        words = " ".join(f'"{word}"' for word in [*self.command(program), *arguments])
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        script.chmod(0o755)
        return script


def mirror() -> str:
    """Where this machine's packages of Debian come from.

    :raises Unavailable: if this is no Debian
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise Unavailable("This machine has no packages of Debian: no apt-get, no dpkg-deb.")
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT)", "Created-By: Packages"],
        capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    for line in listed:
        address, _, component = line.partition(" ")
        if component == "main" and address.rstrip("/").endswith("/debian"):
            return address
    raise Unavailable("This machine's packages are not those of Debian.")


def machine() -> str:
    """The architecture of this machine, by Debian's name."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


class Suite:
    """The packages of one suite, for one architecture and others beside it.

    :param cache: the folder of the lists and of the packages that were fetched
    """

    def __init__(self, name: str, architecture: str, beside: list[str], cache: Path) -> None:
        """Write the settings of apt for this suite alone."""
        self.folder = cache.resolve() / f"{name}-{'-'.join([architecture, *beside])}"
        self.archives = self.folder / "cache/archives"
        for folder in ("lists/partial", "cache/archives/partial"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        every = [architecture, *beside]
        key = "/usr/share/keyrings/debian-archive-keyring.gpg"
        source = f"deb [arch={','.join(every)} signed-by={key}] {mirror()} {name} main\n"
        (self.folder / "sources.list").write_text(source)
        settings = {
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "APT::Architecture": architecture,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
        }
        lines = [f'{name} "{value}";\n' for name, value in settings.items()]
        lines.append("APT::Architectures {" + "".join(f' "{name}";' for name in every) + " };\n")
        (self.folder / "apt.conf").write_text("".join(lines))

    def apt(self, *arguments: str) -> None:
        """Run apt-get on this suite alone.

        :raises Unavailable: with the end of what it wrote
        """
        environment = {**os.environ, "APT_CONFIG": str(self.folder / "apt.conf")}
        done = subprocess.run(
            ["apt-get", "--quiet", "--quiet", *arguments],
            env=environment, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise Unavailable(f"apt-get {' '.join(arguments)}:\n{done.stderr[-2000:]}")

    def fetch(self, packages: list[str]) -> list[Path]:
        """Fetch packages with all that they depend on, and nothing that was fetched for others."""
        for old in self.archives.glob("*.deb"):
            old.unlink()
        self.apt("update")
        self.apt("install", "--yes", "--download-only", *packages)
        return sorted(self.archives.glob("*.deb"))


def unpack(folder: Path, suite: str, packages: list[str], architecture: str | None = None) -> Root:
    """Unpack packages with all that they depend on, unless they are there.

    :param architecture: that of the programs; this machine's by default
    :raises Unavailable: if this is no Debian, or the suite does not have them
    """
    architecture = architecture or machine()
    root = Root(folder, architecture)
    wanted = "\n".join([suite, architecture, *packages])
    marker = folder / "unpacked"
    if marker.exists() and marker.read_text() == wanted:
        return root
    shutil.rmtree(folder, ignore_errors=True)
    others = {name.partition(":")[2] for name in packages} - {"", architecture}
    archives = Suite(suite, architecture, sorted(others), folder.parent / "apt").fetch(packages)
    folder.mkdir(parents=True)
    # Folders that are links into /usr since Debian 13.
    for name in ("bin", "sbin", "lib", "lib64"):
        (folder / "usr" / name).mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(f"usr/{name}")
    for archive in archives:
        contents = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE)
        command = ["tar", "--extract", "--keep-directory-symlink", f"--directory={folder}"]
        subprocess.run([*command, "--no-same-owner"], stdin=contents.stdout, check=True)
        if contents.wait():
            raise Unavailable(f"{archive.name} cannot be unpacked")
    marker.write_text(wanted)
    return root


def main() -> int:
    """Unpack what the command names."""
    if len(sys.argv) < 4:
        print(__doc__)
        return 2
    folder, suite, *packages = sys.argv[1:]
    try:
        unpack(Path(folder), suite, packages)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
