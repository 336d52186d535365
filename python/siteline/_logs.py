"""Emits the log records of the core."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from siteline._escape import escaped_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARTS = ("token", "http", "data", "sync", "ledger")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING)
# Looked up once: getLogger acquires logging's global lock, and Ctrl-C can leave it locked forever
# (CPython up to 3.12). Not at import: dictConfig() disables the loggers that exist before it.
_found: dict[str, logging.Logger] = {}


def _loggers() -> dict[str, logging.Logger]:
    if not _found:
        names = [f"siteline.{part}" for part in _PARTS]
        _found.update({name: logging.getLogger(name) for name in names})
    return _found


def lowest_level() -> int:
    """Return the lowest level for which a logger of the core is enabled, at most ``ERROR``."""
    loggers = _loggers().values()
    # Without generators: each call of the core begins here.
    for level in _LEVELS:
        for logger in loggers:
            if logger.isEnabledFor(level):
                return level
    return logging.ERROR


def emit(
    name: str, level: int, file: str, line: int, text: str, fields: Mapping[str, int | str]
) -> None:
    logger = _loggers()[name]
    if not logger.isEnabledFor(level):
        return
    record = logger.makeRecord(name, level, file, line, escaped_lines(text), (), None, extra=fields)
    logger.handle(record)
