"""One contestant, in this process: ``python -m speed.play MODULE:FUNCTION``."""

from __future__ import annotations

import importlib
import json
import sys


def main() -> None:
    """Call it, and print its figures."""
    module, function = sys.argv[1].split(":")
    contestant = getattr(importlib.import_module(f"speed.{module}"), function)
    print(json.dumps(contestant()))


if __name__ == "__main__":
    main()
