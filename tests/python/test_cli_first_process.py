"""The command as process 1 of a container, which receives only the signals that it handles."""

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from kit import systems
from kit.command import run_command, start_command
from kit.feeds_file import write_feeds
from kit.waiting import wait_until

pytestmark = [systems.PROC, systems.ROOT]

NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child"]


def first_process_of(namespace):
    """Returns the number of the first process in the namespace, or None before it has started."""
    task = Path(f"/proc/{namespace.pid}/task/{namespace.pid}")
    children = (task / "children").read_text(encoding="utf-8").split()
    return int(children[0]) if children else None


@contextlib.contextmanager
def as_first_process(env, *words):
    """Runs a command as process 1; yields the `unshare` process and the command's outer number."""
    options = {"before": NAMESPACE, "stdin": subprocess.DEVNULL}
    with start_command(*words, env=env, **options) as namespace:
        try:
            wait_until(lambda: first_process_of(namespace))
            yield namespace, first_process_of(namespace)
        finally:
            namespace.kill()


@pytest.fixture(autouse=True, scope="module")
def _can_make_namespaces():
    if subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine makes no namespace of processes")


@pytest.mark.parametrize(
    ("name", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGQUIT", 131), ("SIGINT", 130)]
)
def test_signals_end_a_sync(sandbox, tmp_path, name, status):
    feeds, store = write_feeds(tmp_path), tmp_path / "plant.siteline"
    sandbox.fault(on="data", hang=True, skip=2, times=1)
    sync = ("sync", feeds, store, "--concurrency", "1")
    with as_first_process(sandbox.env(), *sync) as (namespace, process):
        wait_until(lambda: sandbox.stats.data_requests >= 3)
        os.kill(process, getattr(signal, name))
        told = namespace.communicate(timeout=60)[1]
    assert namespace.returncode == status, told
    assert "Traceback" not in told
    # The applied pages are kept, and the next run continues.
    run_command("store", "check", store)
    run_command("sync", feeds, store, env=sandbox.env())


@pytest.mark.parametrize("word", ["sandbox", "agent"])
def test_sigterm_ends_a_server(sandbox, word):
    # Another agent of this user may have the default socket. The path of a socket must be short.
    with tempfile.TemporaryDirectory() as folder:
        env = sandbox.env() | {"XDG_RUNTIME_DIR": folder}
        with as_first_process(env, word) as (namespace, process):
            assert namespace.stdout.readline()
            os.kill(process, signal.SIGTERM)
            told = namespace.communicate(timeout=60)[1]
    assert namespace.returncode == 0, told
