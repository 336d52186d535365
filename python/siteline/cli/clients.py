"""The client that a command uses: of a profile, or of the environment variables."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from siteline import Client, Store
    from siteline.types import RequestEvent

__all__ = ["client_of", "existing_store", "progress_of"]


def client_of(
    options: argparse.Namespace, on_request: Callable[[RequestEvent], object] | None = None
) -> Client:
    """Make the client of ``--profile``, else of the ``SITELINE_*`` variables. Sends nothing."""
    from siteline import Client

    return Client(profile=options.profile, on_request=on_request)


def progress_of(options: argparse.Namespace) -> bool:
    """Whether to show progress, which siteline does only on a terminal."""
    return not (options.no_progress or options.json)


def existing_store(path: str, *, read_only: bool) -> Store:
    """Open a store that is there: a mistyped path makes no new one."""
    import errno
    import os

    from siteline import Store

    try:
        os.stat(path)
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "there is no store", path) from None
    return Store(path, labels=False, read_only=read_only)
