"""Hundreds of feeds in one store: their locks take one file, whatever their number."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
import siteline
from kit import systems
from kit.feeds import make_feed
from kit.interpreter import FORK_WITH_THREADS

pytestmark = systems.SIGNALS
BEGIN = """
    import os, signal, sys, siteline
    from kit.feeds import make_feed
    client, store = siteline.Client(), siteline.Store({path!r})
"""


@pytest.fixture
def environment(sandbox):
    return {**sandbox.env(), "PYTHONPATH": os.pathsep.join(sys.path)}


def script(path, rest):
    return textwrap.dedent(BEGIN.format(path=str(path))) + textwrap.dedent(rest)


def holder(path, environment, rest):
    """A process that holds the feed `line-2` until it is killed, and has said so."""
    hold = """
    def hold(progress):
        {}
        print("holds", flush=True)
        signal.pause()
    client.sync(make_feed("line-2", page_size=500), store, progress=hold)
    """
    process = subprocess.Popen(
        [sys.executable, *FORK_WITH_THREADS, "-c", script(path, hold.format(rest))],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "holds\n"
    return process


def test_only_the_same_feed_is_locked(sandbox, tmp_path, environment):
    path = tmp_path / "plant.siteline"
    client = sandbox.client()
    with holder(path, environment, "pass") as process:
        store = siteline.Store(path)
        others = [make_feed(f"other {number}", page_size=500) for number in range(20)]
        assert client.sync(others, store, concurrency=4).complete
        with pytest.raises(siteline.errors.StoreBusy):
            client.sync([*others, make_feed()], store, concurrency=4)
        process.send_signal(signal.SIGKILL)
        process.wait()
        # A killed process holds nothing any more.
        assert client.sync([*others, make_feed(page_size=500)], store, concurrency=4).complete
