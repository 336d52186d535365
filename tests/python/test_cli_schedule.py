"""The times of the runs of `siteline sync --every`, with a fake clock."""

import signal

import pytest
from kit import systems
from siteline.cli import loop as loop_module
from siteline.cli.loop import Loop, PassedTime
from siteline.cli.schedule import Ended, Schedule
from siteline.cli.stopping import Stop, Stopped

DONE, SPENT, INCOMPLETE, BUSY = Ended(0), Ended(5, 53_578.0), Ended(6), Ended(75)
FAILED, LATER = Ended(4, is_failure=True), Ended(4, 600.0)
DAY = 86_400.0


@pytest.mark.parametrize(
    ("every", "chance", "runs"),
    [
        # Turns are whole multiples, so nothing drifts. Missed turns are left out.
        (300, 0, [(0, 12.5, DONE, 300), (300.2, 301, INCOMPLETE, 600), (600, 600, DONE, 900)]),
        (300, 0, [(0, 1_000, DONE, 1_200)]),
        (300, 0, [(0, 86_500, DONE, 86_700)]),
        # Chance adds at most a tenth.
        (300, 1, [(0, 10, DONE, 330)]),
        (300, 0.5, [(330, 340, DONE, 615)]),
        # A spent allowance is waited for. A named time precedes the next turn.
        (300, 0, [(0, 10, SPENT, 53_588), (53_588, 53_600, DONE, 53_700)]),
        (300, 1, [(0, 10, SPENT, 53_618)]),
        (DAY, 0, [(0, 10, LATER, 610)]),
        (DAY, 1, [(0, 10, LATER, 670)]),
        # A named time that has passed does not start a run at once.
        *((300, 0, [(0, 10, Ended(5, late), 70)]) for late in (0.0, -3_600.0, 0.5)),
        (2, 0, [(0, 10, Ended(5, 0.0), 12)]),
        # The pauses of a lasting failure grow up to an hour, and are never shorter than the turns.
        (300, 0, [(at, at + 1, FAILED, at + 300 * 2**n) for n, at in enumerate((0, 300, 900))]),
        (300, 0, [(0, 1, FAILED, 300), *[(0, 1, FAILED, 600 * 2**n) for n in range(3)],
                  (0, 1, FAILED, 3_600), (0, 1, FAILED, 3_600)]),
        (7_200, 0, [(0, 1, FAILED, 7_200), (7_200, 7_201, FAILED, 14_400)]),
        # A run that reached the service ends the growth. A busy feed does not change it.
        *((300, 0, [(0, 1, FAILED, 300), (0, 1, FAILED, 600), (0, 1, ended, None),
                    (0, 1, FAILED, 300)]) for ended in (DONE, INCOMPLETE, SPENT)),
        (300, 0, [(0, 1, FAILED, 300), (0, 1, BUSY, 300), (0, 1, FAILED, 600)]),
    ],
)  # fmt: skip
def test_the_next_run_is_due(every, chance, runs):
    turns = Schedule(float(every), lambda: float(chance))
    for begun, at, ended, expected in runs:
        due = turns.due(begun, at, ended)
        assert expected is None or due == expected


def test_pauses_stay_finite_however_long_it_fails():
    turns = Schedule(1.0, lambda: 0.0)
    assert [turns.due(0.0, 0.5, FAILED) for _ in range(5_000)][-1] == 3_600


@pytest.mark.parametrize(
    ("readings", "passed"),
    [
        # The machine sleeps; the clock is set back; small corrections.
        ([(5, 1_005), (6, 30_006), (7, 30_007)], [5, 29_006, 29_007]),
        ([(5, 1_005), (65, 100), (66, 101)], [5, 65, 66]),
        ([(60, 1_060.4), (120, 1_120.2)], [60, 120]),
    ],
)
def test_passed_time_counts_sleep_of_the_machine(readings, passed):
    steady, wall = zip((0.0, 1_000.0), *readings, strict=True)
    clock = PassedTime(iter(steady).__next__, iter(wall).__next__)
    assert [clock() for _ in readings] == passed


class FakeNotifier:
    """Remembers the messages for systemd."""

    def __init__(self, alive_every=None):
        self.told, self.alive_every = [], alive_every

    def ready(self):
        self.told.append("ready")

    def status(self, text):
        self.told.append(text)

    def alive(self):
        self.told.append("alive")

    def stopping(self):
        self.told.append("stopping")


class Machine:
    """A clock that only sleeping moves. After some sleeps it sends a signal."""

    def __init__(self, sleeps):
        self.now, self.slept, self.left = 0.0, [], sleeps

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGTERM)


def go(runs, sleeps, every=300.0, notifier=None):
    """Run a loop with these results until this number of sleeps."""
    told, left, machine = [], iter(runs), Machine(sleeps)

    def run():
        ended = next(left)
        if isinstance(ended, Exception):
            raise ended
        return ended, ended.status

    with Stop() as stop:
        loop = Loop(
            run, lambda *pair: told.append(pair), Schedule(every, lambda: 0.0),
            notifier or FakeNotifier(), stop, passed=lambda: machine.now, sleep=machine.sleep,
        )  # fmt: skip
        assert loop.go() is signal.SIGTERM
    return told, machine


@systems.SIGNALS
def test_a_loop_runs_until_a_signal():
    told, machine = go([DONE] * 3, sleeps=11)
    assert told == [(0, 300)] * 3
    assert machine.now == 11 * 60
    # A wait is in parts of at most a minute.
    assert go([DONE] * 3, sleeps=5, every=90.0)[1].slept == [60, 30, 60, 30, 60]
    told, _ = go([Ended(5, 86_000.0), DONE], sleeps=1_435)
    assert [wait for _, wait in told] == [86_000, 100]


@systems.SIGNALS
def test_a_wait_feeds_the_watchdog():
    notifier = FakeNotifier(alive_every=10.0)
    _, machine = go([DONE] * 2, sleeps=4, every=25.0, notifier=notifier)
    assert machine.slept == [10, 10, 5, 10]
    assert notifier.told == ["ready", *["alive"] * 4, "ready", *["alive"] * 2, "stopping"]
    notifier = FakeNotifier()
    with pytest.raises(ValueError, match="damaged"):
        go([DONE, ValueError("damaged")], sleeps=99, notifier=notifier)
    assert notifier.told[-1] == "stopping"


def interrupted(part, *numbers, wait=False):
    """Send these signals inside the part; return how many of them were sent when it ended."""
    sent = 0
    try:
        with part():
            for number in numbers:
                sent += 1
                signal.raise_signal(number)
            while wait:
                signal.pause()
    except Stopped:
        return sent
    raise AssertionError("no signal ended it")


@systems.SIGNALS
def test_signals_end_waits_and_runs(monkeypatch):
    with Stop() as stop:
        with stop.after_a_page():
            signal.raise_signal(signal.SIGINT)
            assert stop.signal is signal.SIGINT
            with pytest.raises(Stopped):
                stop.check()
        # An earlier signal is not forgotten.
        assert interrupted(stop.at_once, signal.SIGTERM) == 0
    with Stop() as stop:
        assert interrupted(stop.at_once, signal.SIGTERM) == 1
    # A second signal ends a run at once, and the first one counts.
    with Stop() as stop:
        assert interrupted(stop.after_a_page, signal.SIGTERM, signal.SIGINT, signal.SIGINT) == 2
    assert stop.signal is signal.SIGTERM
    # Without one, the run ends after its grace.
    monkeypatch.setattr("siteline.cli.stopping._GRACE", 0.01)
    with Stop() as stop:
        assert interrupted(stop.after_a_page, signal.SIGTERM, wait=True) == 1


@systems.SIGNALS
def test_handlers_are_restored(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Stop() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.signal is None, "an ignored signal stays ignored"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_sleep_is_at_most_a_second(monkeypatch):
    # A signal just before a sleep is handled only after it.
    machine = Machine(0)
    monkeypatch.setattr(loop_module.time, "monotonic", lambda: machine.now)
    monkeypatch.setattr(loop_module.time, "sleep", machine.sleep)
    loop_module._sleep(2.5)
    assert machine.slept == [1.0, 1.0, 0.5]
