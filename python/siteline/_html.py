"""The HTML views of public classes, in ``siteline._display``."""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar


class WithHtml:
    """An object that notebooks show as HTML."""

    _html: ClassVar[str]
    """The module and the function that make it."""

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        module, _, name = self._html.partition(".")
        return str(getattr(import_module(f"siteline._display.{module}"), name)(self))
