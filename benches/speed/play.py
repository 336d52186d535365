"""One contestant, in this process: ``python -m speed.play [--told] MODULE:FUNCTION[:ARGUMENT]``.

It prints its figures; with ``--told`` what it made, for comparison.
"""

from __future__ import annotations

import importlib
import json
import sys

from speed.played import Played


def main() -> None:
    """Call it, and print."""
    module, function, *arguments = sys.argv[-1].split(":")
    outcome = getattr(importlib.import_module(f"speed.{module}"), function)(*arguments)
    if "--told" in sys.argv:
        from speed.alike import told

        print(json.dumps(told(outcome.product()) if isinstance(outcome, Played) else {}))
    else:
        print(json.dumps(outcome.figures if isinstance(outcome, Played) else outcome))


if __name__ == "__main__":
    main()
