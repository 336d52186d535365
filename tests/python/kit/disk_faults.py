"""Builds a library for ``LD_PRELOAD`` that makes file operations fail."""

import subprocess
from pathlib import Path

import pytest


def compiled(folder):
    """Compiles the library into a folder. Skips the test if there is no C compiler."""
    library = folder / "disk_faults.so"
    source = Path(__file__).with_suffix(".c")
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("no C compiler on this machine")
    return library
