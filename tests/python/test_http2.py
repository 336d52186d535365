"""HTTP/2: one connection for all requests, and requests of lost streams are retried."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import siteline
from kit.h2_service import H2Service
from pandas.testing import assert_frame_equal

# The sandbox uses the machine's clock.
pytestmark = [pytest.mark.once, pytest.mark.sandbox(now=None)]

END = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=3)
RANGE = {"site": "S1", "start": END - timedelta(hours=6), "end": END, "interval": "1m"}
# Pages of 100 kB.
QUERY = {**RANGE, "page_size": 1_000}


@pytest.fixture
def service(sandbox, authority):
    with H2Service(authority, int(sandbox.base_url.rsplit(":", 1)[1])) as service:
        yield service


@pytest.fixture
def client(sandbox, service, authority, key_file):
    subject = sandbox.enroll(siteline.PrivateKey(key_file).public_jwk)
    audience = f"{sandbox.base_url}/api/customer/oauth/token"
    with siteline.Client(
        f"https://127.0.0.1:{service.port}",
        credential=siteline.Credential(subject, key_file, audience=audience),
        ca_bundle=authority.pem,
        labels=False,
    ) as client:
        yield client


@pytest.fixture
def truth(sandbox):
    return sandbox.client(labels=False).scan(**RANGE).to_pandas()


def test_large_pages_are_read_over_one_connection(client, service, truth):
    table = client.scan(**QUERY).collect()
    assert_frame_equal(table.to_pandas(), truth)
    pages = -(-len(truth) // 1_000)
    assert table.report.pages == service.requested == client.allowance.used == pages
    assert len(service.sessions) == 1


def test_scans_at_once_are_streams_of_one_connection(client, service, truth):
    parts = client.scan(**QUERY).split(4)
    # No request is answered before four have arrived.
    service.together = 4
    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(siteline.Scan.collect, parts))
    assert sum(len(table) for table in tables) == len(truth)
    assert len(service.sessions) == 1
    assert client.allowance.used == service.requested


@pytest.mark.parametrize("fault", ["refused", "gone", "cut"])
def test_a_lost_stream_is_requested_again_and_counted(client, service, sandbox, truth, fault):
    before = sandbox.stats.data_requests
    service.fault[2] = fault
    # One page at a time: a second request on a connection that ends may be lost too.
    assert sum(len(page) for page in client.scan(**QUERY).pages()) == len(truth)
    assert client.allowance.used == service.requested
    # No other request was on the wire: none that the HTTP library repeated, one for the token.
    assert Counter(path.rsplit("/", 1)[-1] for path in service.paths) == {
        "data": client.allowance.used,
        "token": 1,
    }
    assert client.allowance.token_requests == 1
    lost = 0 if fault == "cut" else 1
    assert sandbox.stats.data_requests - before == service.requested - lost
