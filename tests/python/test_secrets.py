"""No text contains a secret: neither unencoded nor in base64, in hex or URL-encoded."""

import base64
import json
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from kit.command import run_program
from kit.keys import FILE
from kit.secret_forms import forms, found

PASSPHRASE = "correct horse battery staple"
PROXY_PASSWORD = "pr0xy-pa55word"

SCENARIO = Path(__file__).with_name("secrets_scenario.py")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The output of the scenario with all logging on, and the secrets that it used."""
    folder = tmp_path_factory.mktemp("secrets")
    env = {"RUST_LOG": "trace", "RUST_BACKTRACE": "full", "PYTHONWARNINGS": ""}
    program = (sys.executable, "-X", "dev", SCENARIO, PASSPHRASE, PROXY_PASSWORD, folder, FILE)
    ran = run_program(*program, env=env, cwd=folder, text=False)
    assert ran.returncode == 0, ran.stderr.decode()[-3_000:]
    return ran.stdout + ran.stderr, folder


def key_parts(folder: Path):
    """Parts of the private halves, as text of their files and as bytes."""
    lines = (folder / "plain.pem").read_text().splitlines()[1:-1]
    der = base64.b64decode("".join(lines))
    # The public modulus is in the first third.
    half = len(der) // 2
    yield from (line.encode() for line in lines[len(lines) // 2 : -1])
    yield from (der[start : start + 24] for start in range(half, len(der) - 24, 24))
    for pem in json.loads((folder / "keys.json").read_text()):
        key = serialization.load_pem_private_key(pem[pem.index("-----BEGIN PRIV") :].encode(), None)
        yield key.private_numbers().private_value.to_bytes(32, "big")
        yield pem.splitlines()[-3].encode()


def secrets_of(folder: Path, *kinds: str) -> list[str]:
    """The secrets of these kinds, and the secret parts of assertions, tokens and cursors."""
    known = json.loads((folder / "secrets.json").read_text())
    whole = [one for kind in kinds for one in known[kind]]
    assert len(whole) >= len(kinds)
    # An assertion's signature and a cursor's last part are secrets too.
    headers = {one.split(".")[0] for one in whole}
    tails = {part for one in whole for part in one.split(".") if len(part) > 40} - headers
    return whole + [tail[-40:] for tail in tails]


KINDS = ("tokens", "assertions", "cursors")


def test_no_text_holds_a_token_an_assertion_or_a_cursor(run):
    text, folder = run
    assert [one for one in secrets_of(folder, *KINDS) if found(one.encode(), text)] == []


def test_no_text_holds_a_private_key(run):
    text, folder = run
    assert [part for part in key_parts(folder) if found(part, text)] == []


def test_no_text_holds_a_passphrase_or_the_password_of_a_proxy(run):
    for secret in (PASSPHRASE, "wrong one", PROXY_PASSWORD):
        assert not found(secret.encode(), run[0]), secret


def test_nothing_that_is_stored_or_pickled_holds_a_secret_but_cursors_where_they_belong(run):
    _, folder = run
    kept = {file.name: file.read_bytes() for file in (folder / "kept").iterdir()}
    # The secrets of the clients, and the passphrase.
    never = [one.encode() for one in secrets_of(folder, "tokens", "assertions")]
    never += [*key_parts(folder), PASSPHRASE.encode()]
    for name, content in kept.items():
        assert [one for one in never if found(one, content)] == [], name
    # A store and a bookmark contain the cursor of an unfinished chain.
    cursors = [one.encode() for one in secrets_of(folder, "cursors")]
    with_cursor = {n for n, content in kept.items() if any(found(one, content) for one in cursors)}
    assert "bookmark-with-cursor.pickle" in with_cursor
    assert with_cursor & {"plant.siteline", "plant.siteline-wal"}
    assert {n for n in with_cursor if n != "bookmark-with-cursor.pickle"} <= {
        "plant.siteline", "plant.siteline-wal",
    }  # fmt: skip
    assert {"plant.ledger", "token.ledger", "data.ledger"} <= set(kept)
    assert len(kept) >= 15, sorted(kept)


def test_the_output_holds_texts_of_every_kind(run):
    text = run[0].decode()
    for word in ("siteline.http", "siteline.token", "Traceback", "<svg",
                 "ServiceUnavailable", "cursor#", "ProxyError", "Progress(", "RequestEvent(",
                 "MutualTls", "refused the client certificate", "thread 0x",
                 "the previous one is used"):  # fmt: skip
        assert word in text, word


def test_a_secret_would_be_found_in_each_form():
    secret = b"a-secret+/with=odd signs in it"
    for text in forms(secret):
        assert found(secret, b"something " + text + b" after")
    for before in (b"", b"1", b"12", b"123"):
        assert found(secret, base64.b64encode(before + secret + b"after"))
        assert found(secret, base64.urlsafe_b64encode(before + secret + b"after"))
