"""Runs one candidate: ``python -m speed.candidate [--summary] MODULE:FUNCTION[:ARGUMENT...]``.

Prints its figures; with ``--summary`` also a summary of its result, for comparison.
"""

from __future__ import annotations

import json
import sys
from pkgutil import resolve_name

from speed.outcome import Outcome

if __name__ == "__main__":
    module, function, *arguments = sys.argv[-1].split(":")
    outcome = resolve_name(f"speed.{module}:{function}")(*arguments)
    figures, product = outcome if isinstance(outcome, Outcome) else (outcome, dict)
    summary = {}
    if "--summary" in sys.argv:
        from speed.summary import summarize

        summary = summarize(product())
    print(json.dumps([figures, summary]))
