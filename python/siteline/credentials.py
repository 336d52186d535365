"""Keys, credentials and client certificates."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from siteline._awaiting import is_async
from siteline._core import CertificateHandle, CredentialHandle, KeyHandle, _is_key_text, _variable
from siteline._escape import described, escaped
from siteline._handles import Itself, OfThisProcess
from siteline._keywords import explained
from siteline.errors import CredentialError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime, timedelta
    from typing import Self, TypeAlias

    _PathLike: TypeAlias = str | os.PathLike[str]
    _Bytes: TypeAlias = bytes | bytearray | memoryview
    _Duration: TypeAlias = float | timedelta | str
    _Signer: TypeAlias = Callable[[bytes], bytes] | Callable[[bytes], Awaitable[bytes]]
    # How another process finds a key and its passphrase, or the reason why it cannot.
    _Place: TypeAlias = dict[str, Any] | str
    _Reduced: TypeAlias = tuple[Callable[..., object], tuple[Any, ...]]

__all__ = ["Credential", "MutualTls", "PrivateKey"]

# These classes delete the parameters that contain secrets before an exception leaves a function:
# a traceback can show local variables.


class PrivateKey(OfThisProcess):
    """An RSA private key, which signs the assertions of a credential.

    The key is PKCS#8, encrypted PKCS#8, PKCS#1 or a JWK, of 2048 to 8192 bits. PEM text may be
    damaged by mail programs and editors: other line ends or none, ``\\n`` as two characters.

    Args:
        source: The path of a key file, or the key itself: PEM text, ``bytes`` of PEM, DER or JSON,
            or a JWK as ``dict``. PEM text is never used as a path.
        passphrase: Decrypts an encrypted key.
        strict: Reject a key file that other users can read, instead of a warning.

    Raises:
        CredentialError: The key cannot be used. The message contains no text of it.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "key.pem"
    >>> key = siteline.PrivateKey.generate()
    >>> key.save(path)
    >>> siteline.PrivateKey(path).thumbprint == key.thumbprint
    True
    >>> " ".join(sorted(key.public_jwk))
    'alg e kid kty n use'
    """

    _handle: KeyHandle
    _instead = "the pickle would contain the key, so save() it once and pass the path"

    @explained(password="passphrase=", path="siteline.PrivateKey.load(path)")
    def __init__(
        self,
        source: _PathLike | _Bytes | Mapping[str, Any] | PrivateKey,
        *,
        passphrase: str | bytes | None = None,
        strict: bool = False,
    ) -> None:
        """Read a key."""
        try:
            self._handle = KeyHandle(_located(source), passphrase, strict)
        finally:
            del source, passphrase

    @classmethod
    def load(
        cls, path: _PathLike, *, passphrase: str | bytes | None = None, strict: bool = False
    ) -> Self:
        """Read a key file. Unlike in ``PrivateKey(path)``, ``path`` is always a path.

        ``passphrase`` and ``strict`` are those of the class.

        Raises:
            CredentialError: The file is missing or unreadable, or its key cannot be used.
        """
        try:
            return cls._over(KeyHandle(_path(path), passphrase, strict))
        finally:
            del path, passphrase

    @classmethod
    def generate(cls, bits: int = 3072) -> Self:
        """Generate a key, which takes up to a few seconds.

        Args:
            bits: 2048, 3072 or 4096.

        Raises:
            CredentialError: Another number of bits.
        """
        return cls._over(KeyHandle.generate(bits))

    def save(
        self, path: _PathLike, *, passphrase: str | bytes | None = None, overwrite: bool = False
    ) -> None:
        """Write the key to ``path`` as PKCS#8 PEM that only its owner can read (mode 600).

        Args:
            passphrase: Encrypts the key with PBKDF2 and AES-256, as OpenSSL does it.
            overwrite: Replace an existing file atomically.

        Raises:
            CredentialError: The file exists, or it cannot be written.
        """
        try:
            self._handle.save(str(_path(path)), passphrase, overwrite)
        finally:
            del passphrase

    @property
    def public_jwk(self) -> dict[str, str]:
        """The public key to enroll: ``kty``, ``n``, ``e``, ``kid``, ``alg`` and ``use``."""
        return self._handle.facts()[0]

    @property
    def thumbprint(self) -> str:
        """The RFC 7638 thumbprint of the public key: the ``kid`` of its assertions."""
        return self._handle.facts()[1]

    @property
    def bits(self) -> int:
        """The size of the key in bits."""
        return self._handle.facts()[2]

    def _text(self) -> str:
        return f"<PrivateKey RSA {self.bits} bits, thumbprint={self.thumbprint}>"


class Credential(Itself):
    """The subject that enrollment returned, and the key that signs its assertions.

    Pass either ``private_key`` or, for a key that stays in a vault, ``signer`` and ``public_jwk``.

    ``signer`` is called with the ``bytes`` to sign and returns the signature as ``bytes``:
    RSASSA-PKCS1-v1_5 with SHA-256 (RS256). Each signature is verified with ``public_jwk``. An
    exception of the signer is the ``__cause__`` of a :class:`CredentialError`. A plain function
    blocks the thread that waits for the token, in asyncio the event loop. An ``async`` function is
    awaited on the loop of the call, for at most 15 seconds. A :class:`Client` cannot await it:
    without a valid token it raises :class:`ConfigError` before any request.

    A pickle contains the path of the key and ``password_command``, and nothing secret. The command
    runs when the loaded credential is first used, so load only pickles of people who may run
    commands as you. A ``signer``, and a key or passphrase instead of a path, prevent a pickle.

    Args:
        subject: ``iss`` and ``sub`` of every assertion. White space around it is removed.
        private_key: A :class:`PrivateKey`, or any source of one.
        signer: Signs with a key that is not in this process.
        public_jwk: The public key of the signer, unless it is of :mod:`siteline.signers`.
        passphrase: Decrypts an encrypted key.
        password_command: A command that prints the passphrase as its first line, such as
            ``["pass", "show", "plant"]``. Text is split into words, without a shell. The command
            runs while the credential is made, for at most a minute.
        kid: The expected thumbprint of the key, which is only compared.
        strict: Reject a key file that other users can read.
        audience: ``aud`` of the assertions. By default the token endpoint,
            ``{base_url}/api/customer/oauth/token``.
        assertion_lifetime: Time from ``iat`` to ``exp``, at most five minutes, such as ``"2m"``.
        clock_tolerance: Time from ``nbf`` to ``iat``, at most a minute.
        typ: Add ``"typ": "JWT"`` to the header of the assertions.

    Raises:
        CredentialError: A wrong key or ``kid``, or both ``private_key`` and ``signer`` or none.
        ConfigError: An empty subject, or a setting of the assertions that the service rejects.

    >>> key = siteline.PrivateKey.generate(2048)
    >>> credential = siteline.Credential("customer-7", key)
    >>> credential.kid == key.thumbprint
    True
    >>> siteline.Credential("customer-7", key, kid="my-key")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    siteline.errors.CredentialError: kid="my-key" is not the thumbprint of this key...
    """

    _handle: CredentialHandle
    _place: _Place

    @explained(
        key="private_key=",
        key_file="private_key=",
        pem="private_key=",
        password="passphrase=",
        key_id="kid=",
        aud="audience=",
        jwk="public_jwk=",
        client_id="siteline.MutualTls(..., client_id=...)",
        certificate="siteline.MutualTls(certificate)",
    )
    def __init__(
        self,
        subject: str,
        private_key: _PathLike | _Bytes | Mapping[str, Any] | PrivateKey | None = None,
        *,
        signer: _Signer | None = None,
        public_jwk: Mapping[str, Any] | str | bytes | None = None,
        passphrase: str | bytes | None = None,
        password_command: str | Sequence[str] | None = None,
        kid: str | None = None,
        strict: bool = False,
        audience: str | None = None,
        assertion_lifetime: _Duration = "2m",
        clock_tolerance: _Duration = "0s",
        typ: bool = False,
    ) -> None:
        """Read the key. No request is sent."""
        assertions = (audience, assertion_lifetime, clock_tolerance, typ)
        try:
            is_async = signer is not None and _is_async(signer)
            if public_jwk is None:
                public_jwk = getattr(signer, "public_jwk", None)  # a signer of siteline.signers
            _check_sources(
                *(
                    source is not None
                    for source in (private_key, signer, public_jwk, passphrase, password_command)
                )
            )
            if signer is not None:
                self._place = "its signer is code of this process"
                self._handle = CredentialHandle(
                    subject, signer, kid, assertions, public_jwk, is_async
                )
                return
            private_key = _located(private_key)
            opener = _opener(password_command, strict, passphrase is not None)
            self._place = _place_of({"key": private_key}, passphrase, opener)
            key = KeyHandle(private_key, _passphrase(opener) or passphrase, strict)
            self._handle = CredentialHandle(subject, key, kid, assertions)
        finally:
            del private_key, passphrase, public_jwk

    @classmethod
    def _at(
        cls,
        subject: str,
        place: dict[str, Any],
        kid: str | None,
        audience: str | None = None,
        assertion_lifetime: _Duration = "2m",
        clock_tolerance: _Duration = "0s",
        typ: bool = False,
        public_jwk: dict[str, str] | None = None,
    ) -> Self:
        """Return the credential of variables or a profile, or with ``public_jwk`` of a pickle."""
        made = cls.__new__(cls)
        made._place = place = _settled(place)
        assertions = (audience, assertion_lifetime, clock_tolerance, typ)
        if public_jwk is not None and "password_command" in place:
            # A signal handler may interrupt an import, and then a call that signs needs the module.
            from siteline import _passphrase as _passphrase

            read = partial(_key_at, place)
            made._handle = CredentialHandle(subject, read, None, assertions, public_jwk)
        else:
            made._handle = CredentialHandle(subject, _key_at(place), kid, assertions)
        return made

    @property
    def subject(self) -> str:
        """The subject that enrollment returned."""
        return self._handle.facts()[0]

    @property
    def kid(self) -> str:
        """The thumbprint of the public key: the ``kid`` of every assertion."""
        return self._handle.facts()[1]

    @property
    def public_jwk(self) -> dict[str, str]:
        """The enrolled public key: ``kty``, ``n``, ``e``, ``kid``, ``alg`` and ``use``."""
        return self._handle.facts()[2]

    def _text(self) -> str:
        return f"<Credential subject={_quoted(self.subject)} kid={self.kid}>"

    def __reduce__(self) -> _Reduced:
        """Pickle the settings and the place of the key."""
        place = _pickled(
            self._place,
            "This credential is not pickled: {}. Pass the path of a key file as private_key=",
        )
        subject, kid, public_jwk, assertions = self._handle.facts()
        return type(self)._at, (subject, place, kid, *assertions, public_jwk)


class MutualTls(Itself):
    """The client certificate of a platform-managed integration, instead of a :class:`Credential`.

    Without ``client_id`` the certificate authorises discovery and data requests, and no token is
    requested. With ``client_id`` it authenticates the token request (RFC 8705 §2), and the token is
    bound to it.

    The files are checked before each request, and the next one uses a replaced certificate. While
    the new files cannot be used, the former certificate is used, with a warning in the log.

    A certificate that is not valid by the service's time is refused before anything is sent. A
    refusal by the service is an :class:`AuthenticationError` and is not retried. Plain ``http://``
    is a :class:`ConfigError`. It is pickled as a :class:`Credential` is.

    Args:
        certificate: A path, PEM text, or ``bytes``: the certificate and its chain in any order as
            PEM, or with its key as PKCS#12 (``.p12``, ``.pfx``).
        key: The private key, unless ``certificate`` contains it: PKCS#8, plain or encrypted, PKCS#1
            or SEC 1; RSA, ECDSA or Ed25519. ``Proc-Type: 4,ENCRYPTED`` is refused.
        passphrase: Opens an encrypted key or a PKCS#12 file. By default a PKCS#12 file has none.
        password_command: A command that prints the passphrase, as for a :class:`Credential`.
        client_id: The id of the integration, if the service issues tokens for it.
        strict: Reject a key file that other users can read, instead of a warning.

    Raises:
        CredentialError: The key is missing or wrong, or the certificate is not for clients.

    >>> with siteline.Sandbox(mutual_tls="data") as service:
    ...     siteline.MutualTls(service.certificate("plant-7")).subject
    'CN=plant-7,O=siteline sandbox'
    """

    _handle: CertificateHandle
    _place: _Place

    @explained(
        cert="certificate=",
        certificate_file="certificate=",
        private_key="key=",
        password="passphrase=",
        subject="client_id= or siteline.Credential(subject)",
    )
    def __init__(
        self,
        certificate: _PathLike | _Bytes,
        *,
        key: _PathLike | _Bytes | PrivateKey | None = None,
        passphrase: str | bytes | None = None,
        password_command: str | Sequence[str] | None = None,
        client_id: str | None = None,
        strict: bool = False,
    ) -> None:
        """Read the certificate and its key. No request is sent."""
        try:
            certificate, key = _located(certificate), _located(key)
            opener = _opener(password_command, strict, passphrase is not None)
            opener["client_id"] = client_id
            self._place = _place_of({"certificate": certificate, "key": key}, passphrase, opener)
            self._handle = CertificateHandle.open(
                certificate, key, _asking(opener) or passphrase, client_id, strict
            )
        finally:
            del certificate, key, passphrase

    @classmethod
    def _at(cls, place: dict[str, Any], subject: str | None = None) -> Self:
        """Return the certificate of variables or a profile, or with ``subject`` of a pickle."""
        made = cls.__new__(cls)
        made._place = place = _settled(place)
        certificate, opened = _part(place, "certificate"), (place["client_id"], place["strict"])
        made._handle = CertificateHandle.open(
            certificate, _part(place, "key"), _asking(place), *opened, subject
        )
        return made

    @property
    def subject(self) -> str:
        """The subject of the certificate in the form of RFC 4514, or its first alternative name."""
        return self._handle.facts()[0]

    @property
    def client_id(self) -> str | None:
        """The id of the integration; ``None`` if requests need no token."""
        return self._handle.facts()[1]

    @property
    def thumbprint(self) -> str:
        """The SHA-256 of the certificate in base64url, as in ``x5t#S256`` (RFC 8705 §3.1)."""
        return self._handle.details()[0]

    @property
    def not_before(self) -> datetime:
        """The aware time from which the certificate is valid."""
        return self._handle.details()[1]

    @property
    def not_after(self) -> datetime:
        """The aware time until which the certificate is valid."""
        return self._handle.details()[2]

    def _text(self) -> str:
        client_id = "" if self.client_id is None else f" client_id={_quoted(self.client_id)}"
        return f"<MutualTls subject={_quoted(self.subject)}{client_id}>"

    def __reduce__(self) -> _Reduced:
        """Pickle the settings and the places of the files."""
        place = _pickled(
            self._place, "This certificate is not pickled: {}. Pass the paths of files"
        )
        return type(self)._at, (place, self.subject)


def _pickled(place: _Place, refusal: str) -> dict[str, Any]:
    """Return the place, or raise TypeError with the reason."""
    if isinstance(place, str):
        raise TypeError(
            f"{refusal.format(place)}, with password_command= if the key is encrypted, or make the "
            "client with Client() or Client(profile=...)."
        )
    return place


def _opener(
    command: str | Sequence[str] | None, strict: bool, has_passphrase: bool = False
) -> dict[str, Any]:
    """Return the settings with which the files of a place are opened."""
    if command is None:
        return {"strict": strict}
    if has_passphrase:
        raise CredentialError(
            "passphrase and password_command are both given.",
            hint="Omit one: it is ambiguous which to use.",
        )
    from siteline._passphrase import words

    return {"strict": strict, "password_command": words(command)}


def _place_of(parts: dict[str, Any], passphrase: object, opener: dict[str, Any]) -> _Place:
    try:
        for name, part in parts.items():
            if not isinstance(part, Path | None):
                return f"its {name} was given as bytes or text, not as a path"
        if passphrase is not None:
            return "its passphrase was given as text"
        return opener | {name: str(part) for name, part in parts.items() if part is not None}
    finally:
        del parts, passphrase
        part = None


def _settled(place: dict[str, Any]) -> dict[str, Any]:
    """Return a place with absolute paths and the words of its command."""
    files: dict[str, Any] = {
        name: str(_path(place[name])) for name in ("key", "certificate") if name in place
    }
    return {**place, **files, **_opener(place.get("password_command"), place["strict"])}


def _part(place: dict[str, Any], name: str) -> Path | str | None:
    """Return the file of a place, or the text in its variable."""
    if name in place:
        return Path(place[name])
    variable = place.get(f"{name}_variable")
    return None if variable is None else _variable(variable)


def _key_at(place: dict[str, Any]) -> KeyHandle:
    return KeyHandle(_part(place, "key"), _passphrase(place), place["strict"])


def _asking(place: dict[str, Any]) -> Callable[[], str | bytes] | None:
    """Return the function that gets the passphrase of a place, if it has one."""
    if "password_command" in place:
        from siteline._passphrase import printed

        return partial(printed, place["password_command"])
    if "passphrase_variable" in place:
        return partial(_variable, place["passphrase_variable"])
    return None


def _passphrase(place: dict[str, Any]) -> str | bytes | None:
    ask = _asking(place)
    return None if ask is None else ask()


def _located(source: Any) -> Any:
    """Return the path that a source names; otherwise the source, or the handle of a key."""
    try:
        if isinstance(source, PrivateKey):
            return source._handle
        if isinstance(source, str):
            return source if _is_key_text(source) else _path(source)
        return _path(source) if hasattr(source, "__fspath__") else source
    finally:
        del source


def _path(path: Any) -> Path:
    """Return an absolute path: the files may be read again later, in another folder."""
    try:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path= is the path of a file; this is {described(path)}.")
        expanded = os.path.expanduser(path)
        try:
            return Path(os.path.join(os.getcwd(), expanded))
        except OSError:  # the folder was removed
            return Path(expanded)
    finally:
        del path


def _quoted(text: str) -> str:
    escaped_quotes = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped(escaped_quotes)}"'


def _is_async(signer: Any) -> bool:
    if not callable(signer):
        raise TypeError(
            "signer= is a callable that takes the bytes to sign and returns the signature; this is "
            f"{described(signer)}."
        )
    return is_async(signer)


_TWO_WAYS = (
    "Pass private_key= (a path, PEM text, bytes, a JWK or a PrivateKey), or for a key that stays "
    "in a vault signer= with public_jwk=. Is an environment variable unset?"
)


def _check_sources(key: bool, signer: bool, jwk: bool, passphrase: bool, command: bool) -> None:
    if key and signer:
        raise CredentialError("A credential has private_key or signer, not both.", hint=_TWO_WAYS)
    if not key and not signer:
        raise CredentialError(
            "A credential needs private_key or signer; both are missing or None.", hint=_TWO_WAYS
        )
    if key and jwk:
        raise CredentialError(
            "public_jwk belongs to signer; a private key contains its public key.",
            hint="Omit public_jwk; read it from credential.public_jwk.",
        )
    if signer and (passphrase or command):
        raise CredentialError(
            "passphrase and password_command belong to private_key.",
            hint="A signer needs neither: omit them.",
        )
    if signer and not jwk:
        raise CredentialError(
            "A signer needs public_jwk, the public key that was enrolled.",
            hint="Its thumbprint is the kid, and each signature is verified with it.",
        )
