"""Certificate files of `ca_bundle` and `SSL_CERT_FILE` in all supported formats."""

import pytest
import siteline
from cryptography.hazmat.primitives.serialization import Encoding, pkcs7
from kit.keys import PEM, private_key
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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lambda pem: b"", "is empty"),
        (lambda pem: b"<html>", "is a web page"),
        (lambda pem: b"nothing", "contains no certificate"),
        (lambda pem: PEM.encode(), "contains a private key, and no certificate"),
        (lambda pem: pem[:200], "stops within a certificate"),
    ],
    ids=["empty", "page", "text", "key", "half"],
)
def test_a_file_without_certificates_is_named_with_the_reason(
    authority, tmp_path, content, said, monkeypatch
):
    credential = siteline.Credential("plant-7", private_key())
    file = tmp_path / "ca.pem"
    file.write_bytes(content(authority.pem))
    with pytest.raises(siteline.errors.ConfigError, match=said) as caught:
        siteline.Client("https://plant.example", ca_bundle=file, credential=credential)
    assert "ca.pem" in str(caught.value)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("SSL_CERT_DIR", "")
    with (
        siteline.Client("https://127.0.0.1:9", credential=credential) as client,
        pytest.raises(siteline.errors.TlsError, match=said),
    ):
        client.discover()


def test_what_is_no_bundle_is_refused(key, tmp_path):
    credential = siteline.Credential("plant-7", key)
    for wrong in (tmp_path / "absent.pem", tmp_path):
        with pytest.raises(siteline.errors.ConfigError, match="ca_bundle"):
            siteline.Client("https://plant.example", ca_bundle=wrong, credential=credential)
    with pytest.raises(TypeError, match="ca_bundle"):
        siteline.Client("https://plant.example", ca_bundle=7, credential=credential)
