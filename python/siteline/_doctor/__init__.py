"""What is wrong between this machine and the service: :func:`siteline.doctor`.

- ``seen``: what one check has seen
- ``look``: what the checks look at, and what they send, each request once
- ``checks``: the list of the checks, in the order of cause, and how they are run
- ``settings``, ``agent``, ``key``, ``assertion``, ``ledger``, ``path``, ``answer``, ``reads``,
  ``store``, ``versions``: the checks themselves
"""

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
    """Look for what is wrong, in the order of cause: a :class:`Diagnosis`.

    It works where a client cannot even be made. It sends at most one token request, one discovery
    request and one request for a page; each is sent once and counted as always. It makes no file
    beside the ledger that a request is counted in, and changes none.

    - ``client``: whose settings, ledger and token are looked at; ``None`` takes those of
      ``profile``, else those of :class:`Client` without arguments
    - ``offline``: open no connection
    - ``enrolled_jwk``: the public key that was enrolled, as a ``dict`` or the path of its file; it
      is compared with the key
    - ``store``: the path of a store to look at, or several

    What is wrong is a check that failed, not an exception. A signer and a ``password_command`` are
    run, as for a client.

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
    look = Look(
        client,
        profile=profile,
        offline=offline,
        enrolled_jwk=enrolled_jwk,
        stores=[fspath(path) for path in stores],
    )
    with look:
        return examine(look)
