"""Searches a text for a secret in each of its encodings."""

import base64
import json
import urllib.parse


def forms(secret: bytes):
    """Yields the secret unencoded and in each encoding of bytes as text."""
    yield secret
    yield urllib.parse.quote(secret, safe="").encode()
    yield urllib.parse.quote_plus(secret).encode()
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    yield json.dumps(secret.decode("latin-1"))[1:-1].encode()
    for shift in range(3):
        # The encoding depends on the secret's offset modulo 3. Its first and last characters also
        # depend on the bytes around the secret.
        encoded = base64.b64encode(b"\0" * shift + secret)
        core = encoded[4:-4]
        yield core
        yield core.translate(bytes.maketrans(b"+/", b"-_"))


def found(secret: bytes, text: bytes) -> bool:
    return any(form in text for form in forms(secret) if len(form) >= 8)
