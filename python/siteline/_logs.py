"""Emits the log records of the core."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from siteline._escape import escaped_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__: list[str] = []

# Looked up once: getLogger acquires logging's global lock, and Ctrl-C can leave it locked forever
# (CPython up to 3.12).
_loggers: dict[str, logging.Logger] = {}


_NAMES = tuple(f"siteline.{name}" for name in ("token", "http", "data", "sync", "ledger"))
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING)


def lowest_level() -> int:
    """Return the lowest level for which a logger of the core is enabled, at most ``ERROR``."""
    loggers = [_loggers.get(name) or _logger(name) for name in _NAMES]
    for level in _LEVELS:
        for logger in loggers:
            if logger.isEnabledFor(level):
                return level
    return logging.ERROR


def emit(
    name: str, level: int, file: str, line: int, text: str, fields: Mapping[str, int | str]
) -> None:
    """Emit a record with these extra fields, if its logger is enabled for the level."""
    logger = _logger(name)
    if not logger.isEnabledFor(level):
        return
    record = logger.makeRecord(name, level, file, line, escaped_lines(text), (), None, extra=fields)
    logger.handle(record)


def _logger(name: str) -> logging.Logger:
    logger = _loggers.get(name)
    if logger is None:
        logger = _loggers[name] = logging.getLogger(name)
    return logger
