"""Make the source distribution, and wheels from it.

``python .ci/wheels.py sdist`` writes ``target/dist/siteline-VERSION.tar.gz``; ``wheel [TARGET]``
unpacks the one that is there and builds a wheel for a target of Rust, by default this machine's;
``again [TARGET]`` builds that once more in another folder, and compares the bytes. For Linux zig is
the linker, so that a wheel runs with glibc 2.17 (manylinux2014) or musl 1.2. Where this machine's
Rust has no standard library of the target and its packages are Debian's, the compiler comes from
there.

No folder of this machine is in what is made, and all times are that of the commit of the source
distribution: the same commit and tools give the same bytes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import bill
import debian
import source

ROOT = source.ROOT
TARGET = ROOT / "target"
BIN = Path(sys.executable).parent
DEBIAN_SUITE = "trixie"


def run(command: list[str | Path], folder: Path, **variables: str) -> None:
    """Run a command, and end here if it fails."""
    done = subprocess.run(command, cwd=folder, env={**os.environ, **variables})
    if done.returncode:
        sys.exit(f"{Path(command[0]).name} {command[1]} failed")


def make_sdist(dist: Path, repository: str) -> Path:
    """Write the source distribution, and give its path."""
    staged = TARGET / "sdist"
    source.stage(staged, repository)
    command: list[str | Path] = [BIN / "maturin", "sdist", "--out", dist]
    run(command, staged, SOURCE_DATE_EPOCH=source.committed_at())
    made = dist / f"siteline-{source.version()}.tar.gz"
    print(f"{made.name}: {made.stat().st_size / 1e6:.2f} MB", flush=True)
    return made


def unpacked(sdist: Path, build: Path) -> Path:
    """The sources in a source distribution, unpacked anew in a folder."""
    shutil.rmtree(build / "source", ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(build / "source", filter="data")
    (folder,) = (build / "source").iterdir()
    return folder


def made_at(sdist: Path) -> int:
    """The time of the files in a source distribution: that of its commit, in seconds since 1970."""
    with tarfile.open(sdist) as archive:
        # Where the times of a zip begin: 1980.
        return max(int(archive.getmembers()[0].mtime), 315619200)


def own_target() -> str:
    """This machine's target of Rust."""
    done = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True)
    return next(line[6:] for line in done.stdout.splitlines() if line.startswith("host: "))


def sysroot(rustc: str) -> Path:
    """Where a compiler has its standard libraries."""
    command = [rustc, "--print", "sysroot"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def compiler(target: str) -> str:
    """A compiler that has the standard library of a target.

    Ends with what to do if there is none.
    """
    rustc = os.environ.get("RUSTC", "rustc")
    if (sysroot(rustc) / "lib/rustlib" / target / "lib").is_dir():
        return rustc
    architecture = debian.ARCHITECTURES.get(target.partition("-")[0])
    if architecture and target.endswith("-linux-gnu"):
        packages = ["rustc-web", f"libstd-rust-web-dev:{architecture}"]
        try:
            root = debian.unpack(TARGET / "debian/rust", DEBIAN_SUITE, packages)
            return str(root.wrapper("usr/bin/rustc", "--sysroot", str(root.path / "usr")))
        except debian.Unavailable as error:
            print(error, file=sys.stderr)
    sys.exit(f"This machine's Rust cannot build for {target}: rustup target add {target}")


def remapped(folder: Path, build: Path, rustc: str, target: str) -> dict[str, str]:
    """Variables that keep the folders of this machine out of the library."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    registry = home / "registry/src"
    # Of several that fit the last wins: the crates of a registry, without its name.
    places = {str(build): "build", str(folder): "siteline"}
    places |= {str(home): "cargo", str(sysroot(rustc)): "rust"}
    places |= {str(index): "crates" for index in registry.glob("*")}
    flags = [f"--remap-path-prefix={path}=/{name}" for path, name in places.items()]
    if target.endswith("musl"):
        # A library that an interpreter loads shares that interpreter's musl.
        flags.append("-Ctarget-feature=-crt-static")
    variables = {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags)}
    if not target.endswith("msvc"):
        maps = [f"-ffile-prefix-map={path}=/{name}" for path, name in places.items()]
        variables["CFLAGS"] = " ".join([*maps, "-g0"])
    return variables


def make_wheel(sdist: Path, target: str, dist: Path, build: Path) -> Path:
    """Build a wheel for a target from the source distribution, and give its path.

    :param build: the folder for the sources and for what is compiled, which is kept
    """
    folder, rustc = unpacked(sdist, build), compiler(target)
    # Their folder must be known before the first is compiled.
    run(["cargo", "fetch", "--quiet", "--locked"], folder)
    command: list[str | Path] = [
        BIN / "maturin", "build", "--release", "--locked", "--quiet", "--target", target,
        "--interpreter", sys.executable, "--out", folder / "dist",
    ]  # fmt: skip
    if "-linux-" in target:
        libc = "musllinux_1_2" if target.endswith("musl") else "manylinux2014"
        command += ["--zig", "--compatibility", libc]
    time_of_all = made_at(sdist)
    variables = {
        "RUSTC": rustc,
        "CARGO_TARGET_DIR": str(build / "target"),
        "CARGO_INCREMENTAL": "0",
        "SOURCE_DATE_EPOCH": str(time_of_all),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        **remapped(folder, build, rustc, target),
    }
    run(command, folder, **variables)
    (built,) = (folder / "dist").glob("*.whl")
    bill.rewrite(built, time.gmtime(time_of_all)[:6])
    made = Path(shutil.move(built, dist / built.name))
    print(f"{made.name}: {made.stat().st_size / 1e6:.2f} MB", flush=True)
    return made


def make_again(sdist: Path, target: str, dist: Path) -> None:
    """Build a wheel in another folder, from nothing, and compare it with the one in ``dist``."""
    with tempfile.TemporaryDirectory(prefix="again-") as elsewhere:
        place = Path(elsewhere).resolve()
        again = make_wheel(sdist, target, place, place / "another-folder")
        before = dist / again.name
        if not before.exists():
            sys.exit(f"{before} is missing: make wheel")
        if differing := bill.differences(before, again):
            sys.exit(f"two builds of {again.name} differ: {', '.join(differing)}")
        print(f"{again.name}: the same bytes from another folder", flush=True)


def main() -> int:
    """Make what the command names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["sdist", "wheel", "again"])
    parser.add_argument("target", nargs="?", help="a target of Rust, by default this machine's")
    parser.add_argument("--dist", type=Path, default=TARGET / "dist")
    parser.add_argument("--repository", default="", help="the address of the repository's page")
    options = parser.parse_args()
    dist = options.dist.resolve()
    dist.mkdir(parents=True, exist_ok=True)
    if options.what == "sdist":
        make_sdist(dist, options.repository)
        return 0
    sdist = dist / f"siteline-{source.version()}.tar.gz"
    if not sdist.exists():
        make_sdist(dist, options.repository)
    target = options.target or own_target()
    if options.what == "again":
        make_again(sdist, target, dist)
    else:
        make_wheel(sdist, target, dist, TARGET / "wheel-build")
    return 0


if __name__ == "__main__":
    sys.exit(main())
