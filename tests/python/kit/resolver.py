"""Sets the addresses of a host name by a library that is preloaded into a child process."""

from pathlib import Path

from kit.interpreter import run_script
from kit.preloads import KIT, compiled


def run_with_resolver(script: str, addresses: list[str], folder: Path) -> str:
    """Runs a script in which `customer.test` has these addresses; returns its output.

    The script can import `kit`. It can change the addresses in the file ``RESOLVER_FILE``, which
    contains one per line.
    """
    file = folder / "addresses"
    file.write_text("\n".join([*addresses, ""]))
    environment = {
        "LD_PRELOAD": str(compiled(KIT / "resolver.c", folder)),
        "RESOLVER_FILE": str(file),
        "PYTHONPATH": str(KIT.parent),
        "NO_PROXY": "*",
    }
    return run_script(script, environment=environment)
