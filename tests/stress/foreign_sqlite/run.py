"""Runs two writers and another SQLite, then checks the store."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import siteline

FEEDS = ("line-a", "line-b")


def _start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("worker.py")), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(folder: Path, syncs: int, looks: int) -> tuple[int, int]:
    """Runs the processes, compares the store with the acknowledged points, and counts both.

    Raises:
        AssertionError: The file is damaged, a sync is lost, or a process failed.
    """
    path, stop = folder / "plant.siteline", folder / "stop"
    siteline.Store(path, share="group-read").close()
    peeking = _start("peek", path, stop)
    writers = [_start("write", path, name, syncs, looks) for name in FEEDS]
    printed = [writer.communicate() for writer in writers]
    stop.touch()
    looked, told = peeking.communicate()
    assert peeking.returncode == 0, told
    done = 0
    for writer, (output, told) in zip(writers, printed, strict=True):
        assert writer.returncode == 0, f"{output[-500:]}\n{told}"
        *lines, last = [line.split() for line in output.splitlines()]
        counts = [int(line[2]) for line in lines]
        assert counts == sorted(counts), "points were lost"
        assert last[1] == last[2], "the store differs from the service"
        done += len(lines)
    _check(path, [int(output.splitlines()[-2].split()[2]) for output, _ in printed])
    return done, int(looked.split()[1])


def _check(path: Path, points: list[int]) -> None:
    with siteline.Store(path) as store:
        store.check()
        assert [len(store.read(name)) for name in FEEDS] == points
        store.backup(path.with_name("copy"))
    with closing(sqlite3.connect(path.with_name("copy"))) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
