"""``python -m siteline.mcp STORE… [--allow-requests N]``."""

from __future__ import annotations

import argparse
import sys

from siteline.errors import SitelineError
from siteline.mcp import serve


def main() -> int:
    """Serves the stores of the command line."""
    text = "Serve local stores to language models by MCP, read-only."
    parser = argparse.ArgumentParser(prog="python -m siteline.mcp", description=text)
    parser.add_argument("stores", nargs="+", metavar="STORE", help="the file of a store")
    parser.add_argument(
        "--allow-requests",
        type=int,
        default=0,
        metavar="N",
        help="send at most N requests of the daily allowance, with the settings of Client()",
    )
    options = parser.parse_args()
    try:
        serve(options.stores, allow_requests=options.allow_requests)
    except (SitelineError, ImportError) as error:
        print(f"siteline.mcp: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
