"""Sets the addresses of a host name by a library that is preloaded into a child process."""

import os
import subprocess
from pathlib import Path

from kit.interpreter import run_script

KIT = Path(__file__).parent
SOURCE = KIT / "resolver.c"


def run_with_resolver(script: str, addresses: list[str], folder: Path) -> str:
    """Runs a script in which `customer.test` has these addresses; returns its output.

    The script can import `kit`. It can change the addresses in the file ``RESOLVER_FILE``, which
    contains one per line.
    """
    library, file = folder / "resolver.so", folder / "addresses"
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"],
        check=True,
        timeout=120,
    )
    file.write_text("\n".join([*addresses, ""]))
    environment = {
        "LD_PRELOAD": str(library),
        "RESOLVER_FILE": str(file),
        "PYTHONPATH": str(KIT.parent),
        "NO_PROXY": "*",
    }
    return run_script(script, environment=environment)
