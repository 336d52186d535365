"""Warnings and logs of a command on stderr. Afterwards the logging of the program is as before."""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from siteline._escape import escaped
from siteline.cli.colours import painted
from siteline.cli.output import say
from siteline.cli.wording import hint_in_shell
from siteline.errors import SitelineWarning

_LOGGERS = ("siteline", "siteline.data", "siteline.sync", "siteline.token")


@contextmanager
def told(options: argparse.Namespace) -> Iterator[None]:
    """Shows each warning as one line on stderr; with ``-v`` also log records, with the time."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        say(f"siteline: warning: {escaped(hint_in_shell(str(message), options.known))}")

    handler = _handler(options.verbose)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    loggers[0].addHandler(handler)
    loggers[0].setLevel(handler.level)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            # Warnings report missing data, so no filter of the environment hides them.
            warnings.simplefilter("default", SitelineWarning)
            yield
    finally:
        loggers[0].removeHandler(handler)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _handler(verbosity: int) -> logging.Handler:
    form = "%(asctime)s %(name)s: %(message)s"
    if not verbosity:
        form = f"{painted('siteline: warning:', sys.stderr)} %(message)s"
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(form, "%H:%M:%S"))
    # Other handlers may lower the level of the logger.
    handler.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)])
    return handler
