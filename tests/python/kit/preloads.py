"""Compiles a library that ``LD_PRELOAD`` loads into a child process."""

import os
import subprocess
from pathlib import Path
from shutil import which

import pytest

KIT = Path(__file__).parent


def compiled(source: Path, folder: Path) -> Path:
    """Compiles a C file into a folder. Skips the test if there is no C compiler."""
    compiler, library = os.environ.get("CC", "cc"), folder / f"{source.stem}.so"
    if which(compiler) is None:
        pytest.skip("no C compiler on this machine")
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, timeout=120)
    return library
