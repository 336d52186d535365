"""Keys and credentials in Python; the rows K1 to K8 and K12."""

from __future__ import annotations

import base64
import copy
import gc
import json
import os
import pickle
import subprocess
import traceback
from pathlib import Path
from shutil import which
from urllib.parse import quote

import pytest
import siteline
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from kit import systems

KEYS = Path(__file__).parent.parent / "keys"
PKCS8 = (KEYS / "pkcs8.pem").read_text()
PASSPHRASE = "correct-horse-battery"
THUMBPRINT = "Glxfsfx2VnL8RGBt3yhYhPZJLrxEDKCG1dl7YD2qatY"


@pytest.fixture(scope="module")
def key() -> siteline.PrivateKey:
    return siteline.PrivateKey(PKCS8)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key.pem"
    path.write_text(PKCS8)
    path.chmod(0o600)
    return path


@pytest.mark.fault("K5")
def test_a_key_is_accepted_as_every_kind_of_python_value(key_file: Path) -> None:
    jwk_text = (KEYS / "rsa.jwk.json").read_text()
    body = "".join(PKCS8.splitlines()[2:-1])
    sources = [
        key_file,
        str(key_file),
        PKCS8,
        PKCS8.encode(),
        bytearray(PKCS8.encode()),
        memoryview(PKCS8.encode()),
        base64.b64decode(body),
        body,
        jwk_text,
        jwk_text.encode(),
        json.loads(jwk_text),
        siteline.PrivateKey(PKCS8),
    ]
    for source in sources:
        assert siteline.PrivateKey(source).thumbprint == THUMBPRINT
        assert siteline.Credential("s", source).kid == THUMBPRINT


@pytest.mark.fault("K5")
def test_all_formats_that_another_library_writes_give_the_same_kid(tmp_path):
    rsa_key = rsa.generate_private_key(65537, 2048)
    pem = rsa_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key_file = tmp_path / "key.pem"
    key_file.touch(mode=0o600)
    key_file.write_bytes(pem)
    numbers = rsa_key.private_numbers()

    def b64(number):
        data = number.to_bytes((number.bit_length() + 7) // 8, "big")
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    jwk = {
        "kty": "RSA",
        "n": b64(numbers.public_numbers.n),
        "e": b64(numbers.public_numbers.e),
        "d": b64(numbers.d),
        "p": b64(numbers.p),
        "q": b64(numbers.q),
        "dp": b64(numbers.dmp1),
        "dq": b64(numbers.dmq1),
        "qi": b64(numbers.iqmp),
    }
    forms = [
        key_file,
        str(key_file),
        pem,
        pem.decode(),
        pem.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + pem,
        b"  \n" + pem + b"\n\n",
        jwk,
        json.dumps(jwk),
        rsa_key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
        rsa_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        rsa_key.private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
    ]
    assert len({siteline.PrivateKey(form).thumbprint for form in forms}) == 1


@pytest.mark.fault("K1")
def test_a_missing_key_file_is_named_and_an_empty_text_is_not_a_path(tmp_path: Path) -> None:
    with pytest.raises(siteline.CredentialError, match=r"absent\.pem"):
        siteline.PrivateKey(tmp_path / "absent.pem")
    with pytest.raises(siteline.CredentialError, match="is a directory"):
        siteline.PrivateKey.load(tmp_path)
    with pytest.raises(siteline.CredentialError, match="is empty"):
        siteline.PrivateKey("")


@pytest.mark.fault("K1")
@pytest.mark.parametrize("alter", [lambda t: t[:900], lambda t: t.replace("M", "*", 40), str.lower])
def test_key_text_is_never_echoed(alter) -> None:
    text = alter(PKCS8)
    try:
        siteline.PrivateKey(text)
    except siteline.CredentialError as error:
        shown = "".join(traceback.format_exception(error)) + repr(error) + str(error.__dict__)
        for line in text.splitlines()[2:-1]:
            for form in (line, base64.b64encode(line.encode()).decode(), quote(line, safe="")):
                assert form[:24] not in shown
    else:
        pytest.fail("a damaged key was accepted")


@pytest.mark.fault("K2", "K4")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("public.pem", "a public key"),
        ("certificate.pem", "a certificate"),
        ("ec_pkcs8.pem", "an EC key"),
        ("ed25519.pem", "an Ed25519 key"),
        ("rsa1024.pem", "1024 bits"),
    ],
)
def test_input_that_is_no_rsa_key_of_2048_bits_is_named(name: str, found: str) -> None:
    with pytest.raises(siteline.CredentialError, match=found):
        siteline.PrivateKey((KEYS / name).read_bytes())


@pytest.mark.fault("K3")
def test_a_passphrase_may_be_text_or_bytes_and_is_in_no_message() -> None:
    pem = (KEYS / "encrypted_pbkdf2.pem").read_bytes()
    for passphrase in (PASSPHRASE, PASSPHRASE.encode()):
        assert siteline.PrivateKey(pem, passphrase=passphrase).thumbprint == THUMBPRINT
    with pytest.raises(siteline.CredentialError, match="no passphrase"):
        siteline.PrivateKey(pem)
    with pytest.raises(siteline.CredentialError, match="decrypted") as caught:
        siteline.PrivateKey(pem, passphrase="open-sesame")
    assert "sesame" not in "".join(traceback.format_exception_only(caught.value))
    with pytest.raises(TypeError, match="str or bytes"):
        siteline.PrivateKey(pem, passphrase=12345678)  # type: ignore[arg-type]


@pytest.mark.fault("K6")
def test_a_stated_kid_is_checked(key: siteline.PrivateKey) -> None:
    with pytest.raises(siteline.CredentialError, match=THUMBPRINT):
        siteline.Credential("s", key, kid="my-key")
    assert siteline.Credential("s", key, kid=THUMBPRINT).kid == THUMBPRINT


@pytest.mark.fault("K8")
@systems.MODES
def test_a_key_file_that_others_can_read_warns_once_and_strict_refuses(key_file: Path) -> None:
    key_file.chmod(0o644)
    with pytest.warns(siteline.SitelineWarning, match="chmod 600") as caught:
        siteline.PrivateKey(key_file)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.raises(siteline.CredentialError, match="mode 644"):
        siteline.Credential("s", key_file, strict=True)


@pytest.mark.fault("K12")
def test_white_space_around_the_subject_is_removed_with_a_warning(
    key: siteline.PrivateKey,
) -> None:
    with pytest.warns(siteline.SitelineWarning, match="White space"):
        credential = siteline.Credential("customer-7\n", key)
    assert credential.subject == "customer-7"
    with pytest.raises(siteline.ConfigError, match="empty"):
        siteline.Credential(" ", key)


@systems.MODES
def test_a_saved_key_is_readable_only_by_its_owner_and_openssl_reads_it(
    key: siteline.PrivateKey, tmp_path: Path
) -> None:
    plain, encrypted = tmp_path / "plain.pem", tmp_path / "encrypted.pem"
    key.save(plain)
    key.save(str(encrypted), passphrase=PASSPHRASE)
    if os.name == "posix":
        assert [path.stat().st_mode & 0o777 for path in (plain, encrypted)] == [0o600, 0o600]
    assert siteline.PrivateKey(encrypted, passphrase=PASSPHRASE).thumbprint == THUMBPRINT
    with pytest.raises(siteline.CredentialError, match="exists already"):
        key.save(plain)
    key.save(plain, overwrite=True)
    if which("openssl") is None:
        pytest.skip("there is no openssl to check the keys with")
    for path in (plain, encrypted):
        command = ["openssl", "pkey", "-noout", "-check", "-in", path]
        subprocess.run([*command, "-passin", f"pass:{PASSPHRASE}"], check=True, capture_output=True)


def test_a_generated_key_has_3072_bits_by_default() -> None:
    assert siteline.PrivateKey.generate().bits == 3072
    with pytest.raises(siteline.CredentialError, match="1024"):
        siteline.PrivateKey.generate(1024)


def test_the_public_jwk_is_a_dict_without_private_members(key: siteline.PrivateKey) -> None:
    assert list(key.public_jwk) == ["kty", "n", "e", "kid", "alg", "use"]
    assert key.public_jwk["kid"] == key.thumbprint == THUMBPRINT
    assert siteline.Credential("s", key).public_jwk == key.public_jwk


@pytest.mark.fault("R13")
def test_a_key_and_a_credential_print_no_secret(key: siteline.PrivateKey) -> None:
    assert repr(key) == str(key) == f"<PrivateKey RSA 2048 bits, thumbprint={THUMBPRINT}>"
    credential = siteline.Credential("customer-7", key)
    assert repr(credential) == f'<Credential subject="customer-7" kid={THUMBPRINT}>'


@pytest.mark.fault("R12")
def test_keys_and_credentials_are_not_pickled_and_copies_are_identical(
    key: siteline.PrivateKey,
) -> None:
    for value in (key, siteline.Credential("s", key)):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(value)
        assert copy.copy(value) is value
        assert copy.deepcopy(value) is value


def test_a_credential_needs_either_a_key_or_a_signer(
    key: siteline.PrivateKey,
) -> None:
    cases = [
        ({}, "missing or None"),
        ({"private_key": key, "signer": len}, "not both"),
        ({"signer": len}, "needs public_jwk"),
        ({"private_key": key, "public_jwk": key.public_jwk}, "belongs to signer"),
        ({"signer": len, "public_jwk": json.loads((KEYS / "rsa.jwk.json").read_text())}, "private"),
        ({"signer": len, "public_jwk": {"kty": "EC"}}, "an EC key"),
    ]
    for arguments, message in cases:
        with pytest.raises(siteline.CredentialError, match=message):
            siteline.Credential("s", **arguments)
    for arguments in ({"private_key": 5}, {"signer": 5}, {"signer": len, "public_jwk": 5}):
        with pytest.raises(TypeError, match="of type int"):
            siteline.Credential("s", **arguments)


def test_a_credential_with_a_signer_accepts_the_public_jwk_as_dict_or_text(
    key: siteline.PrivateKey,
) -> None:
    for public in (key.public_jwk, json.dumps(key.public_jwk), json.dumps(key.public_jwk).encode()):
        credential = siteline.Credential("s", signer=lambda data: data, public_jwk=public)
        assert credential.kid == THUMBPRINT


def test_a_signer_is_released_with_its_credential(key: siteline.PrivateKey) -> None:
    class Vault:
        alive = 0

        def __init__(self) -> None:
            Vault.alive += 1

        def __del__(self) -> None:
            Vault.alive -= 1

        def __call__(self, data: bytes) -> bytes:
            return data

    credential = siteline.Credential("s", signer=Vault(), public_jwk=key.public_jwk)
    assert Vault.alive == 1
    del credential
    gc.collect()
    assert Vault.alive == 0
