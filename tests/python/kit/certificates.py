"""Issues client certificates, also from intermediate authorities, in several file formats."""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .keys import PEM as PRIVATE_KEY

PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
KEYS = {
    "rsa": lambda: serialization.load_pem_private_key(PRIVATE_KEY.encode(), None),
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}


def now() -> datetime.datetime:
    """Returns the current time of this machine."""
    return datetime.datetime.now(datetime.UTC)


def sign(
    subject, public_key, issuer, key, *, begins, ends, usage=None, is_authority=False, names=()
):
    """Returns a signed certificate."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usage), critical=False)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key, algorithm)


def named(text: str) -> x509.Name:
    """Returns a distinguished name, which is empty for an empty text."""
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, text)] if text else []
    return x509.Name(attributes)


class Issuer:
    """A certificate authority for clients."""

    def __init__(self, name: str = "plant authority", *, above: Issuer | None = None) -> None:
        self.key, self.name = KEYS["p256"](), named(name)
        issuer, key = (above.name, above.key) if above else (self.name, self.key)
        year = datetime.timedelta(days=365)
        self.certificate = sign(
            self.name,
            self.key.public_key(),
            issuer,
            key,
            begins=now() - year,
            ends=now() + year,
            is_authority=True,
        )
        self.pem = self.certificate.public_bytes(PEM)
        self.chain = [self.certificate, *(above.chain if above else [])]

    def issue(
        self,
        name="plant-7",
        *,
        kind="p256",
        begins=-1,
        ends=30,
        for_clients=True,
        names=(),
        key=None,
    ) -> Issued:
        """Issues a client certificate. `begins` and `ends` are days from now."""
        key = key or KEYS[kind]()
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if for_clients else ExtendedKeyUsageOID.SERVER_AUTH
        certificate = sign(
            named(name),
            key.public_key(),
            self.name,
            self.key,
            begins=now() + datetime.timedelta(days=begins),
            ends=now() + datetime.timedelta(days=ends),
            usage=[usage],
            names=names,
        )
        return Issued(certificate, key, self.chain)


class Issued:
    """A certificate with its key. The methods return them in several formats."""

    def __init__(self, certificate, key, chain) -> None:
        self.certificate, self.key, self.chain = certificate, key, chain
        self.pem = certificate.public_bytes(PEM)
        self.chain_pem = b"".join(one.public_bytes(PEM) for one in chain[:-1])

    def key_pem(self, passphrase: bytes | None = None, form: str = "PKCS8") -> bytes:
        """Returns the key as PEM. `form` is PKCS8 or TraditionalOpenSSL."""
        encryption = (
            serialization.BestAvailableEncryption(passphrase)
            if passphrase
            else serialization.NoEncryption()
        )
        return self.key.private_bytes(PEM, getattr(serialization.PrivateFormat, form), encryption)

    @property
    def both(self) -> bytes:
        """Certificate, chain and key in one PEM text."""
        return self.pem + self.chain_pem + self.key_pem()

    def p12(self, passphrase: bytes = b"", algorithm=None) -> bytes:
        """Returns PKCS#12 as OpenSSL 3 writes it, or with an older `algorithm` and SHA-1."""
        encryption = serialization.PrivateFormat.PKCS12.encryption_builder()
        if algorithm is not None:
            encryption = encryption.key_cert_algorithm(algorithm).hmac_hash(hashes.SHA1())
        return pkcs12.serialize_key_and_certificates(
            b"plant", self.key, self.certificate, self.chain, encryption.build(passphrase)
        )
