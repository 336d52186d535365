"""Checks that each step of .github/workflows runs one target of the Makefile.

Therefore everything that a workflow does can run on any machine.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Exceptions: a new runner has no toolchain, and only the hosting service has a release page.
OTHER = ("rustup toolchain install ", "gh release create ")


def main() -> int:
    """Prints the steps that do not run a target."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = "|".join(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    step = re.compile(rf'make ({targets})( [A-Z_]+=("[^"`]*"|[\w./-]+))*')
    wrong = 0
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = re.match(r" *- run: *(.*)", line)
            if found and not step.fullmatch(found[1]) and not found[1].startswith(OTHER):
                print(f"{path.name}:{number}: not one target of the Makefile: {found[1]}")
                wrong += 1
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
