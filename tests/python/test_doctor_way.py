"""`siteline doctor` finds faults of the connection: name, proxy, TLS."""

import pytest
from kit import systems
from kit.certificates import Issuer
from kit.command import run_process
from kit.doctor import diagnosed, profile
from kit.preloads import KIT, compiled
from kit.tls_service import HOST, SELF, Authority, Proxy, Socks, TlsRelay, unused_port

pytestmark = [pytest.mark.once, pytest.mark.sandbox(now=None)]

PASSWORD = "hunter2"


@pytest.fixture
def settings(service, key_file, tmp_path, authority):
    """Returns a function that returns the variables of a valid profile with more members."""

    def make(**members):
        usual = {
            **{"base_url": f"https://127.0.0.1:{service.port}", "ca_bundle": str(authority.file)},
            "subject": service.subject,
            "audience": service.audience,
            **{"private_key_file": str(key_file), "ledger": "memory"},
        }
        env = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"), "")
        kept = {name: value for name, value in (usual | members).items() if value is not None}
        return {**env, **profile(tmp_path, **kept)}

    return make


def test_the_certificate_is_verified(settings, service, authority):
    checks = diagnosed(env=settings())
    seen = checks["tls"]["seen"]
    assert seen.startswith(f"TLS 1.3, verified by ca_bundle={authority.file}")
    assert "CN=siteline test authority" in seen
    assert checks["tcp"]["seen"].startswith(f"127.0.0.1:{service.port} accepts connections")
    assert service.sandbox.stats.token_requests == 1


@pytest.mark.parametrize(("days", "status"), [(13, "warn"), (15, "ok")])
def test_a_certificate_near_its_end_warns(settings, service, tmp_path, days, status):
    authority = Authority(tmp_path / "soon", days=(-1, days))
    with TlsRelay(authority, service.sandbox_port) as relay:
        env = settings(base_url=f"https://127.0.0.1:{relay.port}", ca_bundle=str(authority.file))
        assert diagnosed(env=env)["tls"]["status"] == status


def test_untrusted_and_unreadable_authorities_are_named(settings, service, tmp_path):
    other = tmp_path / "other.pem"
    other.write_bytes(Issuer("another authority").pem)
    checks = diagnosed(env=settings(ca_bundle=str(other)), status=2, first="tls")
    assert checks["tls"]["error"] == "TlsError"
    assert "unknown authority" in checks["tls"]["seen"]
    assert "SSL_CERT_FILE" in checks["tls"]["do"]
    assert checks["service"]["seen"] == checks["token"]["seen"] == "tls failed"
    assert service.sandbox.stats.token_requests == 0
    before = service.connections
    env = {**settings(ca_bundle=None), "SSL_CERT_FILE": "absent", "SSL_CERT_DIR": ""}
    checks = diagnosed(env=env, status=2, first="tls")
    assert "SSL_CERT_FILE" in checks["tls"]["seen"]
    assert checks["tcp"]["status"] == "skipped"
    assert service.connections == before


def test_an_unused_port_is_named(settings):
    env = settings(base_url=f"https://127.0.0.1:{unused_port()}")
    checks = diagnosed(env=env, status=4, first="tcp")
    assert checks["tls"]["seen"] == checks["service"]["seen"] == "tcp failed"


def test_a_proxy_is_named_without_its_password(settings, service):
    with Proxy(service.port) as proxy:
        address = f"http://user:{PASSWORD}@127.0.0.1:{proxy.port}"
        checks = diagnosed(env=settings(base_url=f"https://{HOST}", proxy=address))
        assert {head.split()[1] for head in proxy.heads} == {f"{HOST}:443"}
        assert "Proxy-Authorization: Basic " in proxy.heads[0]
    assert checks["proxy"]["seen"].startswith(f"http://127.0.0.1:{proxy.port}, which connects to")
    assert checks["tcp"]["status"] == "skipped"
    assert checks["tls"]["status"] == "ok"


@pytest.mark.parametrize("reply", [0, 2])
def test_requests_show_whether_a_socks_proxy_works(settings, service, reply):
    with Socks(service.port, reply=reply) as proxy:
        address = f"socks5h://127.0.0.1:{proxy.port}"
        env = settings(base_url=f"https://{HOST}", proxy=address)
        expected = {"status": 2, "first": "service"} if reply else {}
        checks = diagnosed(env=env, **expected)
    assert checks["proxy"]["seen"].startswith(f"{address}; checked by the requests")
    assert {checks[one]["status"] for one in ("tcp", "tls")} == {"skipped"}
    assert checks["service"]["error"] == ("ProxyError" if reply else None)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "connection refused"),
        (b"HTTP/1.1 407 No\r\n\r\n", "407"),
        (b"HTTP/1.1 403 No\r\n\r\n", "it refused"),
        (b"\r\n", "it closed the connection"),
    ],
    ids=["dead", "user", "refused", "closed"],
)
def test_a_failing_proxy_fails_first(settings, service, answer, why):
    with Proxy(service.port, answer or b"") as proxy:
        port = unused_port() if answer is None else proxy.port
        address = f"http://user:{PASSWORD}@127.0.0.1:{port}"
        env = settings(base_url=f"https://{HOST}", proxy=address)
        document = diagnosed(env=env, status=2, first="proxy")
    assert why in document["proxy"]["seen"]
    assert document["proxy"]["error"] == "ProxyError"
    assert document["tls"]["seen"] == document["token"]["seen"] == "proxy failed"
    assert PASSWORD not in str(document)
    assert service.sandbox.stats.token_requests == 0


@systems.PRELOAD
def test_a_name_without_an_address(settings, tmp_path):
    library, file = compiled(KIT / "resolver.c", tmp_path), tmp_path / "addresses"
    file.write_text("")
    env = settings(base_url=f"https://{HOST}:{unused_port()}")
    env |= {"LD_PRELOAD": str(library), "RESOLVER_FILE": str(file)}
    checks = diagnosed(env=env, status=4, first="tcp", run=run_process)
    assert checks["tcp"]["error"] == "TransportError"
    assert f"{HOST} could not be resolved" in checks["tcp"]["seen"]
    assert checks["tls"]["seen"] == "tcp failed"


def test_plain_http_beyond_loopback_warns(settings, service):
    address = f"http://{SELF}:{service.sandbox_port}"
    checks = diagnosed(env=settings(base_url=address, allow_http=True))
    assert checks["tls"]["status"] == "warn"
    assert checks["tls"]["seen"].startswith("plain HTTP")
