"""How warnings and logs are told while a command runs. Who calls ``main()`` finds all as it was."""

from __future__ import annotations

import logging
import warnings
from contextlib import contextmanager

from siteline._escape import escaped
from siteline.cli.output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["told"]

_LOGGERS = ("siteline", "siteline.data", "siteline.sync", "siteline.token")


@contextmanager
def told(verbosity: int) -> Iterator[None]:
    """Have warnings take one line on stderr; with ``-v`` tell what is done, with the time."""
    from siteline.errors import SitelineWarning

    handler = _handler(verbosity)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    loggers[0].addHandler(handler)
    loggers[0].setLevel(handler.level)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            # They say what a result lacks: no filter of the environment hides them.
            warnings.simplefilter("default", SitelineWarning)
            yield
    finally:
        loggers[0].removeHandler(handler)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _handler(verbosity: int) -> logging.Handler:
    form = "%(asctime)s %(name)s: %(message)s" if verbosity else "siteline: warning: %(message)s"
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(form, "%H:%M:%S"))
    # Who listens to a logger, as the check of a token does, may lower its level.
    handler.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)])
    return handler


def _show(message: Warning | str, *_: object, **__: object) -> None:
    """Leave out the place in siteline's code, which nobody needs."""
    say(f"siteline: warning: {escaped(message)}")
