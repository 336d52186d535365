"""Keys and certificates that are read from pipes, or that refer to each other in a circle."""

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
