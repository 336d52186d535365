"""Several addresses of one name, and addresses that change: over real sockets, on loopback."""

import socket
import sys

import pytest
from kit.resolver import run_with_resolver

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="preloads a library, and uses all of 127.0.0.0/8"
)

SERVICE = """
    import os, socket
    from pathlib import Path
    import siteline
    from kit.keys import private_key
    from kit.tls_service import Relay

    addresses = Path(os.environ["RESOLVER_FILE"])
    sandbox = siteline.Sandbox()
    port = int(sandbox.base_url.rsplit(":", 1)[1])

    def client_at(outside, **options):
        key = private_key()
        return siteline.Client(
            f"http://customer.test:{outside}", ledger="memory",
            http=siteline.types.Http(allow_http=True, **options),
            credential=siteline.Credential(
                sandbox.enroll(key.public_jwk), key,
                audience=f"{sandbox.base_url}/api/customer/oauth/token"))
"""


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine's loopback")
def test_an_address_that_does_not_answer_does_not_use_its_time_limit(tmp_path):
    # The first address accepts no connection. The limits are an hour each: the second address is
    # tried before one of them ends, or the script is killed after two minutes.
    script = f"""{SERVICE}
    relay = Relay(port, lambda data: None)
    dead = socket.socket(socket.AF_INET6)
    dead.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    dead.bind(("::1", relay.port))
    dead.listen(0)
    waiting = []
    for number in range(8):
        waiting.append(socket.socket(socket.AF_INET6))
        waiting[-1].setblocking(number == 0)
        waiting[-1].connect_ex(("::1", relay.port))
    client = client_at(relay.port, connect_timeout="1h", response_timeout="1h")
    print(sorted(client.discover()), client.allowance.token_requests, relay.connections)
    """
    assert run_with_resolver(script, ["::1", "127.0.0.1"], tmp_path).startswith(
        "['sites', 'subject'] 1 "
    )


def test_an_address_that_changes_is_looked_up_for_each_connection(tmp_path):
    script = f"""{SERVICE}
    def lose(data):
        if addresses.read_text() != "127.0.0.1\\n":
            raise ConnectionResetError

    before = Relay(port, lose)
    after = Relay(port, lambda data: None, address=("127.0.0.2", before.port))
    scan = dict(site="S1", start="2026-11-01", end="2026-11-02", interval="1h")
    pages = client_at(before.port).scan(**scan, page_size=20).pages()
    read = [next(pages)]
    addresses.write_text("127.0.0.2\\n")
    read += pages
    print(sum(map(len, read)) == len(sandbox.expected(**scan)), after.connections > 0)
    """
    assert run_with_resolver(script, ["127.0.0.1"], tmp_path) == "True True"
