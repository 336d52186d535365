"""Issues certificates for clients and servers."""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PEM = serialization.Encoding.PEM


def now() -> datetime.datetime:
    """Returns the current time of this machine."""
    return datetime.datetime.now(datetime.UTC)


def named(text: str) -> x509.Name:
    """Returns a distinguished name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Issuer:
    """A certificate authority."""

    def __init__(self, name: str = "plant authority") -> None:
        self.key, self.name = ec.generate_private_key(ec.SECP256R1()), named(name)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self.pem = self._signed(self.name, self.key, (-365, 365), basic)

    def issue(self, name="plant-7", *, begins=-1, ends=30, for_clients=True, names=()) -> Issued:
        """Issues a certificate. `begins` and `ends` are days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if for_clients else ExtendedKeyUsageOID.SERVER_AUTH
        extensions = [x509.ExtendedKeyUsage([usage])]
        extensions += [x509.SubjectAlternativeName(names)] if names else []
        return Issued(self._signed(named(name), key, (begins, ends), *extensions), key)

    def _signed(self, subject, key, days, *extensions) -> bytes:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now() + datetime.timedelta(days=days[0]))
            .not_valid_after(now() + datetime.timedelta(days=days[1]))
        )
        for extension in extensions:
            is_critical = isinstance(extension, x509.BasicConstraints)
            builder = builder.add_extension(extension, critical=is_critical)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(PEM)


class Issued:
    """A certificate with its key."""

    def __init__(self, pem: bytes, key: ec.EllipticCurvePrivateKey) -> None:
        self.pem, self.key = pem, key

    def key_pem(self, passphrase: bytes | None = None) -> bytes:
        """Returns the key as PKCS#8."""
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if passphrase:
            encryption = serialization.BestAvailableEncryption(passphrase)
        return self.key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, encryption)

    @property
    def both(self) -> bytes:
        """Certificate and key in one PEM text."""
        return self.pem + self.key_pem()
