"""All scenarios: function, variants, number of runs, time limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torture import processes, waits
from torture.harness import Harness

PACKAGES = ("siteline", "obstore", "primp")
LOOPS = ("asyncio", "uvloop")
STARTS = ("fork", "spawn", "forkserver")
ENDS = ("daemon", "daemon_await", "busy", "busy_await")
Variant = tuple[str | int, ...]


@dataclass(frozen=True)
class Scenario:
    """One row of the table."""

    name: str
    function: Callable[..., float | None]
    """Called with the harness and a variant; returns the reaction time in ms, or raises a Fault."""
    variants: tuple[Variant, ...]
    """Run one after the other, each equally often."""
    runs: int
    limit: float = 60
    """The longest time to react, in seconds."""
    rows: tuple[str, ...] = ()
    peer_timeout: float = 5
    """The timeout for another package, in seconds: much longer than a run takes."""
    packages: tuple[str, ...] = PACKAGES
    """The packages that have the feature."""

    def run(self, harness: Harness, number: int) -> float | None:
        """Run it once."""
        return self.function(harness, *self.variants[number % len(self.variants)])


def _ctrl_c(where: str, name: str, packages: tuple[str, ...] = PACKAGES) -> Scenario:
    row = ("R2",) if where == "notebook" else ("R1",)
    variants: tuple[Variant, ...] = ((where,),)
    return Scenario(f"Ctrl-C {name}", waits.interrupt, variants, 25, 0.2, row, packages=packages)


def _exit(name: str, hows: tuple[str, ...], packages: tuple[str, ...] = PACKAGES) -> Scenario:
    runs = 50 if packages == PACKAGES else 20
    variants: tuple[Variant, ...] = tuple((how,) for how in hows)
    return Scenario(f"exit {name}", processes.end, variants, runs, 1.5, ("R4",), packages=packages)


def _with_loops(*hows: str) -> tuple[Variant, ...]:
    return tuple((how, loop) for how in hows for loop in LOOPS)


ALONE = ("siteline",)
SCENARIOS = (
    _ctrl_c("connect", "while connecting"),
    _ctrl_c("response", "while waiting for a reply"),
    _ctrl_c("body", "within a body"),
    _ctrl_c("backoff", "in a backoff", ALONE),
    _ctrl_c("exchange", "while another thread fetches the token", ALONE),
    _ctrl_c("pages", "in `for page in scan.pages()`", ALONE),
    _ctrl_c("await", "under asyncio.run"),
    _ctrl_c("notebook", "in a top-level await"),
    Scenario(
        "cancel, wait_for, gather, TaskGroup; asyncio and uvloop: the socket closes",
        waits.cancel,
        _with_loops("cancel", "wait_for", "gather", "group"),
        80,
        0.1,
        ("R5",),
    ),
    Scenario(
        "a request dropped unawaited: the socket closes",
        waits.cancel,
        _with_loops("drop"),
        20,
        0.1,
        ("R6",),
    ),
    Scenario(
        "a loop closed with calls pending",
        waits.loops,
        _with_loops("pending", "answers"),
        20,
        rows=("R6",),
    ),
    Scenario(
        "loop after loop, two loops in two threads",
        waits.loops,
        _with_loops("again", "threads"),
        20,
        rows=("R7",),
    ),
    Scenario(
        "close() while another thread waits",
        waits.close,
        (("wait",), ("await",)),
        40,
        0.2,
        ("R2", "R14"),
        packages=ALONE,
    ),
    Scenario("200 forks while a thread reads", processes.fork, ((200,),), 3, 5, ("R3",), 30),
    Scenario("50 forks while 6 threads read", processes.fork, ((50, 6),), 4, 5, ("R3",), 20),
    Scenario(
        "pools of processes: fork, spawn, forkserver",
        processes.pools,
        tuple((f"{start}{kind}",) for start in STARTS for kind in ("", "_executor")),
        18,
        rows=("R3",),
        peer_timeout=12,
    ),
    _exit("with daemon threads inside calls", (*ENDS, *(f"{end},code" for end in ENDS))),
    _exit("with a request pending", ("pending", "pending,raise", "pending_closed", "cancelled")),
    _exit("with an iterator alive", ("iterator", "iterator_await", "busy_records"), ALONE),
    _exit("with use from atexit handlers", ("atexit_before", "atexit_after")),
    _exit("with sys.exit(7), with an exception", ("nothing,code", "nothing,raise", "nothing")),
    Scenario(
        "64 threads share a client, an iterator",
        processes.share,
        (("client",), ("iterator",), ("records",)),
        15,
        packages=ALONE,
    ),
    Scenario(
        "100 threads log through a handler that uses the client",
        processes.share,
        (("handler",),),
        10,
        rows=("R9",),
        packages=ALONE,
    ),
    Scenario(
        "2,000 clients made and dropped: memory, files, threads",
        processes.leak,
        (("clients", 2_000), ("awaitable_clients", 2_000)),
        4,
        rows=("R17",),
        packages=ALONE,
    ),
    Scenario(
        "10,000 small pages: memory, files, threads",
        processes.leak,
        (("pages", 10_000),),
        3,
        rows=("R17",),
        packages=ALONE,
    ),
)
