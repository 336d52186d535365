"""Key files that require much work, and endless files."""

import datetime
import os
import signal
import subprocess
import sys
import time

import pytest
import siteline
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import PrivateFormat, pkcs12
from kit import systems
from kit.certificates import named, now

pytestmark = pytest.mark.once

KEY = siteline.PrivateKey.generate(2048)


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
    cipher = der(
        0x30, der(6, bytes.fromhex("60864801650304012a")), der(4, bytes(16))
    )  # AES-256-CBC
    pbes2 = der(6, bytes.fromhex("2a864886f70d01050d"))
    return der(0x30, der(0x30, pbes2, der(0x30, derivation, cipher)), der(4, bytes(1_280)))


SCRYPT, PBKDF2 = "2b06010401da47040b", "2a864886f70d01050c"


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (encrypted(SCRYPT, number(2**25), number(8), number(1)), "32768 MiB of memory"),
        (encrypted(SCRYPT, number(2**14), number(2**15), number(1)), "MiB of memory"),
        (encrypted(SCRYPT, number(2**14), number(8), number(2**15 - 1)), "more work"),
        (encrypted(PBKDF2, number(2**31)), "2147483648 rounds"),
        (encrypted(PBKDF2, number(2**31 - 1)), "2147483647 rounds"),
    ],
)
def test_a_key_that_asks_for_too_much_is_refused_at_once(key, said, tmp_path):
    with pytest.raises(siteline.CredentialError, match=said) as caught:
        siteline.PrivateKey(key, passphrase="horse")
    assert "openssl" in caught.value.hint
    file = tmp_path / "key.der"
    file.write_bytes(key)
    with pytest.raises(siteline.CredentialError, match=said):
        siteline.MutualTls(file, passphrase="horse")


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


WAITING = """
import os, sys
import siteline
path, what = sys.argv[1:]
try:
    print("ready", flush=True)
    if what == "key":
        siteline.PrivateKey.load(path)
    elif what == "certificate":
        siteline.MutualTls(path)
    elif what == "profile":
        os.environ["SITELINE_CONFIG"] = path
        siteline.Client.from_profile("plant")
    else:
        key = siteline.Credential("p", siteline.PrivateKey.generate(2048))
        siteline.Client("https://plant.example", credential=key, ca_bundle=path)
except KeyboardInterrupt:
    sys.exit(7)
"""


@systems.MODES
@systems.SIGNALS
@pytest.mark.parametrize("what", ["key", "certificate", "bundle", "profile"])
def test_a_pipe_without_a_writer_is_left_by_an_interrupt(tmp_path, what):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    command = [sys.executable, "-c", WAITING, str(pipe), what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        process.kill()
    assert process.returncode == 7


@systems.MODES
def test_a_key_and_a_profile_are_read_from_a_pipe(tmp_path, monkeypatch):
    file = tmp_path / "key.pem"
    KEY.save(file)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    with subprocess.Popen(["cp", file, pipe]):
        assert siteline.PrivateKey.load(pipe).thumbprint == KEY.thumbprint
    config = tmp_path / "config.toml"
    config.write_text(
        f"[plant]\nbase_url = 'https://plant.example'\nsubject = 'p'\n"
        f"private_key_file = '{file}'\nledger = 'memory'\n"
    )
    monkeypatch.setenv("SITELINE_CONFIG", str(pipe))
    with subprocess.Popen(["cp", config, pipe]):
        assert siteline.Client.from_profile("plant").subject == "p"


@systems.MODES
def test_a_file_without_an_end_is_refused():
    with pytest.raises(siteline.CredentialError, match="over 1 MiB"):
        siteline.PrivateKey.load("/dev/zero")
    with pytest.raises(siteline.CredentialError, match="over 1 MiB"):
        siteline.MutualTls("/dev/zero")
    key = siteline.Credential("p", KEY)
    with pytest.raises(siteline.ConfigError, match="file too large"):
        siteline.Client("https://plant.example", credential=key, ca_bundle="/dev/zero")
