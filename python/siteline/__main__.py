"""``python -m siteline``: the command ``siteline``."""

import sys

from siteline.cli import main

if __name__ == "__main__":
    sys.exit(main())
