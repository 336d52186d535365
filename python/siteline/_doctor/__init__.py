"""Finds faults between this machine and the service: :func:`siteline.doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from siteline._keywords import strict
from siteline.types import Diagnosis

if TYPE_CHECKING:
    from siteline.aio import AsyncClient
    from siteline.client import Client

__all__ = ["doctor"]


@strict
def doctor(
    client: Client | AsyncClient | None = None,
    *,
    profile: str | None = None,
    offline: bool = False,
    enrolled_jwk: Mapping[str, Any] | str | PathLike[str] | None = None,
    store: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
) -> Diagnosis:
    """Check settings, key, ledger, connection, service and stores, causes before their effects.

    It works even if no client can be made. It sends at most one token request, one discovery
    request and one request for a page, each once and counted as usual. Except for the ledger that
    counts these requests, it makes and changes no file. A signer and a ``password_command`` run as
    for a client. A fault is a check that failed, not an exception.

    Args:
        client: The client to check. ``None`` uses ``profile``, or the settings of :class:`Client`
            without arguments.
        profile: The name of a profile, instead of a client.
        offline: Open no connection.
        enrolled_jwk: The public key that was enrolled, as a ``dict`` or the path of its file. It is
            compared with the key.
        store: The path of a store to check, or several.

    Returns:
        A :class:`Diagnosis`.

    Raises:
        ConfigError: ``client`` and ``profile`` are both given.

    >>> diagnosis = siteline.doctor(client)
    >>> diagnosis.ok, diagnosis.first_fail
    (True, None)
    """
    from siteline._doctor.checks import examine
    from siteline._doctor.look import Look
    from siteline.errors import ConfigError

    if client is not None and profile is not None:
        raise ConfigError("doctor() takes a client or profile=, not both.")
    stores = [store] if isinstance(store, str | PathLike) else list(store)
    look = Look(client, profile, offline, enrolled_jwk, [fspath(path) for path in stores])
    return examine(look)[0]
