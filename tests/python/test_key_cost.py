"""Key files that require much work, and files without an end."""

import datetime
import os
import subprocess

import pytest
import siteline
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import PrivateFormat, pkcs12
from kit import systems
from kit.certificates import named, now
from kit.interrupts import interrupted
from kit.keys import private_key

pytestmark = pytest.mark.once


def der(tag: int, *content: bytes) -> bytes:
    body = b"".join(content)
    if len(body) < 128:
        return bytes([tag, len(body)]) + body
    return bytes([tag, 0x82]) + len(body).to_bytes(2, "big") + body


def number(value: int) -> bytes:
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def encrypted(oid: str, *parameters: bytes) -> bytes:
    """Returns an encrypted PKCS#8 key with the given key derivation."""
    salt = der(4, b"saltsalt")
    derivation = der(0x30, der(6, bytes.fromhex(oid)), der(0x30, salt, *parameters))
    cipher = der(0x30, der(6, bytes.fromhex("60864801650304012a")), der(4, bytes(16)))  # AES-256
    pbes2 = der(6, bytes.fromhex("2a864886f70d01050d"))
    return der(0x30, der(0x30, pbes2, der(0x30, derivation, cipher)), der(4, bytes(1_280)))


SCRYPT, PBKDF2 = "2b06010401da47040b", "2a864886f70d01050c"


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (encrypted(SCRYPT, number(2**25), number(8), number(1)), "32768 MiB of memory"),
        (encrypted(PBKDF2, number(2**31)), "2147483648 rounds"),
    ],
)
def test_a_key_that_requires_too_much_work_is_refused(key, said):
    for make in (siteline.PrivateKey, siteline.MutualTls):
        with pytest.raises(siteline.errors.CredentialError, match=said):
            make(key, passphrase="horse")


@pytest.mark.parametrize("scheme", ["PBESv2SHA256AndAES256CBC", "PBESv1SHA1And3KeyTripleDESCBC"])
def test_pkcs12_with_a_circle_of_issuers_is_read(scheme):
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(3)]
    names = [named(text) for text in ("leaf", "one", "other")]
    certificates = [
        x509.CertificateBuilder()
        .subject_name(names[subject])
        .issuer_name(names[issuer])
        .public_key(keys[subject].public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now())
        .not_valid_after(now() + datetime.timedelta(days=1))
        .sign(keys[issuer], hashes.SHA256())
        for subject, issuer in [(0, 1), (1, 2), (2, 1)]
    ]
    leaf, *others = certificates
    builder = PrivateFormat.PKCS12.encryption_builder().hmac_hash(hashes.SHA256())
    encryption = builder.key_cert_algorithm(getattr(pkcs12.PBES, scheme)).build(b"horse")
    bundle = pkcs12.serialize_key_and_certificates(b"p", keys[0], leaf, others, encryption)
    assert siteline.MutualTls(bundle, passphrase="horse").subject == "CN=leaf"


@systems.MODES
@systems.SIGNALS
def test_ctrl_c_ends_the_wait_for_a_pipe_without_a_writer(tmp_path, monkeypatch, key):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    monkeypatch.setenv("SITELINE_CONFIG", str(pipe))

    def write():
        """Ends a wait that SIGINT has not ended."""
        os.close(os.open(pipe, os.O_WRONLY))

    credential = siteline.Credential("p", key)
    for read in (
        lambda: siteline.PrivateKey.load(pipe),
        lambda: siteline.MutualTls(pipe),
        lambda: siteline.Client(profile="plant"),
        lambda: siteline.Client("https://plant.example", credential=credential, ca_bundle=pipe),
    ):
        assert interrupted(read, otherwise=write)


@systems.MODES
def test_a_key_and_a_profile_are_read_from_a_pipe(tmp_path, monkeypatch, key_file):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    with subprocess.Popen(["cp", key_file, pipe]):
        assert siteline.PrivateKey.load(pipe).thumbprint == private_key().thumbprint
    config = tmp_path / "config.toml"
    config.write_text(
        f"[plant]\nbase_url = 'https://plant.example'\nsubject = 'p'\n"
        f"private_key_file = '{key_file}'\nledger = 'memory'\n"
    )
    monkeypatch.setenv("SITELINE_CONFIG", str(pipe))
    with subprocess.Popen(["cp", config, pipe]):
        assert siteline.Client(profile="plant").subject == "p"


@systems.MODES
def test_a_file_without_an_end_is_refused(key):
    for make in (siteline.PrivateKey.load, siteline.MutualTls):
        with pytest.raises(siteline.errors.CredentialError, match="over 1 MiB"):
            make("/dev/zero")
    credential = siteline.Credential("p", key)
    with pytest.raises(siteline.errors.ConfigError, match="file too large"):
        siteline.Client("https://plant.example", credential=credential, ca_bundle="/dev/zero")
