"""What a wheel says of its parts, without the folders of the machine that built it.

maturin writes a bill of materials (CycloneDX) whose references name the folder of the sources. Here
it is rewritten, and with it the wheel: entries in order, one time for all, the same permissions.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any

FOLDER = re.compile(r"path\+file://[^#]*")


def without_folders(bill: bytes, time: str) -> bytes:
    """A bill whose references to sources on disk name no folder, made at a given time.

    :param time: as ``2026-11-24T12:00:00Z``
    """

    def rewritten(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: rewritten(value) for name, value in part.items()}
        if isinstance(part, list):
            return [rewritten(value) for value in part]
        return FOLDER.sub("path+file:///siteline", part) if isinstance(part, str) else part

    whole = rewritten(json.loads(bill))
    # Of one build alone, as the time is.
    whole.pop("serialNumber", None)
    whole["metadata"]["timestamp"] = time
    return (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode()


def digest(data: bytes) -> str:
    """The hash of an entry as RECORD has it."""
    code = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={code.decode()}"


def rewrite(wheel: Path, moment: tuple[int, int, int, int, int, int]) -> None:
    """Rewrite a wheel with bills that name no folder.

    :param moment: the time of all entries: year, month, day, hour, minute, second, in UTC
    """
    with zipfile.ZipFile(wheel) as archive:
        entries = {name: archive.read(name) for name in archive.namelist() if name[-1] != "/"}
    year, month, day, hour, minute, second = moment
    time = f"{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
    record = next(name for name in entries if name.endswith(".dist-info/RECORD"))
    for name in entries:
        if ".dist-info/sboms/" in name:
            entries[name] = without_folders(entries[name], time)
    others = sorted(entries.keys() - {record})
    lines = [f"{name},{digest(entries[name])},{len(entries[name])}" for name in others]
    entries[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    temporary = wheel.with_suffix(".tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        # RECORD comes last, as installers expect.
        for name in [*others, record]:
            entry = zipfile.ZipInfo(name, moment)
            mode = 0o755 if name.endswith((".so", ".pyd")) else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, entries[name])
    temporary.replace(wheel)


def differences(one: Path, other: Path) -> list[str]:
    """The entries in which two wheels differ; the file itself if only its form does."""
    if one.read_bytes() == other.read_bytes():
        return []
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(other) as second:
        names = sorted({*first.namelist(), *second.namelist()})
        both = set(first.namelist()) & set(second.namelist())
        differing = [n for n in names if n not in both or first.read(n) != second.read(n)]
    return differing or [one.name]
