"""Certificate files of `ca_bundle` and `SSL_CERT_FILE` in all supported formats."""

import pytest
import siteline
from cryptography.hazmat.primitives.serialization import Encoding, pkcs7
from kit.tls_service import TlsRelay

pytestmark = [pytest.mark.once, pytest.mark.sandbox(now=None)]


def is_trusted(authority, tenant, **options):
    """Whether a first request over TLS succeeds."""
    with TlsRelay(authority, int(tenant.base_url.rsplit(":", 1)[1])) as relay:
        client = siteline.Client(
            f"https://127.0.0.1:{relay.port}",
            credential=tenant.credential_over(),
            clock=tenant.clock,
            http=siteline.types.Http(tries=1),
            **options,
        )
        try:
            client.discover()
        except siteline.errors.TlsError:
            return False
    return True


def test_a_bundle_is_read_in_each_form(authority, tenant, monkeypatch):
    pem, certificate = authority.pem, authority.certificate
    for form in (
        authority.file,
        str(authority.file),
        pem,
        pem.decode(),
        pem.decode().encode("utf-16"),
        b"Certificate:\n  Subject: CN=plant\n" + pem + b"\nend\n",
        certificate.public_bytes(Encoding.DER),
        pkcs7.serialize_certificates([certificate], Encoding.DER),
        pkcs7.serialize_certificates([certificate], Encoding.PEM),
    ):
        assert is_trusted(authority, tenant, ca_bundle=form), form
    monkeypatch.setenv("SSL_CERT_DIR", "")
    assert not is_trusted(authority, tenant)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    assert is_trusted(authority, tenant)


def test_what_is_no_bundle_is_refused(key, tmp_path):
    credential = siteline.Credential("plant-7", key)
    for wrong in (tmp_path / "absent.pem", tmp_path):
        with pytest.raises(siteline.errors.ConfigError, match="ca_bundle"):
            siteline.Client("https://plant.example", ca_bundle=wrong, credential=credential)
    with pytest.raises(TypeError, match="ca_bundle"):
        siteline.Client("https://plant.example", ca_bundle=7, credential=credential)
