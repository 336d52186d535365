"""The number of random examples of a test."""

import os


def examples(usual: int, long: int) -> int:
    """Returns the usual number, or the long one if SITELINE_LONG is set."""
    return long if os.environ.get("SITELINE_LONG") else usual
