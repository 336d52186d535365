"""``python -m siteline.cli.completions``: writes the completion files, or compares them."""

from __future__ import annotations

import argparse
import sys

from siteline.cli.completions import FOLDER, scripts


def main() -> int:
    """Write the files, or say which are not as they should be."""
    reader = argparse.ArgumentParser(description="Makes the completion files of siteline.")
    reader.add_argument("--write", action="store_true", help="write them")
    is_writing = reader.parse_args().write
    stale = []
    for name, text in scripts().items():
        path = FOLDER / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if is_writing:
            path.write_text(text, encoding="utf-8", newline="\n")
    print(", ".join(stale) or "nothing", "written" if is_writing else "out of date")
    return 1 if stale and not is_writing else 0


if __name__ == "__main__":
    sys.exit(main())
