"""Certificate files of `ca_bundle` and `SSL_CERT_FILE` in all supported formats."""

import datetime
import ipaddress
import re
import ssl

import pytest
import siteline
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs7,
)
from kit.certificates import now
from kit.keys import private_key
from kit.tls_service import TlsRelay

pytestmark = [pytest.mark.once, pytest.mark.sandbox(now=None)]

KEY = private_key()
DAY = datetime.timedelta(days=1)
RUST = re.compile(r"\b(?:Dns|Ip)\w*\(|\bOther\w*\(|Invalid\w+\(|Os \{|Some\(|\bKind::|Error\(")
"""Matches debug output of Rust values, which no message may contain."""


class SelfSigned:
    """A service certificate like one from `openssl req -x509`, with optional changes."""

    def __init__(self, folder, *, constraints=True, names=None, ends=30, begins=-1):
        key, name = (
            ec.generate_private_key(ec.SECP256R1()),
            x509.Name.from_rfc4514_string("CN=plant"),
        )
        if names is None:
            names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now() + begins * DAY)
            .not_valid_after(now() + ends * DAY)
        )
        if constraints is not None:
            basic = x509.BasicConstraints(ca=constraints, path_length=None)
            builder = builder.add_extension(basic, critical=True)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        self.certificate = builder.sign(key, hashes.SHA256())
        self.pem = self.certificate.public_bytes(Encoding.PEM)
        self.key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = folder / "server.pem"
        chain.write_bytes(self.pem + self.key_pem)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(chain)

    def forms(self):
        """Returns the certificate in each file format."""
        text, der = self.pem.decode(), self.certificate.public_bytes(Encoding.DER)
        return {
            "plain": self.pem,
            "UTF-16": text.encode("utf-16"),
            "text around": b"Certificate:\n  Subject: CN=plant\n" + self.pem + b"\nend\n",
            "DER": der,
            "PKCS#7": pkcs7.serialize_certificates([self.certificate], Encoding.DER),
            "PKCS#7 in PEM": pkcs7.serialize_certificates([self.certificate], Encoding.PEM),
        }


def connected(service, tenant, host="127.0.0.1", **options):
    """Returns the error of a first request over TLS, or `None` if the request succeeds."""
    port = int(tenant.base_url.rsplit(":", 1)[1])
    with TlsRelay(service, port) as relay:
        client = siteline.Client(
            f"https://{host}:{relay.port}",
            credential=tenant.credential,
            audience=f"{tenant.base_url}/api/customer/oauth/token",
            clock=tenant.clock,
            tries=1,
            **options,
        )
        try:
            client.discover()
        except siteline.TransportError as error:
            return error
    return None


def test_a_bundle_is_read_in_each_form(tenant, tmp_path, monkeypatch):
    service = SelfSigned(tmp_path)
    for name, content in service.forms().items():
        assert connected(service, tenant, ca_bundle=content) is None, name
    file = tmp_path / "given"
    file.write_bytes(service.pem)
    assert connected(service, tenant, ca_bundle=file) is None
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("SSL_CERT_DIR", "")
    assert connected(service, tenant) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"<html>", "is a web page"),
        (b"nothing", "contains no certificate"),
        ("key", "contains a private key, and no certificate"),
        ("half", "stops within a certificate"),
    ],
)
def test_a_file_without_certificates_is_named_with_the_reason(tmp_path, content, said, monkeypatch):
    service = SelfSigned(tmp_path)
    made = {"key": service.key_pem, "half": service.pem[:200]}
    file = tmp_path / "ca.pem"
    file.write_bytes(made.get(content, content))
    with pytest.raises(siteline.ConfigError, match=said) as caught:
        siteline.Client("https://plant.example", ca_bundle=file, credential=held())
    assert "ca.pem" in str(caught.value)
    assert not RUST.search(f"{caught.value} {caught.value.hint}")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("SSL_CERT_DIR", "")
    with (
        siteline.Client("https://127.0.0.1:9", credential=held()) as client,
        pytest.raises(siteline.TlsError, match=said),
    ):
        client.discover()


def held():
    return siteline.Credential("plant-7", KEY)
