"""What the core logs of a token: the API has no other way to its lifetime (§2.2)."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["TokenLog"]

_ISSUED = re.compile(r"a new access token, good for (\d+) s")
_SCOPES_UNKNOWN = "the granted scopes are not verified"


class TokenLog(logging.Handler):
    """Listens to the logger of tokens while it is open."""

    def __init__(self) -> None:
        """Begin with no token seen."""
        super().__init__(logging.INFO)
        self.lifetime: int | None = None
        """The seconds for which the newest token is good; ``None`` where there was none."""
        self.names_scopes: bool = True
        """Whether the reply said which scopes it grants."""
        self._logger = logging.getLogger("siteline.token")
        self._level = self._logger.level

    def emit(self, record: logging.LogRecord) -> None:
        """Read one record."""
        text = record.getMessage()
        if issued := _ISSUED.search(text):
            self.lifetime = int(issued[1])
        elif _SCOPES_UNKNOWN in text:
            self.names_scopes = False
        elif record.levelno >= logging.WARNING and not logging.getLogger("siteline").handlers:
            # Without this handler the standard library would show it.
            assert logging.lastResort is not None
            logging.lastResort.handle(record)

    def __enter__(self) -> Self:
        """Begin to listen."""
        if not self._logger.isEnabledFor(logging.INFO):
            self._logger.setLevel(logging.INFO)
        self._logger.addHandler(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the logger as it was."""
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
