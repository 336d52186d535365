"""Builds the source distribution, and wheels from it.

``python .ci/wheels.py sdist`` writes ``target/dist/siteline-VERSION.tar.gz``. ``wheel [TARGET...]``
unpacks it and builds a wheel for each Rust target, by default for this machine. On Linux zig is the
linker, so that a wheel runs with glibc 2.17 (manylinux2014) or musl 1.2.

The library contains no path of this machine. Every file has the time of the last commit. libdeflate
compresses the wheels.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from unittest import mock

import licences

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "target" / "dist"
BIN = Path(sys.executable).parent
FILES = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "CHANGELOG.md", "SECURITY.md",
         "LICENSE", "LICENSE-MIT", "LICENSE-APACHE", licences.FILE)  # fmt: skip
TREES = (".cargo", "src", "crates", "python")
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")
OPTIONAL = "[project.optional-dependencies]"


def version() -> str:
    """Returns the version in Cargo.toml, which is also the version of the Python package."""
    found = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    if not found:
        sys.exit("Cargo.toml has no version")
    return found[1]


def for_an_index_page(readme: str, repository: str) -> str:
    """Returns the README with absolute links. Without a repository, a link becomes its text."""

    def replace(link: re.Match[str]) -> str:
        picture, text, target = link.groups()
        if not repository:
            return "" if picture else text
        kind = "raw" if picture else "blob"
        return f"{picture}[{text}]({repository}/{kind}/v{version()}/{target})"

    return LINK.sub(replace, readme)


def with_addresses(pyproject: str, repository: str) -> str:
    """Returns pyproject.toml with the addresses of the repository and its issues."""
    if not repository:
        return pyproject
    urls = f'Repository = "{repository}"\nIssues = "{repository}/issues"\n'
    urls += f'Changelog = "{repository}/blob/v{version()}/CHANGELOG.md"\n'
    if pyproject.count(OPTIONAL) != 1:
        raise ValueError(f"pyproject.toml must contain {OPTIONAL} once")
    return pyproject.replace(OPTIONAL, f"[project.urls]\n{urls}\n{OPTIONAL}")


def stage(folder: Path, repository: str) -> None:
    """Writes the files of the source distribution into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in FILES:
        shutil.copyfile(ROOT / name, folder / name)
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.py[co]", "target")
    for name in filter(lambda name: (ROOT / name).exists(), TREES):
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    readme, pyproject = folder / "README.md", folder / "pyproject.toml"
    readme.write_text(for_an_index_page(readme.read_text(), repository))
    pyproject.write_text(with_addresses(pyproject.read_text(), repository))


def run(command: list[str | Path], folder: Path, **variables: str) -> None:
    """Runs a command. Ends this program if it fails."""
    if subprocess.run(command, cwd=folder, env={**os.environ, **variables}).returncode:
        sys.exit(f"{Path(command[0]).name} {command[1]} failed")


def output_of(*command: str) -> str:
    """Returns the output of a command."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_sdist(repository: str) -> None:
    """Writes the source distribution."""
    staged = ROOT / "target" / "sdist"
    stage(staged, repository.rstrip("/"))
    time = os.environ.get("SOURCE_DATE_EPOCH") or output_of("git", "log", "-1", "--format=%ct")
    run([BIN / "maturin", "sdist", "--out", DIST], staged, SOURCE_DATE_EPOCH=time)


def without_paths(folder: Path, build: Path, target: str) -> dict[str, str]:
    """Returns variables for the compilers that keep this machine's paths out of the library."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    # The last match wins.
    places = {build: "build", folder: "siteline", home: "cargo"}
    places[Path(output_of("rustc", "--print", "sysroot"))] = "rust"
    places |= dict.fromkeys((home / "registry/src").glob("*"), "crates")
    flags = [f"--remap-path-prefix={path}=/{name}" for path, name in places.items()]
    if target.endswith("musl"):
        # The library uses the musl of the interpreter, so it must not be linked statically.
        flags.append("-Ctarget-feature=-crt-static")
    variables = {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags)}
    if not target.endswith("msvc"):
        maps = [f"-ffile-prefix-map={path}=/{name}" for path, name in places.items()]
        variables["CFLAGS"] = " ".join([*maps, "-g0"])
    return variables


class Compressor:
    """Compresses a file of an archive with libdeflate, which takes complete files only."""

    def __init__(self, *_: int | None) -> None:
        """Accepts zipfile's method and level, which have no effect."""
        self._parts: list[bytes] = []

    def compress(self, part: bytes) -> bytes:
        """Keeps a part of the file."""
        self._parts.append(part)
        return b""

    def flush(self) -> bytes:
        """Returns the compressed file."""
        import deflate

        return bytes(deflate.deflate_compress(b"".join(self._parts), 12))


def compress(wheel: Path, folder: Path) -> None:
    """Writes a wheel into a folder, 5 % smaller than zlib can make it."""
    with (
        zipfile.ZipFile(wheel) as old,
        zipfile.ZipFile(folder / wheel.name, "w") as new,
        mock.patch("zipfile._get_compressor", Compressor),
    ):
        for entry in old.infolist():
            new.writestr(entry, old.read(entry))


def make_wheel(sdist: Path, target: str) -> None:
    """Builds a wheel for a target from the source distribution."""
    build = ROOT / "target" / "wheel-build"
    for name in ("source", "wheels"):
        shutil.rmtree(build / name, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        time = archive.getmembers()[0].mtime
        archive.extractall(build / "source", filter="data")
    (folder,) = (build / "source").iterdir()
    # The folder of the crates must exist before the first crate is compiled.
    run(["cargo", "fetch", "--quiet", "--locked"], folder)
    command: list[str | Path] = [
        BIN / "maturin", "build", "--release", "--locked", "--quiet", "--target", target,
        "--interpreter", sys.executable, "--out", build / "wheels",
    ]  # fmt: skip
    if "-linux-" in target:
        libc = "musllinux_1_2" if target.endswith("musl") else "manylinux2014"
        command += ["--zig", "--compatibility", libc]
    run(
        command,
        folder,
        CARGO_TARGET_DIR=str(build / "target"),
        CARGO_INCREMENTAL="0",
        SOURCE_DATE_EPOCH=str(int(time)),
        PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}",
        **without_paths(folder, build, target),
    )
    (wheel,) = (build / "wheels").iterdir()
    compress(wheel, DIST)


def main() -> None:
    """Builds the source distribution or the wheels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["sdist", "wheel"])
    parser.add_argument("targets", nargs="*", help="Rust targets")
    parser.add_argument("--repository", default="", help="the address of the repository's page")
    options = parser.parse_args()
    DIST.mkdir(parents=True, exist_ok=True)
    sdist = DIST / f"siteline-{version()}.tar.gz"
    if options.what == "sdist" or not sdist.exists():
        make_sdist(options.repository)
    if options.what == "wheel":
        own = re.search("^host: (.+)$", output_of("rustc", "-vV"), re.MULTILINE)
        for target in options.targets or [own[1] if own else ""]:
            make_wheel(sdist, target)
    for made in sorted(DIST.iterdir()):
        print(f"{made.name}: {made.stat().st_size / 1e6:.2f} MB", flush=True)


if __name__ == "__main__":
    main()
