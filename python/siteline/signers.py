"""Signers for keys in a vault: Azure Key Vault, AWS KMS, Google Cloud KMS and PKCS#11.

>>> from siteline.signers import AwsKms  # doctest: +SKIP
>>> credential = siteline.Credential("subject", signer=AwsKms("alias/plant"))  # doctest: +SKIP

The constructor requests the public key, and refuses a key that cannot make RS256 signatures. Each
assertion, about one in ten minutes, is one signature of the vault. A :class:`CredentialError` has
the exception of the vault's package as ``__cause__``. A signer cannot be pickled: each process
makes its own.
"""

from __future__ import annotations

import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from os import PathLike
from typing import Any

from siteline import _passphrase
from siteline._doors import OfThisProcess
from siteline._keywords import explained
from siteline.errors import CredentialError

__all__ = ["AwsKms", "AzureKeyVault", "GoogleKms", "Pkcs11"]

_INSTEAD = "make the signer in the process that uses it"
_RS256 = "RSASSA_PKCS1_V1_5_SHA_256"
_SECONDS = 10
"""Time limit of a request: the time limit of an async signer is 15 seconds."""


class _Asynchronous(OfThisProcess):
    """Signs in a thread, so that the event loop can run meanwhile."""

    _instead = _INSTEAD

    def __init__(self, signer: _Signer) -> None:
        self._signer = signer

    @property
    def public_jwk(self) -> dict[str, str]:
        return self._signer.public_jwk

    async def __call__(self, data: bytes) -> bytes:
        import asyncio

        return await asyncio.to_thread(self._signer, data)


class _Signer(OfThisProcess):
    """A key in a vault. A call with the bytes to sign returns the RS256 signature."""

    _instead = _INSTEAD

    def _use(self, modulus: bytes, exponent: bytes, sign: Callable[[bytes], Any]) -> None:
        modulus, exponent = modulus.lstrip(b"\0"), exponent.lstrip(b"\0")
        bits = int.from_bytes(modulus).bit_length()
        _check(2048 <= bits <= 4096, f"it has {bits} bits")
        self._numbers = {"e": _base64(exponent), "kty": "RSA", "n": _base64(modulus)}
        self._sign = sign

    @property
    def public_jwk(self) -> dict[str, str]:
        """The public key to enroll: ``kty``, ``n``, ``e``, ``kid``, ``alg`` and ``use``."""
        return {**self._numbers, "kid": self.kid, "alg": "RS256", "use": "sig"}

    @property
    def kid(self) -> str:
        """The RFC 7638 thumbprint of the public key."""
        text = '{{"e":"{e}","kty":"{kty}","n":"{n}"}}'.format(**self._numbers)
        return _base64(sha256(text.encode()).digest())

    @property
    def asynchronous(self) -> Callable[[bytes], Any]:
        """The signer for an ``AsyncClient``. It signs in a thread, without blocking the loop."""
        return _Asynchronous(self)

    def __call__(self, data: bytes) -> bytes:
        """Return the signature of ``data``."""
        try:
            return bytes(self._sign(data))
        except StopIteration as error:
            # asyncio cannot store a StopIteration in a future, and would wait forever.
            raise RuntimeError("The vault's package raised StopIteration.") from error

    def __repr__(self) -> str:
        """Show the thumbprint, which is public."""
        kid = self.kid if hasattr(self, "_numbers") else "unknown"
        return f"<{type(self).__name__} kid={kid}>"


class AzureKeyVault(_Signer):
    """A key of Azure Key Vault or Managed HSM. It needs the permissions "get" and "sign".

    Args:
        key_id: The address of the key, ``https://NAME.vault.azure.net/keys/KEY/VERSION``. Without
            a version, the version that is current now is used.
        credential: A credential of ``azure.identity``, ``DefaultAzureCredential()`` by default.

    Raises:
        CredentialError: The key cannot be read, or cannot sign with RS256.
    """

    @explained(client="credential=", key="key_id=")
    def __init__(self, key_id: str, *, credential: Any = None) -> None:
        """Request the public key."""
        with _reported(self):
            from azure.keyvault.keys import KeyClient, KeyVaultKeyIdentifier
            from azure.keyvault.keys.crypto import CryptographyClient, SignatureAlgorithm

            at, identity = KeyVaultKeyIdentifier(key_id), credential
            if identity is None:
                from azure.identity import DefaultAzureCredential

                identity = DefaultAzureCredential()
            limits = {"connection_timeout": _SECONDS, "read_timeout": _SECONDS}
            client = KeyClient(at.vault_url, identity, **limits)
            key = client.get_key(at.name, at.version)
            jwk: Any = key.key
            kind = getattr(jwk.kty, "value", jwk.kty)
            _check(kind in ("RSA", "RSA-HSM"), f"its type is {kind}")
            _check("sign" in key.key_operations, "the operation sign is not allowed")
            _check(key.properties.enabled is not False, "it is disabled")
            vault = CryptographyClient(key.id, identity, **limits)
            rs256 = SignatureAlgorithm.rs256
            self._use(jwk.n, jwk.e, lambda data: vault.sign(rs256, sha256(data).digest()).signature)


class AwsKms(_Signer):
    """A key of AWS KMS. It needs the permissions ``kms:GetPublicKey`` and ``kms:Sign``.

    Args:
        key_id: An id, ARN or alias of a key for signatures: ``RSA_2048``, ``RSA_3072`` or
            ``RSA_4096``.
        client: A KMS client of boto3. By default one with the settings of the environment, in the
            region of the ARN.

    Raises:
        CredentialError: The key cannot be read, or cannot sign with RS256.
    """

    @explained(credential="client=", region="client=", key="key_id=")
    def __init__(self, key_id: str, *, client: Any = None) -> None:
        """Request the public key."""
        with _reported(self):
            kms = client
            if kms is None:
                import boto3
                from botocore.config import Config

                limits = Config(connect_timeout=_SECONDS, read_timeout=_SECONDS)
                region = key_id.split(":")[3] if key_id.startswith("arn:") else None
                kms = boto3.client("kms", region_name=region, config=limits)
            key = kms.get_public_key(KeyId=key_id)
            _check(_RS256 in key.get("SigningAlgorithms", ()), f"it does not allow {_RS256}")

            def sign(data: bytes) -> Any:
                # An alias may refer to another key later. Its signatures would be refused.
                how = {"KeyId": key["KeyId"], "SigningAlgorithm": _RS256, "MessageType": "RAW"}
                return kms.sign(Message=data, **how)["Signature"]

            self._use(*_numbers(key["PublicKey"]), sign)


class GoogleKms(_Signer):
    """A key of Google Cloud KMS. It needs the role ``cloudkms.signerVerifier``.

    Args:
        key_version: ``projects/…/locations/…/keyRings/…/cryptoKeys/…/cryptoKeyVersions/1``. Its
            algorithm is RSA, PKCS#1 v1.5, SHA-256.
        client: A ``KeyManagementServiceClient``. By default one with the credentials of the
            environment.

    Raises:
        CredentialError: The key cannot be read, or cannot sign with RS256.
    """

    @explained(credential="client=", key_id="key_version=", key="key_version=")
    def __init__(self, key_version: str, *, client: Any = None) -> None:
        """Request the public key."""
        with _reported(self):
            kms = client
            if kms is None:
                from google.cloud.kms import KeyManagementServiceClient

                kms = KeyManagementServiceClient()
            name = {"name": key_version}
            key = kms.get_public_key(request=name, timeout=_SECONDS)
            kind = key.algorithm.name
            usable = kind.startswith("RSA_SIGN_PKCS1_") and kind.endswith("_SHA256")
            _check(usable, f"its algorithm is {kind}")

            def sign(data: bytes) -> Any:
                request = {**name, "digest": {"sha256": sha256(data).digest()}}
                return kms.asymmetric_sign(request=request, timeout=_SECONDS).signature

            self._use(*_numbers(key.pem.encode()), sign)


class Pkcs11(_Signer):
    """A key in a hardware token, by its PKCS#11 library.

    The session stays open until the process ends, and signs for one thread at a time. A forked
    child makes its own signer.

    Args:
        module: The library of the token's maker.
        token: The label of the token.
        key: The label of the private key, or its id as ``bytes``.
        pin_command: A command that prints the PIN as its first line, as ``password_command`` of
            :class:`siteline.Credential`.

    Raises:
        CredentialError: The key cannot be used, or cannot sign with RS256.
    """

    @explained(pin="pin_command=", library="module=", label="key=", token_label="token=")
    def __init__(
        self,
        module: str | PathLike[str],
        *,
        token: str,
        key: str | bytes,
        pin_command: str | Sequence[str],
    ) -> None:
        """Open a session and read the public key."""
        with _reported(self):
            import pkcs11

            wanted: Any = {"label": key} if isinstance(key, str) else {"id": key}
            command = _passphrase.words(pin_command)
            slot = pkcs11.lib(str(module)).get_token(token_label=token)
            try:
                session = slot.open(user_pin=_passphrase.printed(command).decode())
            except pkcs11.exceptions.UserAlreadyLoggedIn:  # by another signer of this process
                session = slot.open()
            private: Any = session.get_key(object_class=pkcs11.ObjectClass.PRIVATE_KEY, **wanted)
            kind = private.key_type
            _check(kind == pkcs11.KeyType.RSA, f"its type is {kind.name}")
            _check(private[pkcs11.Attribute.SIGN], "it may not sign")
            numbers = private[pkcs11.Attribute.MODULUS], private[pkcs11.Attribute.PUBLIC_EXPONENT]
            lock, how = threading.Lock(), pkcs11.Mechanism.SHA256_RSA_PKCS

            def sign(data: bytes) -> Any:
                with lock:
                    return private.sign(data, mechanism=how)

            self._use(*numbers, sign)


_EXTRAS = {"AzureKeyVault": "azure", "AwsKms": "aws", "GoogleKms": "gcp", "Pkcs11": "pkcs11"}


@contextmanager
def _reported(signer: _Signer) -> Iterator[None]:
    """Turn errors of a vault's package into errors of siteline."""
    name = type(signer).__name__
    try:
        yield
    except ModuleNotFoundError as error:
        text = f"{name} needs {error.name}: pip install 'siteline[{_EXTRAS[name]}]'"
        raise ImportError(text, name=error.name) from error
    except CredentialError:
        raise
    except Exception as error:
        text = f"{name} could not read its public key: {type(error).__name__}."
        hint = "The exception of the vault's package is the __cause__ of this error."
        raise CredentialError(text, hint=hint) from error


def _check(usable: bool, fault: str) -> None:
    if not usable:
        hint = "Make an RSA key of 2048 to 4096 bits for PKCS#1 v1.5 signatures with SHA-256."
        raise CredentialError(f"The key cannot sign with RS256: {fault}.", hint=hint)


def _numbers(public_key: bytes) -> tuple[bytes, bytes]:
    """Return the modulus and the exponent of a public key in PEM or DER."""
    from cryptography.hazmat.primitives import serialization as pki
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    is_pem = public_key.startswith(b"-")
    load = pki.load_pem_public_key if is_pem else pki.load_der_public_key
    found: Any = load(public_key)
    _check(isinstance(found, RSAPublicKey), "it is not an RSA key")
    numbers = found.public_numbers()
    return numbers.n.to_bytes(1 + found.key_size // 8, "big"), numbers.e.to_bytes(8, "big")


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
