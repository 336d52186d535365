"""Writes the shell completions into the package, for the wheel and the source distribution.

The parser is imported from the source tree. A substitute replaces the compiled module, so this
needs no build, only shtab.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1] / "python"


class _Core(types.ModuleType):
    """Has a class for each name."""

    def __getattr__(self, name: str) -> object:
        if name == "__version__":
            return ""
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {})


def main() -> None:
    """Writes one file for each shell."""
    sys.path.insert(0, str(PYTHON))
    # The name of the compiled module: `siteline._core` or `siteline._core`.
    for name in ("siteline._core", "siteline._core"):
        sys.modules[name] = _Core(name)
    from siteline.cli import completion

    folder = Path(completion.FOLDER)
    folder.mkdir(exist_ok=True)
    for shell in completion.SHELLS:
        (folder / shell).write_text(completion.generate(shell), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
