"""The ledger on disk: one exact count for all processes, never less than the requests sent."""

import json
import pickle
from datetime import UTC, timedelta, timezone
from datetime import time as time_of_day

import pytest
import siteline
from kit import systems
from kit.agents import start
from kit.command import environment
from kit.keys import private_key
from kit.ranges import DAY
from kit.waiting import wait_until

# Processes share a ledger only on the machine's clock.
pytestmark = pytest.mark.sandbox(now=None)


# Prints "begun", then reads this many pages (0: one chain), or until it is killed.
READER = """
import siteline
client = siteline.Client(ledger=path)
client.discover()
print("begun", flush=True)
done = 0
while done < pages or not done:
    for page in client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-02T00:00Z",
                            interval="5m", page_size=50).pages():
        done += 1
        if done == pages:
            break
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.txt"


def reader(sandbox, path, pages):
    script = f"path, pages = {str(path)!r}, {pages}\n{READER}"
    child = start(script, environment(sandbox.env()), stderr=None)
    assert child.stdout.readline() == "begun\n"
    return child


def counted(sandbox, path):
    return sandbox.client(ledger=path).allowance


@systems.SIGNALS
def test_a_killed_process_counts_at_most_one_too_many_and_never_too_few(sandbox, path):
    kills = 2
    for kill in range(kills):
        before = sandbox.stats.data_requests
        child = reader(sandbox, path, 1_000_000)
        try:
            wait_until(lambda: sandbox.stats.data_requests > before + 3 * kill)  # noqa: B023
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
    used = counted(sandbox, path).used
    # The service may still read the last request of a killed process from its socket.
    wait_until(lambda: used - sandbox.stats.data_requests <= kills)
    assert 3 < sandbox.stats.data_requests <= used


def test_processes_on_one_ledger_sum_up_exactly(sandbox, path):
    for nth in (5, 50, 100):
        sandbox.fault(on="data", nth=nth, status=503)
    children = [reader(sandbox, path, 0) for _ in range(2)]
    for child in children:
        assert child.wait(300) == 0
        child.stdout.close()
    allowance = counted(sandbox, path)
    pages = -(-len(sandbox.expected(**DAY)) // 50)
    assert allowance.used == sandbox.stats.data_requests == 2 * pages + 3
    assert allowance.token_requests == sandbox.stats.token_requests == 2


def test_a_damaged_ledger_is_an_error_and_nothing_is_sent(sandbox, path):
    client = sandbox.client(ledger=path)
    table = client.scan(**DAY, page_size=10_000).collect()
    assert len(table) > 0
    text = path.read_bytes()
    assert json.loads(text)["count"]["requests"]["count"] == 1
    path.write_bytes(text.replace(b'"count":1', b'"count":0', 1))
    asked = sandbox.stats
    for use in (
        lambda: client.allowance,
        lambda: client.scan(**DAY).collect(),
        lambda: sandbox.client(ledger=path),
    ):
        with pytest.raises(siteline.errors.StoreCorrupt, match="damaged") as caught:
            use()
        assert str(path) in str(caught.value)
        assert "delete" in caught.value.hint
    assert "is damaged" in client._repr_html_()
    assert sandbox.stats.data_requests == asked.data_requests
    path.write_bytes(text)
    assert client.allowance.used == 1
    path.write_bytes(b"")
    with pytest.raises(siteline.errors.StoreCorrupt, match="is damaged"):
        sandbox.client(ledger=path)
    assert path.read_bytes() == b""


def loopback(sandbox, **options):
    return sandbox.client(**options).scan(**DAY, page_size=10_000).collect()


def test_a_ledger_in_memory_can_be_set_everywhere(sandbox, monkeypatch, set_variables, tmp_path):
    monkeypatch.chdir(tmp_path)
    set_variables({**sandbox.env(), "SITELINE_LEDGER": "memory"})
    profiles = tmp_path / "plants" / "plants.toml"
    profiles.parent.mkdir()
    profiles.write_text('[default]\nledger = "memory"\n')
    monkeypatch.setenv("SITELINE_CONFIG", str(profiles))
    loopback(sandbox, ledger="memory")
    first = siteline.Client()
    first.scan(**DAY, page_size=10_000).collect()
    monkeypatch.delenv("SITELINE_LEDGER")
    second = siteline.Client()
    again = pickle.loads(pickle.dumps(second))
    for client, used in ((first, 1), (second, 0), (again, 0)):
        assert client.allowance.used == used
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["plants", "plants.toml"]


def test_a_pickled_client_counts_in_the_same_file(sandbox, tmp_path, monkeypatch):
    key = private_key()
    key.save(tmp_path / "key.pem")
    monkeypatch.chdir(tmp_path)
    client = siteline.Client(
        sandbox.base_url,
        credential=siteline.Credential(sandbox.enroll(key.public_jwk), tmp_path / "key.pem"),
        ledger="ledger.txt",
        allowance_resets=time_of_day(1, tzinfo=timezone(timedelta(hours=-5))),
    )
    made = pickle.dumps(client)
    monkeypatch.chdir("/")
    again = pickle.loads(made)
    again.scan(**DAY, page_size=10_000).collect()
    assert client.allowance == again.allowance
    assert client.allowance.used == 1
    assert pickle.loads(pickle.dumps(client.allowance)) == client.allowance
    assert client.allowance.resets_at.timetz() == time_of_day(6, tzinfo=UTC)
