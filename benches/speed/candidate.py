"""Run one candidate: ``python -m speed.candidate [--summary] MODULE:FUNCTION[:ARGUMENT]``.

Prints its figures; with ``--summary`` a summary of its result, for comparison.
"""

from __future__ import annotations

import importlib
import json
import sys

from speed.outcome import Outcome


def main() -> None:
    """Call the candidate, and print a line of JSON."""
    module, function, *arguments = sys.argv[-1].split(":")
    outcome = getattr(importlib.import_module(f"speed.{module}"), function)(*arguments)
    if "--summary" in sys.argv:
        from speed.summary import summarize

        print(json.dumps(summarize(outcome.product()) if isinstance(outcome, Outcome) else {}))
    else:
        print(json.dumps(outcome.figures if isinstance(outcome, Outcome) else outcome))


if __name__ == "__main__":
    main()
