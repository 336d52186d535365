"""No secret is in any text: searched for unencoded, in base64, in hex, URL-encoded."""

import base64
import json
import os
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest

PASSPHRASE = "correct horse battery staple"
PROXY_PASSWORD = "pr0xy-pa55word"

SCENARIO = Path(__file__).with_name("secrets_scenario.py")


def forms(secret: bytes):
    """The secret unencoded and in each encoding of bytes as text."""
    yield secret
    yield urllib.parse.quote(secret, safe="").encode()
    yield urllib.parse.quote_plus(secret).encode()
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    yield json.dumps(secret.decode("latin-1"))[1:-1].encode()
    for shift in range(3):
        # At each offset in the encoded bytes; the edges depend on the bytes around the secret.
        encoded = base64.b64encode(b"\0" * shift + secret)
        core = encoded[4:-4]
        yield core
        yield core.translate(bytes.maketrans(b"+/", b"-_"))


def found(secret: bytes, text: bytes) -> bool:
    return any(form in text for form in forms(secret) if len(form) >= 8)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The output of the scenario with all logging on, and the secrets that it used."""
    folder = tmp_path_factory.mktemp("secrets")
    environment = {
        **os.environ,
        "RUST_LOG": "trace",
        "RUST_BACKTRACE": "full",
        "PYTHONWARNINGS": "",
    }
    ran = subprocess.run(
        [sys.executable, "-X", "dev", SCENARIO, PASSPHRASE, PROXY_PASSWORD, str(folder)],
        capture_output=True,
        timeout=300,
        env=environment,
        cwd=folder,
    )
    assert ran.returncode == 0, ran.stderr.decode()[-3_000:]
    return ran.stdout + ran.stderr, folder


def key_parts(folder: Path):
    """Parts of the private half, as text of the key's file and as bytes."""
    lines = (folder / "plain.pem").read_text().splitlines()[1:-1]
    der = base64.b64decode("".join(lines))
    # The public modulus is in the first third.
    half = len(der) // 2
    yield from (line.encode() for line in lines[len(lines) // 2 : -1])
    yield from (der[start : start + 24] for start in range(half, len(der) - 24, 24))


@pytest.mark.fault("R13")
def test_no_text_holds_a_token_an_assertion_or_a_cursor(run):
    text, folder = run
    secrets = json.loads((folder / "secrets.json").read_text())
    assert len(secrets) >= 6
    assert [one for one in secrets if found(one.encode(), text)] == []
    # An assertion's signature and a cursor's last part are secrets too.
    tails = {part for one in secrets for part in one.split(".") if len(part) > 40}
    headers = {one.split(".")[0] for one in secrets}
    assert [one for one in tails - headers if found(one[-40:].encode(), text)] == []


@pytest.mark.fault("R13")
def test_no_text_holds_the_private_key(run):
    text, folder = run
    assert [part for part in key_parts(folder) if found(part, text)] == []


@pytest.mark.fault("R13")
@pytest.mark.parametrize("secret", [PASSPHRASE, "wrong one", PROXY_PASSWORD])
def test_no_text_holds_a_passphrase_or_the_password_of_a_proxy(run, secret):
    assert not found(secret.encode(), run[0])


def test_the_output_holds_texts_of_every_kind(run):
    text = run[0].decode()
    for word in ("siteline.http", "siteline.token", "Traceback", "<svg",
                 "ServiceUnavailable", "cursor#", "ProxyError", "Progress("):  # fmt: skip
        assert word in text, word


@pytest.mark.parametrize("form", range(12))
def test_a_secret_would_be_found_in_each_form(form):
    secret = b"a-secret+/with=odd signs in it"
    text = list(forms(secret))[form]
    assert found(secret, b"something " + text + b" after")


def test_a_secret_would_be_found_inside_base64():
    secret = b"a-secret+/with=odd signs in it"
    for before in (b"", b"1", b"12", b"123"):
        assert found(secret, base64.b64encode(before + secret + b"after"))
        assert found(secret, base64.urlsafe_b64encode(before + secret + b"after"))
