"""Keys and credentials in Python: accepted values, errors, files, pickles."""

import gc
import json
import os
import pickle
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from shutil import which

import pytest
import siteline
from kit import systems
from kit.keys import KEYS, PEM, private_key

ENCRYPTED = (KEYS / "encrypted_pbkdf2.pem").read_bytes()
JWK = (KEYS / "rsa.jwk.json").read_text()
PASSPHRASE = "correct-horse-battery"
THUMBPRINT = "Glxfsfx2VnL8RGBt3yhYhPZJLrxEDKCG1dl7YD2qatY"


def test_a_key_is_accepted_as_every_python_value(key_file):
    body = "".join(PEM.splitlines()[2:-1])
    texts = [PEM, PEM.encode(), bytearray(PEM.encode()), memoryview(PEM.encode()), body]
    for source in [key_file, str(key_file), *texts, JWK, json.loads(JWK), private_key()]:
        assert siteline.PrivateKey(source).thumbprint == THUMBPRINT
        assert siteline.Credential("s", source).kid == THUMBPRINT


def test_a_passphrase_may_be_text_or_bytes():
    for passphrase in (PASSPHRASE, PASSPHRASE.encode()):
        assert siteline.PrivateKey(ENCRYPTED, passphrase=passphrase).thumbprint == THUMBPRINT
    with pytest.raises(TypeError, match="passphrase= is text or bytes"):
        siteline.PrivateKey(ENCRYPTED, passphrase=12345678)


@systems.MODES
def test_a_readable_key_file_warns_once_and_strict_refuses(tmp_path):
    path = tmp_path / "key.pem"
    path.write_text(PEM)
    path.chmod(0o644)
    with pytest.warns(siteline.SitelineWarning, match="chmod 600") as caught:
        siteline.PrivateKey(path)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(siteline.errors.CredentialError, match="mode 644"):
        siteline.Credential("s", path, strict=True)


@systems.MODES
def test_a_saved_key_is_private_and_openssl_reads_it(key, tmp_path):
    plain, encrypted = tmp_path / "plain.pem", tmp_path / "encrypted.pem"
    key.save(plain)
    key.save(str(encrypted), passphrase=PASSPHRASE)
    if os.name == "posix":
        assert [path.stat().st_mode & 0o777 for path in (plain, encrypted)] == [0o600, 0o600]
    assert siteline.PrivateKey(encrypted, passphrase=PASSPHRASE).thumbprint == THUMBPRINT
    with pytest.raises(siteline.errors.CredentialError, match="exists already"):
        key.save(plain)
    key.save(plain, overwrite=True)
    if which("openssl") is None:
        pytest.skip("there is no openssl to check the keys with")
    for path in (plain, encrypted):
        command = ["openssl", "pkey", "-noout", "-check", "-in", path]
        subprocess.run([*command, "-passin", f"pass:{PASSPHRASE}"], check=True, capture_output=True)


def test_a_key_and_a_credential_show_no_secret(key):
    assert list(key.public_jwk) == ["kty", "n", "e", "kid", "alg", "use"]
    assert key.public_jwk["kid"] == key.thumbprint == THUMBPRINT
    assert repr(key) == str(key) == f"<PrivateKey RSA 2048 bits, thumbprint={THUMBPRINT}>"
    with pytest.warns(siteline.SitelineWarning, match="White space"):
        credential = siteline.Credential("customer-7\n", key)
    assert credential.public_jwk == key.public_jwk
    assert repr(credential) == f'<Credential subject="customer-7" kid={THUMBPRINT}>'


def test_a_credential_needs_either_a_key_or_a_signer(key):
    for arguments, message in [
        ({}, "missing or None"),
        ({"private_key": key, "signer": len}, "not both"),
        ({"signer": len}, "needs public_jwk"),
        ({"private_key": key, "public_jwk": key.public_jwk}, "belongs to signer"),
        ({"public_jwk": key.public_jwk}, "missing or None"),
        ({"signer": len, "public_jwk": {}, "passphrase": "x"}, "belong to private_key"),
        ({"signer": len, "password_command": "x"}, "belong to private_key"),
        ({"private_key": key, "passphrase": "x", "password_command": "x"}, "both given"),
        ({"signer": len, "public_jwk": json.loads(JWK)}, "private"),
        ({"signer": len, "public_jwk": {"kty": "EC"}}, "an EC key"),
    ]:
        with pytest.raises(siteline.errors.CredentialError, match=message):
            siteline.Credential("s", **arguments)
    for arguments in ({"private_key": 5}, {"signer": 5}, {"signer": len, "public_jwk": 5}):
        with pytest.raises(TypeError, match="of type int"):
            siteline.Credential("s", **arguments)


def test_a_signer_has_a_public_jwk_and_is_released_with_its_credential(key):
    class Vault:
        alive = 0

        def __init__(self):
            Vault.alive += 1

        def __del__(self):
            Vault.alive -= 1

        def __call__(self, data):
            return data

    for public in (key.public_jwk, json.dumps(key.public_jwk), json.dumps(key.public_jwk).encode()):
        credential = siteline.Credential("s", signer=Vault(), public_jwk=public)
        assert credential.kid == THUMBPRINT
    assert Vault.alive == 1
    del credential
    gc.collect()
    assert Vault.alive == 0


class Plant(siteline.Credential):
    """A user's subclass."""


class Certificate(siteline.MutualTls):
    """A user's subclass."""


def test_a_pickle_keeps_settings_and_subclass(key_file):
    options = {"audience": "https://a", "assertion_lifetime": "1m", "clock_tolerance": 5}
    plant = Plant("customer-7", key_file, **options, typ=True)
    loaded = pickle.loads(pickle.dumps(plant))
    assert type(loaded) is Plant
    assert (loaded.subject, loaded.public_jwk) == (plant.subject, plant.public_jwk)
    settings = ("https://a", timedelta(minutes=1), timedelta(seconds=5), True)
    assert loaded._handle.facts()[3] == plant._handle.facts()[3] == settings
    certificate = Certificate(KEYS / "certificate.pem", key=key_file)
    loaded = pickle.loads(pickle.dumps(certificate))
    assert type(loaded) is Certificate
    assert loaded.thumbprint == certificate.thumbprint


def test_a_path_may_begin_with_a_tilde(key_file, monkeypatch):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(key_file.parent))
    path = f"~/{key_file.name}"
    assert siteline.PrivateKey(path).thumbprint == THUMBPRINT
    credential = siteline.Credential("s", path)
    monkeypatch.delenv("HOME")
    assert pickle.loads(pickle.dumps(credential)).kid == THUMBPRINT


PASSPHRASE_PROGRAMS = {
    "pass": r"show \S+",
    "keyring": r"get \S+ \S+",
    "op": r"read op://\w+/\S+/\w+",
    "az": r"keyvault secret show --vault-name \S+ --name \S+ --query value --output tsv",
}


@systems.MODES
def test_documented_password_commands_work(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "credentials.md").read_text(encoding="utf-8")
    commands = [json.loads(text) for text in re.findall(r"^\| .* \| `(\[.*\])` \|", page, re.M)]
    assert [command[0] for command in commands] == list(PASSPHRASE_PROGRAMS)
    for name, usage in PASSPHRASE_PROGRAMS.items():
        check = f"re.fullmatch({usage!r}, ' '.join(sys.argv[1:]))"
        script = f"import re, sys\nprint({PASSPHRASE!r} if {check} else 'wrong')\n"
        (tmp_path / name).write_text(f"#!{sys.executable}\n{script}")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for command in commands:
        assert siteline.Credential("s", ENCRYPTED, password_command=command).kid == THUMBPRINT
