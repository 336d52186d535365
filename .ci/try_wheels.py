"""Check what ``make wheels`` made, and run it.

Checked: the tags (auditwheel, abi3audit), the metadata (twine), the contents (check-wheel-contents;
the licences; no folder of this machine; no relative link in the description), the size, and that
the source distribution has no benches and no data of tests. Then the README's first block is taken
from the wheel's own description and run on each version of Python, and on the other processor under
qemu.

``--own`` only runs it on the interpreter that runs this program, with the wheel for it.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import debian
import interpreters
import source

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
# Under qemu.
ELSEWHERE, ELSEWHERE_VERSION, ELSEWHERE_SUITE = "aarch64", "3.13", "trixie"
LARGEST = 8_000_000
MANYLINUX = "manylinux_2_17"
BIN = Path(sys.executable).parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# A source file in the folder of a person, a checkout or a registry of crates, on any machine.
# Folders of this machine are looked for by their names.
SOURCE = re.compile(
    rb"/(?:root|home|Users|work|__w|tmp|mnt|private)/[\w./+@-]+?\.(?:rs|c|cc|cpp|h|S)\b"
    rb"|[A-Za-z]:[\\/][\w\\/ .+@-]+?\.(?:rs|c|cc|cpp|h|asm)\b"
    rb"|/(?:\.cargo|registry/src|\.rustup)/[\w./+@-]*"
)
RELATIVE = re.compile(r"\]\((?!https?://|#)[^)]*\)")


def description(wheel: Path) -> str:
    """The metadata of a wheel, with the README after it."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def builders_folders() -> list[bytes]:
    """The folders of this machine that no artefact may name."""
    home = Path.home()
    places = [source.ROOT, home, os.environ.get("CARGO_HOME", home / ".cargo")]
    return [f"{place}/".encode() for place in places]


def contents_of(wheel: Path) -> list[str]:
    """What is wrong with the contents of a wheel."""
    wrong = []
    with zipfile.ZipFile(wheel) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    for name, data in entries.items():
        found = [place.decode() for place in builders_folders() if place in data]
        if not found and name.endswith((".so", ".pyd", ".dylib")):
            found = sorted({one.decode() for one in SOURCE.findall(data)})
        # One message is enough: a checkout in the home folder has both in its path.
        wrong += [f"{name} names {place}" for place in found[:1]]
    names = [name.rpartition("/")[2] for name in entries if ".dist-info/licenses/" in name]
    for licence in ("LICENSE-MIT", "LICENSE-APACHE", source.THIRD_PARTIES):
        if licence not in names:
            wrong.append(f"{licence} is missing")
    if not any(".dist-info/sboms/" in name for name in entries):
        wrong.append("the bill of materials is missing")
    if (size := wheel.stat().st_size) > LARGEST:
        wrong.append(f"{size / 1e6:.1f} MB are more than {LARGEST / 1e6:.0f}")
    wrong += [f"a relative link: {link}" for link in RELATIVE.findall(description(wheel))]
    return wrong


def tools_on(wheel: Path) -> list[str]:
    """What the tools say is wrong with a wheel."""
    tools: dict[str, tuple[str, ...]] = {"abi3audit": ("--strict",), "check-wheel-contents": ()}
    said = [tool(name, *options, str(wheel))[0] for name, options in tools.items()]
    wrong = [trouble for trouble in said if trouble]
    if "linux" in wheel.name and "musl" not in wheel.name:
        trouble, shown = tool("auditwheel", "show", str(wheel))
        flat = " ".join(shown.split())
        if trouble or f'following platform tag: "{MANYLINUX}_' not in flat:
            wrong.append(trouble or f"auditwheel: not {MANYLINUX}: {flat}")
    return wrong


def tool(name: str, *arguments: str) -> tuple[str, str]:
    """Run a tool: what is wrong, empty if nothing is, and what it printed."""
    done = subprocess.run([BIN / name, *arguments], capture_output=True, text=True)
    said = done.stdout + done.stderr
    return (f"{name}: {said.strip()}" if done.returncode else "", said)


def sdist_contents(sdist: Path) -> list[str]:
    """What is wrong with the contents of the source distribution."""
    with tarfile.open(sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    known = {*source.FILES, *source.TREES, source.THIRD_PARTIES, "PKG-INFO"}
    return [f"{name} does not belong there" for name in sorted(tops - known)]


def first_block(wheel: Path) -> str:
    """The first block of Python in the description of a wheel."""
    block = BLOCK.search(description(wheel))
    if not block:
        raise ValueError(f"{wheel.name} has no block of Python in its description")
    return block[1]


def try_on(interpreter: interpreters.Interpreter, wheel: Path) -> None:
    """Install a wheel with pandas, and run the first block of its description."""
    interpreter.install(f"siteline[pandas] @ {wheel.resolve().as_uri()}")
    with tempfile.TemporaryDirectory() as folder:
        printed = interpreter.run("-c", first_block(wheel), folder=Path(folder))
    if "[5 rows x 10 columns]" not in printed or "<Allowance 6 used" not in printed:
        raise ValueError(f"{interpreter.name} printed {printed!r}")
    print(f"{interpreter.name}: imports {wheel.name}, runs the README's first block", flush=True)


def check(wheels: list[Path], sdists: list[Path]) -> list[str]:
    """Everything that is wrong with the artefacts themselves."""
    wrong = []
    for sdist in sdists:
        wrong += [f"{sdist.name}: {trouble}" for trouble in sdist_contents(sdist)]
    for wheel in wheels:
        trouble = [*contents_of(wheel), *tools_on(wheel)]
        wrong += [f"{wheel.name}: {one}" for one in trouble]
        size = wheel.stat().st_size / 1e6
        print(f"{wheel.name}: {size:.2f} MB, {'refused' if trouble else 'clean'}", flush=True)
    refused, _ = tool("twine", "check", "--strict", *map(str, [*wheels, *sdists]))
    return [*wrong, refused] if refused else wrong


def of_processor(wheels: list[Path], processor: str) -> Path:
    """The one wheel for glibc on a processor that needs no free-threaded Python.

    :raises ValueError: if there is none, or more than one
    """
    found = [w for w in wheels if f"-abi3-manylinux2014_{processor}" in w.name]
    if len(found) != 1:
        raise ValueError(f"{len(found)} wheels for {processor} in place of one: make wheels")
    return found[0]


def run_everywhere(wheels: list[Path]) -> list[str]:
    """Run this processor's wheel on each version of Python, the other one under qemu."""
    tries = [(version, platform.machine()) for version in VERSIONS]
    if platform.machine() != ELSEWHERE:
        tries.append((ELSEWHERE_VERSION, ELSEWHERE))
    wrong = []
    for version, processor in tries:
        try:
            wheel = of_processor(wheels, processor)
            if processor == platform.machine():
                interpreter = interpreters.find(version)
            else:
                architecture = debian.ARCHITECTURES[processor]
                interpreter = interpreters.unpacked(version, ELSEWHERE_SUITE, architecture)
            try_on(interpreter, wheel)
        except (debian.Unavailable, subprocess.CalledProcessError, ValueError) as error:
            wrong.append(f"CPython {version} on {processor}: {error}")
    return wrong


def run_here(wheels: list[Path]) -> None:
    """Run the wheel that pip chooses for the interpreter that runs this program."""
    with tempfile.TemporaryDirectory() as folder:
        offered = Path(folder)
        for wheel in wheels:
            shutil.copy(wheel, offered)
        chosen = offered / "chosen"
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-index",
             "--only-binary=:all:", "--find-links", offered, "--dest", chosen, "siteline"],
            check=True,
        )  # fmt: skip
        (wheel,) = chosen.iterdir()
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        try_on(interpreters.of_this_machine(sys.executable, version), wheel)


def main() -> int:
    """Check and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dist", type=Path, default=interpreters.TARGET / "dist")
    parser.add_argument("--own", action="store_true")
    options = parser.parse_args()
    wheels = sorted(options.dist.glob(f"siteline-{source.version()}-*.whl"))
    if not wheels:
        sys.exit(f"{options.dist} has no wheel: make wheels")
    if options.own:
        run_here(wheels)
        return 0
    wrong = check(wheels, sorted(options.dist.glob("*.tar.gz")))
    wrong += run_everywhere(wheels)
    for trouble in wrong:
        print(trouble, file=sys.stderr)
    print(f"{len(wheels)} wheels, {len(wrong)} found wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
