"""A loss of power: every state that a disk may be in when writes that no sync followed are lost.

A write is durable after a sync of its file, and a name after a sync of its folder. Each other write
may be lost. The last names are lost first, because filesystems keep their order.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

PAGE = 4096


@dataclass(frozen=True)
class Call:
    name: str
    """``make``, ``write``, ``cut``, ``sync``, ``unlink``, ``rename``, ``link`` or ``said``."""
    inode: int = 0
    at: int = 0
    """The offset of a write, or the length after a cut."""
    data: bytes = b""
    paths: tuple[str, ...] = ()


def calls(log: Path) -> list[Call]:
    found, text, at = [], log.read_bytes(), 0
    while at < len(text):
        end = text.index(b"\n", at)
        line, at = text[at:end].decode(), end + 1
        if "\t" in line:
            name, *rest = line.split("\t")
            inode = int(rest.pop(0)) if name == "make" else 0
            found.append(Call(name, inode, paths=tuple(rest)))
            continue
        name, *numbers = line.split()
        match name, [int(number) for number in numbers]:
            case "write", [inode, offset, length]:
                found.append(Call(name, inode, offset, text[at : at + length]))
                at += length
            case "said", [length]:
                found.append(Call(name, data=text[at : at + length]))
                at += length
            case "cut", [inode, length]:
                found.append(Call(name, inode, length))
            case "sync", [inode]:
                found.append(Call(name, inode))
            case other:
                raise ValueError(f"not a record: {other}")
    return found


def changed(content: bytes, call: Call) -> bytes:
    if call.name == "cut":
        return content[: call.at].ljust(call.at, b"\0")
    before = content[: call.at].ljust(call.at, b"\0")
    return before + call.data + content[call.at + len(call.data) :]


@dataclass
class Disk:
    """The durable contents, and the pending changes."""

    folder: int
    """The inode of the folder, which the states are put into under another."""
    files: dict[int, int] = field(default_factory=dict)
    """The file of each inode. The inode of one that was removed may be given to another."""
    names: dict[str, int] = field(default_factory=dict)
    """The durable names below the folder: path to file."""
    contents: dict[int, bytes] = field(default_factory=dict)
    """The durable contents."""
    pending_names: list[Call] = field(default_factory=list)
    pending: list[Call] = field(default_factory=list)
    """Writes and cuts, in their order."""

    @classmethod
    def of(cls, folder: Path) -> Disk:
        disk = cls(folder.stat().st_ino)
        for path in folder.rglob("*"):
            if path.is_file():
                file = disk.files[path.stat().st_ino] = len(disk.contents)
                disk.names[str(path)] = file
                disk.contents[file] = path.read_bytes()
        return disk

    def play(self, call: Call) -> None:
        if call.name == "make":
            self.files[call.inode] = len(self.contents)
            self.contents[len(self.contents)] = b""
        if call.name == "sync" and call.inode == self.folder:
            for change in self.pending_names:
                rename(self.names, change)
            self.pending_names = []
            return
        call = replace(call, inode=self.files.get(call.inode, 0))
        if call.name in {"write", "cut"}:
            self.pending.append(call)
        elif call.name in {"make", "unlink", "rename", "link"}:
            self.pending_names.append(call)
        elif call.name == "sync":
            for change in self.pending:
                if change.inode == call.inode:
                    self.contents[call.inode] = changed(self.contents[call.inode], change)
            self.pending = [change for change in self.pending if change.inode != call.inode]

    def state(self, names: int, writes: list[Call]) -> dict[str, bytes]:
        """Returns the files if the first pending names, and these pending writes, survive."""
        paths, contents = dict(self.names), dict(self.contents)
        for call in self.pending_names[:names]:
            rename(paths, call)
        for call in writes:
            contents[call.inode] = changed(contents[call.inode], call)
        return {path: contents[file] for path, file in paths.items()}

    def states(self, chance: random.Random, samples: int) -> Iterator[dict[str, bytes]]:
        """The files if everything that may be lost is lost, nothing, only writes, or only names.

        Then random parts, the last write cut at a page boundary.
        """
        every = len(self.pending_names)
        yield self.state(0, [])
        yield self.state(every, self.pending)
        yield self.state(every, [])
        yield self.state(0, self.pending)
        for _ in range(samples):
            kept = [call for call in self.pending if chance.random() < 0.5]
            if kept and kept[-1].name == "write":
                pages = chance.randrange(len(kept[-1].data) // PAGE + 1)
                kept[-1] = replace(kept[-1], data=kept[-1].data[: pages * PAGE])
            yield self.state(chance.randrange(every + 1), kept)


def rename(names: dict[str, int], call: Call) -> None:
    match call.name, call.paths:
        case "make", (path,):
            names[path] = call.inode
        case "unlink", (path,):
            names.pop(path, None)
        case "rename", (old, new):
            if old in names:
                names[new] = names.pop(old)
        case "link", (old, new):
            if old in names:
                names[new] = names[old]


def put(folder: Path, files: dict[str, bytes]) -> None:
    """Fill a folder with these files and no others. Shared memory does not outlive the power."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path, content in files.items():
        if not path.endswith("-shm"):
            Path(path).write_bytes(content)
            Path(path).chmod(0o600)
