"""Handles the log records of siteline while a block runs."""

import contextlib
import logging


@contextlib.contextmanager
def handling(emit, name="siteline", level=logging.DEBUG):
    """Calls `emit` with each record of a logger until the block ends."""
    logger, handler = logging.getLogger(name), logging.Handler()
    before, handler.emit = logger.level, emit
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
