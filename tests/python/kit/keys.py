"""The private keys of ``tests/keys``. No test makes its own RSA key, because that takes long."""

from pathlib import Path

import siteline

KEYS = Path(__file__).resolve().parents[2] / "keys"

FILE = KEYS / "pkcs8.pem"
PEM = FILE.read_text()

OTHER_FILE = KEYS / "other.pem"
OTHER_PEM = OTHER_FILE.read_text()


def private_key() -> siteline.PrivateKey:
    """Returns a key of 2048 bits, always the same one."""
    return siteline.PrivateKey(PEM)


def other_private_key() -> siteline.PrivateKey:
    """Returns a second key, for tests that replace or confuse keys."""
    return siteline.PrivateKey(OTHER_PEM)
