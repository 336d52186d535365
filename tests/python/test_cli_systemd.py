"""The messages of `siteline sync --every` to systemd. A failure to send them ends nothing."""

import contextlib
import os
import socket

import pytest
from kit import systems
from siteline.cli.systemd import Notifier

pytestmark = systems.SIGNALS


@pytest.fixture
def systemd(tmp_path):
    """A socket as systemd's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        yield listening


def notifying(address, *now, **environ):
    """A notifier of this address, which is closed at the end."""
    return contextlib.closing(Notifier({"NOTIFY_SOCKET": str(address), **environ}, *now))


def messages(listening):
    """Returns all messages that have arrived."""
    listening.setblocking(False)
    arrived = []
    with contextlib.suppress(BlockingIOError):
        while True:
            arrived.append(listening.recv(4_096).decode())
    return arrived


@systems.PROC
def test_an_abstract_address_is_understood(systemd):
    name = f"siteline-test-{os.getpid()}"
    systemd.bind(f"\0{name}")
    with notifying(f"@{name}") as notifier:
        notifier.status("two\nlines  of it")
    assert messages(systemd) == ["STATUS=two lines of it"]


def test_the_watchdog_gets_what_it_needs(systemd, tmp_path):
    systemd.bind(str(tmp_path / "notify"))
    times = iter((0.0, 1.0, 2.4, 2.6, 3.0, 5.2)).__next__
    watchdog = {"WATCHDOG_USEC": "10000000", "WATCHDOG_PID": str(os.getpid())}
    with notifying(tmp_path / "notify", times, **watchdog) as notifier:
        assert notifier.alive_every == 5.0
        for _ in range(6):
            notifier.alive()
    assert messages(systemd) == ["WATCHDOG=1"] * 3
    none = ({}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "x"})
    for other in (*none, {"WATCHDOG_USEC": "9", "WATCHDOG_PID": "1"}):
        with notifying(tmp_path / "notify", **other) as notifier:
            notifier.alive()
            assert notifier.alive_every is None
    assert messages(systemd) == []


@pytest.mark.parametrize("address", ["", "/nowhere/at/all", "vsock:2:1234", "@", "relative"])
def test_an_unusable_address_ends_nothing(address):
    with notifying(address, WATCHDOG_USEC="10000000") as notifier:
        notifier.ready()
        notifier.alive()
        notifier.stopping()


def test_a_full_or_closed_socket_ends_nothing(systemd, tmp_path):
    systemd.bind(str(tmp_path / "notify"))
    with notifying(tmp_path / "notify") as notifier:
        for _ in range(5_000):
            notifier.status("x" * 1_000)
        systemd.close()
        notifier.stopping()
