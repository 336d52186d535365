"""The licences of the crates that are linked into the library, as each crate brings them.

``python .ci/licences.py make`` writes ``LICENSES-THIRD-PARTY.txt``, which every wheel contains, one
that ``pip install .`` builds too; ``check`` fails if the file is not that of ``Cargo.lock``.
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
# Folders of C sources in a crate that are other works with licences of their own.
UNLINKED = re.compile(r"/(tests?|examples?|benches|fuzz|docs?|third_party/googletest)/")
OTHER = re.compile(r"^licen[cs]e[-_.](apache|zlib|isc|boost|bsd)|^unlicense$", re.IGNORECASE)
LARGEST = 200_000
SYSTEMS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-musl",
           "aarch64-apple-darwin", "x86_64-pc-windows-msvc")  # fmt: skip

HEADING = """\
Licences of the software in siteline's compiled library

siteline itself is licensed under MIT or Apache-2.0: LICENSE-MIT, LICENSE-APACHE. Its library
contains the Rust crates listed here, with the C sources that some of them bring, and the Rust
standard library (MIT OR Apache-2.0, copyright The Rust Project Contributors). Of a crate that
leaves the choice and brings the MIT licence, that licence is taken. The texts are as the crates
bring them.
"""


def linked(root: Path) -> list[dict[str, Any]]:
    """The packages that are linked on a system of ``SYSTEMS``, sorted by name and version.

    Procedural macros, and what only builds or tests need, are not in the library.
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
    """What a command of cargo prints."""
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def texts(folder: Path) -> dict[str, str]:
    """The licence files of a crate, those of the C sources in it too: path -> text."""
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
    """The text of the file: the list of crates, then each text once with those that bring it.

    :raises ValueError: for a crate that names no licence
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
        without = "" if brought else "; brings no text, by " + (", ".join(crate["authors"]) or name)
        lines.append(f"- {name}: {crate['license'] or crate['license_file']}{without}")
    for text, names in bringing.items():
        lines += ["", "-" * 100, *names, "-" * 100, "", text]
    return "\n".join(lines) + "\n"


def outdated(root: Path) -> str:
    """What to do if the file in the repository is not that of ``Cargo.lock``; else empty."""
    path = root / FILE
    current = third_parties(root)
    if path.exists() and path.read_text(encoding="utf-8") == current:
        return ""
    return f"{FILE} is not that of Cargo.lock: run `python .ci/licences.py make`"


def main() -> int:
    """Write the file, or compare it."""
    if sys.argv[1:] == ["make"]:
        (ROOT / FILE).write_text(third_parties(ROOT), encoding="utf-8")
        return 0
    trouble = outdated(ROOT)
    print(trouble or f"{FILE} is that of Cargo.lock")
    return bool(trouble)


if __name__ == "__main__":
    sys.exit(main())
