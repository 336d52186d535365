"""What `siteline sync --every` tells systemd, and that a failure of it ends nothing."""

import contextlib
import os
import socket

import pytest
from kit import systems
from kit.feeds_file import write_feeds
from kit.running import end, running
from siteline.cli.systemd import Notifier

pytestmark = systems.SIGNALS


@pytest.fixture
def systemd(tmp_path):
    """A socket as systemd's, and what arrives at it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(60)
        yield listening


def notifying(address, *now, **environ):
    """A notifier of this address, which is closed at the end."""
    return contextlib.closing(Notifier({"NOTIFY_SOCKET": str(address), **environ}, *now))


def messages(listening):
    """All that has arrived."""
    listening.setblocking(False)
    arrived = []
    with contextlib.suppress(BlockingIOError):
        while True:
            arrived.append(listening.recv(4_096).decode())
    return arrived


def test_systemd_is_told_that_it_is_ready_how_it_went_and_that_it_ends(sandbox, systemd, tmp_path):
    feeds, store_path = write_feeds(tmp_path), tmp_path / "plant.siteline"
    systemd.bind(str(tmp_path / "notify"))
    env = {**sandbox.env(), "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000000"}
    with running("sync", feeds, store_path, "--every", "1s", env=env) as process:
        process.stdout.readline()
        process.stdout.readline()
        assert end(process)[0] == 0
    told = messages(systemd)
    assert told[:2] == ["READY=1", "WATCHDOG=1"]
    assert told.count("READY=1") == 1
    (status,) = [text for text in told if text.startswith("STATUS=")][:1]
    assert status.startswith("STATUS=complete, ")
    assert "; next run 2026-11-20 00:00:0" in status
    assert told[-1] == "STOPPING=1"


@systems.PROC
def test_an_abstract_address_is_understood(systemd):
    name = f"siteline-test-{os.getpid()}"
    systemd.bind(f"\0{name}")
    with notifying(f"@{name}") as notifier:
        notifier.status("two\nlines  of it")
    assert systemd.recv(4_096) == b"STATUS=two lines of it"


def test_a_watchdog_is_told_no_more_often_than_it_needs(systemd, tmp_path):
    systemd.bind(str(tmp_path / "notify"))
    times = iter((0.0, 1.0, 2.4, 2.6, 3.0, 5.2)).__next__
    watchdog = {"WATCHDOG_USEC": "10000000", "WATCHDOG_PID": str(os.getpid())}
    with notifying(tmp_path / "notify", times, **watchdog) as notifier:
        assert notifier.alive_every == 5.0
        for _ in range(6):
            notifier.alive()
    assert messages(systemd) == ["WATCHDOG=1"] * 3


@pytest.mark.parametrize(
    "watchdog",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "x"},
        {"WATCHDOG_USEC": "9", "WATCHDOG_PID": "1"},
    ],
)
def test_a_watchdog_that_is_not_for_this_process_is_not_told(systemd, tmp_path, watchdog):
    systemd.bind(str(tmp_path / "notify"))
    with notifying(tmp_path / "notify", **watchdog) as notifier:
        notifier.alive()
        assert notifier.alive_every is None
    assert messages(systemd) == []


@pytest.mark.parametrize("address", ["", "/nowhere/at/all", "vsock:2:1234", "@", "relative"])
def test_an_address_where_nobody_listens_ends_nothing(address):
    with notifying(address, WATCHDOG_USEC="10000000") as notifier:
        notifier.ready()
        notifier.alive()
        notifier.stopping()


def test_a_listener_that_went_away_or_is_full_ends_nothing(systemd, tmp_path):
    systemd.bind(str(tmp_path / "notify"))
    with notifying(tmp_path / "notify") as notifier:
        for _ in range(5_000):
            notifier.status("x" * 1_000)
        systemd.close()
        notifier.stopping()
