"""When the runs of `siteline sync --every` come: with given times and chance, without waiting."""

import signal

import pytest
from kit import systems
from siteline.cli.loop import Loop, PassedTime
from siteline.cli.schedule import Ended, Schedule
from siteline.cli.stopping import Stop, Stopped

DONE, TEMPORARY, SPENT, INCOMPLETE, BUSY = 0, 4, 5, 6, 75
FAILED = Ended(TEMPORARY, is_failure=True)


def schedule(every=300.0, chance=0.0):
    return Schedule(every, lambda: chance)


def test_turns_are_whole_multiples_so_that_nothing_drifts():
    turns = schedule()
    assert turns.due(0.0, 12.5, Ended(DONE)) == 300
    assert turns.due(300.2, 301.0, Ended(INCOMPLETE)) == 600
    assert turns.due(600.0, 600.0, Ended(DONE)) == 900


def test_turns_that_a_long_run_or_a_sleep_missed_are_left_out():
    assert schedule().due(0.0, 1_000.0, Ended(DONE)) == 1_200
    assert schedule().due(0.0, 86_500.0, Ended(DONE)) == 86_700


def test_chance_adds_up_to_a_tenth_and_never_takes_away():
    assert schedule(chance=1.0).due(0.0, 10.0, Ended(DONE)) == 330
    assert schedule(chance=0.5).due(330.0, 340.0, Ended(DONE)) == 615


def test_a_spent_allowance_is_waited_for_and_not_asked_again_at_every_turn():
    turns = schedule()
    assert turns.due(0.0, 10.0, Ended(SPENT, 53_578.0)) == 53_588
    assert turns.due(53_588.0, 53_600.0, Ended(DONE)) == 53_700
    late = schedule(chance=1.0)
    assert late.due(0.0, 10.0, Ended(SPENT, 53_578.0)) == 53_588 + 30


def test_a_named_time_comes_before_the_next_turn_of_a_long_duration():
    assert schedule(86_400.0).due(0.0, 10.0, Ended(TEMPORARY, 600.0)) == 610
    assert schedule(86_400.0, 1.0).due(0.0, 10.0, Ended(TEMPORARY, 600.0)) == 670


@pytest.mark.parametrize("resumes_in", [0.0, -3_600.0, 0.5])
def test_a_named_time_that_is_past_does_not_make_it_ask_at_once(resumes_in):
    assert schedule().due(0.0, 10.0, Ended(SPENT, resumes_in)) == 70
    assert schedule(2.0).due(0.0, 10.0, Ended(SPENT, resumes_in)) == 12


def test_pauses_of_a_lasting_failure_grow_up_to_an_hour():
    turns, begun, pauses = schedule(), 0.0, []
    for _ in range(8):
        due = turns.due(begun, begun + 1, FAILED)
        pauses.append(due - begun)
        begun = due
    assert pauses == [300, 600, 1_200, 2_400, 3_600, 3_600, 3_600, 3_600]


def test_pauses_are_never_shorter_than_the_turns():
    turns = schedule(7_200.0)
    assert turns.due(0.0, 1.0, FAILED) == 7_200
    assert turns.due(7_200.0, 7_201.0, FAILED) == 14_400


def test_pauses_stay_finite_however_long_it_fails():
    turns = schedule(1.0)
    assert [turns.due(0.0, 0.5, FAILED) for _ in range(5_000)][-1] == 3_600


@pytest.mark.parametrize("ended", [Ended(DONE), Ended(INCOMPLETE), Ended(SPENT, 60.0)])
def test_a_run_that_reached_the_service_ends_the_growth(ended):
    turns = schedule()
    for _ in range(3):
        turns.due(0.0, 1.0, FAILED)
    turns.due(0.0, 1.0, ended)
    assert turns.due(0.0, 1.0, FAILED) == 300


def test_another_run_of_the_feed_neither_ends_the_growth_nor_adds_to_it():
    turns = schedule()
    turns.due(0.0, 1.0, FAILED)
    assert turns.due(0.0, 1.0, Ended(BUSY)) == 300
    assert turns.due(0.0, 1.0, FAILED) == 600


# The time that passed.


def passed_after(*readings):
    steady, wall = zip((0.0, 1_000.0), *readings, strict=True)
    passed = PassedTime(iter(steady).__next__, iter(wall).__next__)
    return [passed() for _ in readings]


def test_time_passes_while_the_machine_sleeps():
    assert passed_after((5.0, 1_005.0), (6.0, 30_006.0), (7.0, 30_007.0)) == [5, 29_006, 29_007]


def test_a_clock_that_is_set_back_takes_no_time_away():
    assert passed_after((5.0, 1_005.0), (65.0, 100.0), (66.0, 101.0)) == [5, 65, 66]


def test_small_corrections_of_the_clock_are_no_sleep():
    assert passed_after((60.0, 1_060.4), (120.0, 1_120.2)) == [60, 120]


# The loop.


class FakeNotifier:
    """Remembers what systemd would be told."""

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
    """A clock that only sleeping moves; after so many sleeps a signal comes."""

    def __init__(self, stop, sleeps):
        self.now, self.slept = 0.0, []
        self._stop, self._left = stop, sleeps

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        self._left -= 1
        if self._left == 0:
            signal.raise_signal(signal.SIGTERM)


def go(runs, sleeps, every=300.0, notifier=None):
    """Run a loop whose runs end like this, until so many sleeps are over."""
    notifier, told = notifier or FakeNotifier(), []
    with Stop() as stop:
        machine, left = Machine(stop, sleeps), iter(runs)

        def run():
            ended = next(left)
            if isinstance(ended, Exception):
                raise ended
            return ended, ended.status

        loop = Loop(
            run, lambda *told_of: told.append(told_of), schedule(every), notifier, stop,
            passed=lambda: machine.now, sleep=machine.sleep,
        )  # fmt: skip
        ended_by = loop.go()
    return ended_by, told, machine, notifier


@systems.SIGNALS
def test_a_loop_runs_at_each_turn_until_a_signal_comes():
    ended_by, told, machine, notifier = go([Ended(DONE)] * 3, sleeps=11)
    assert ended_by is signal.SIGTERM
    assert told == [(DONE, 300), (DONE, 300), (DONE, 300)]
    assert machine.now == 11 * 60
    assert notifier.told[0] == "ready"
    assert notifier.told[-1] == "stopping"


@systems.SIGNALS
def test_a_wait_is_in_parts_of_at_most_a_minute():
    _, _, machine, _ = go([Ended(DONE)] * 3, sleeps=5, every=90.0)
    assert machine.slept == [60, 30, 60, 30, 60]


@systems.SIGNALS
def test_a_wait_tells_the_watchdog_as_often_as_it_needs():
    notifier = FakeNotifier(alive_every=10.0)
    _, _, machine, _ = go([Ended(DONE)] * 2, sleeps=4, every=25.0, notifier=notifier)
    assert machine.slept == [10, 10, 5, 10]
    assert notifier.told == [
        "ready", *["alive"] * 4, "ready", *["alive"] * 2, "stopping",
    ]  # fmt: skip


@systems.SIGNALS
def test_a_spent_allowance_makes_no_run_before_its_end():
    _, told, machine, _ = go([Ended(SPENT, 86_000.0), Ended(DONE)], sleeps=1_435)
    assert [wait for _, wait in told] == [86_000, 100]
    assert machine.now > 86_000


@systems.SIGNALS
def test_what_a_run_raises_ends_the_loop():
    notifier = FakeNotifier()
    with pytest.raises(ValueError, match="damaged"):
        go([Ended(DONE), ValueError("damaged")], sleeps=99, notifier=notifier)
    assert notifier.told[-1] == "stopping"


# Signals.


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
def test_a_signal_ends_a_wait_at_once_and_a_run_at_its_next_check():
    with Stop() as stop:
        with stop.after_a_page():
            signal.raise_signal(signal.SIGINT)
            assert stop.signal is signal.SIGINT
            with pytest.raises(Stopped):
                stop.check()
        with pytest.raises(Stopped), stop.at_once():
            raise AssertionError("a signal that came before is not forgotten")
    with Stop() as stop:
        assert interrupted(stop.at_once, signal.SIGTERM) == 1


@systems.SIGNALS
def test_a_second_signal_ends_a_run_at_once_and_the_first_one_counts():
    with Stop() as stop:
        assert interrupted(stop.after_a_page, signal.SIGTERM, signal.SIGINT, signal.SIGINT) == 2
    assert stop.signal is signal.SIGTERM


@systems.SIGNALS
def test_a_run_whose_page_does_not_come_is_ended_when_its_grace_is_over(monkeypatch):
    monkeypatch.setattr("siteline.cli.stopping._GRACE", 0.01)
    with Stop() as stop:
        assert interrupted(stop.after_a_page, signal.SIGTERM, wait=True) == 1


@systems.SIGNALS
def test_handlers_are_put_back_and_an_ignored_interrupt_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Stop() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.signal is None
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


def test_no_sleep_is_so_long_that_a_signal_before_it_is_heard_late(monkeypatch):
    from siteline.cli import loop

    now, slept = [0.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(loop.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(loop.time, "sleep", sleep)
    loop._sleep(2.5)
    assert slept == [1.0, 1.0, 0.5]
