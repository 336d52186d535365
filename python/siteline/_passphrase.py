"""``password_command``: runs the command that prints a passphrase."""

from __future__ import annotations

import subprocess


def run(words: list[str], limit: int) -> tuple[str | None, bytes, str]:
    """Run a command: what failed, the first line that it printed, and its messages.

    What failed is returned, not raised: an exception would keep what the command printed in its
    traceback or its context.
    """
    try:
        ended = subprocess.run(
            words,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {limit} seconds", b"", ""
    except OSError as error:
        why = f": {error.strerror}" if error.strerror else ""
        return f"could not be started{why}", b"", ""
    line = ended.stdout.partition(b"\n")[0].removesuffix(b"\r")
    if line and not ended.returncode:
        return None, line, ""
    said = ended.stderr.decode(errors="replace").strip()
    if line:
        said = said.replace(line.decode(errors="replace"), "[removed]")
    status = ended.returncode
    return f"ended with status {status}" if status else "printed nothing", b"", said
