"""Collects the licence texts of the crates that are linked into the library.

``python .ci/licences.py make`` writes ``LICENSES-THIRD-PARTY.txt``. Every wheel contains this file,
also a wheel that ``pip install .`` builds. ``check`` fails if the file does not fit ``Cargo.lock``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = "LICENSES-THIRD-PARTY.txt"
NAMED = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)([-_.].*)?$", re.IGNORECASE)
# Folders that are not linked into the library. They may contain other works with other licences.
UNLINKED = re.compile(r"/(tests?|examples?|benches|fuzz|docs?|third_party/googletest)/")
OTHER = re.compile(r"^licen[cs]e[-_.](apache|zlib|isc|boost|bsd)|^unlicense$", re.IGNORECASE)
LARGEST = 200_000
SYSTEMS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-musl",
           "aarch64-apple-darwin", "x86_64-pc-windows-msvc")  # fmt: skip

HEADING = """\
Licences of the software in siteline's compiled library

siteline itself is licensed under MIT or Apache-2.0: LICENSE-MIT, LICENSE-APACHE. Its library
contains the Rust crates listed here, with the C sources that some of them include, and the Rust
standard library (MIT OR Apache-2.0, copyright The Rust Project Contributors). If a crate offers a
choice of licences and includes the text of the MIT licence, siteline uses the MIT licence. The
texts are copied from the crates.
"""


def linked(root: Path) -> list[dict[str, Any]]:
    """Returns the packages that are linked on a system of ``SYSTEMS``, sorted by name and version.

    Procedural macros, build dependencies and test dependencies are not in the library.
    """
    systems = [option for system in SYSTEMS for option in ("--target", system)]
    tree = cargo(
        root, "tree", "--edges=normal,no-proc-macro", "--prefix=none", "--format={p}",
        *systems,
    )  # fmt: skip
    names = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    known = json.loads(cargo(root, "metadata", "--format-version=1"))
    found = [
        package
        for package in known["packages"]
        if (package["name"], f"v{package['version']}") in names and package["source"]
    ]
    return sorted(found, key=lambda one: (one["name"], one["version"]))


def cargo(root: Path, *arguments: str) -> str:
    """Returns the output of a cargo command."""
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def texts(folder: Path) -> dict[str, str]:
    """Returns the licence files of a crate and of its C sources: path -> text."""
    found = {}
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder).as_posix()
        if not NAMED.match(path.name) or UNLINKED.search(f"/{place}") or not path.is_file():
            continue
        if path.suffix in (".rs", ".c", ".h", ".py", ".go") or path.stat().st_size > LARGEST:
            continue
        found[place] = re.sub(
            r"[ \t]+$", "", path.read_text(encoding="utf-8", errors="replace"), flags=re.MULTILINE
        )
    if any("MIT" in place.upper() for place in found):
        found = {place: text for place, text in found.items() if not OTHER.search(place)}
    return {place: text.strip() for place, text in found.items()}


def third_parties(root: Path) -> str:
    """Returns the text of the file: the list of crates, then each licence text with its crates.

    Raises:
        ValueError: A crate names no licence.
    """
    crates = linked(root)
    bringing: dict[str, list[str]] = defaultdict(list)
    lines = [HEADING]
    for crate in crates:
        name = f"{crate['name']} {crate['version']}"
        if not (crate["license"] or crate["license_file"]):
            raise ValueError(f"{name} names no licence")
        brought = texts(Path(crate["manifest_path"]).parent)
        for place, text in brought.items():
            bringing[text].append(f"{name} ({place})")
        without = "" if brought else "; has no text, by " + (", ".join(crate["authors"]) or name)
        lines.append(f"- {name}: {crate['license'] or crate['license_file']}{without}")
    for text, names in bringing.items():
        lines += ["", "-" * 100, *names, "-" * 100, "", text]
    return "\n".join(lines) + "\n"


def outdated(root: Path) -> str:
    """Returns a message if the file does not fit ``Cargo.lock``; otherwise an empty text."""
    path = root / FILE
    current = third_parties(root)
    if path.exists() and path.read_text(encoding="utf-8") == current:
        return ""
    return f"{FILE} does not fit Cargo.lock: run `python .ci/licences.py make`"


def main() -> int:
    """Writes the file, or compares it with the current crates."""
    if sys.argv[1:] == ["make"]:
        (ROOT / FILE).write_text(third_parties(ROOT), encoding="utf-8")
        return 0
    trouble = outdated(ROOT)
    print(trouble or f"{FILE} fits Cargo.lock")
    return bool(trouble)


if __name__ == "__main__":
    sys.exit(main())
