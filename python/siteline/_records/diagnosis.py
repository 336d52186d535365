"""The findings of the doctor."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from siteline._counts import counted
from siteline._escape import escaped, escaped_lines
from siteline._handles import WithHtml
from siteline._records.record import FrozenRecord

_WIDTH = 80
_STATUS, _ID = 9, 11
_NOUNS = {"ok": "ok", "warn": "to look at", "fail": "failed", "skipped": "skipped"}


@dataclass(frozen=True)
class Check(FrozenRecord):
    """One check of a :class:`Diagnosis`."""

    id: str
    """Its name in all versions, such as ``"key"`` or ``"tls"``."""
    title: str
    """The name in words."""
    status: Literal["ok", "warn", "fail", "skipped"]
    """``"ok"``, ``"warn"``, ``"fail"`` or ``"skipped"``."""
    seen: str
    """The finding, or the reason why the check was skipped."""
    do: str | None
    """What to do."""
    error: str | None
    """If it failed: the class of the exception that a client raises."""

    def __str__(self) -> str:
        """Print lines of at most 80 characters."""
        lines = [*_wrapped(escaped_lines(self.seen), "", "")]
        if self.do:
            lines += _wrapped(escaped_lines(self.do), "do: ", "    ")
        return _hanging(self.status, lines, f"{self.id:<{_ID}}")


@dataclass(frozen=True, repr=False)
class Diagnosis(WithHtml, FrozenRecord):
    """The findings of :func:`siteline.doctor`. It prints as a list.

    ``diagnosis["tls"]`` is the first check with that ``id``.

    >>> sandbox.revoke(client.subject)
    >>> diagnosis = siteline.doctor(client)
    >>> diagnosis.first_fail.id, diagnosis.first_fail.error, diagnosis["data"].seen
    ('token', 'AuthenticationError', 'token failed')
    """

    _html = "sync_html.diagnosis"

    base_url: str | None
    """The address of the service; ``None`` if the settings make no client."""
    subject: str | None
    """The subject of the credential; ``None`` if the settings make no client."""
    sends: str
    """The requests that it may send, as text."""
    checks: tuple[Check, ...]
    """The checks, causes before their effects."""

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return self.first_fail is None

    @property
    def first_fail(self) -> Check | None:
        """The first check that failed, which may cause later failures; or ``None``."""
        return next((check for check in self.checks if check.status == "fail"), None)

    def __getitem__(self, id: str) -> Check:
        """Return the first check with this ``id``."""
        for check in self.checks:
            if check.id == id:
                return check
        raise KeyError(id)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; ``first_fail`` is the ``id`` of that check."""
        first = self.first_fail
        return {**super().to_dict(), "first_fail": first and first.id}

    def __str__(self) -> str:
        """Print each check, the skipped ones by their reason, and the sum."""
        lines = [str(check) for check in self.checks if check.status != "skipped"]
        skipped: dict[str, list[str]] = {}
        for check in self.checks:
            if check.status == "skipped":
                skipped.setdefault(check.seen, []).append(check.id)
        for reason, ids in skipped.items():
            text = f"{', '.join(ids)}: {escaped_lines(reason)}"
            lines.append(_hanging("skipped", _wrapped(text, "", "", _WIDTH - _STATUS)))
        return "\n".join([f"sends {escaped(self.sends)}", "", *lines, "", self._sum()])

    def __repr__(self) -> str:
        """Show the sum of the checks."""
        return f"<Diagnosis {self._sum()}>"

    def _sum(self) -> str:
        counts: Counter[str] = Counter(check.status for check in self.checks)
        parts = [f"{counts[status]} {noun}" for status, noun in _NOUNS.items() if counts[status]]
        text = f"{counted(len(self.checks), 'check')}: {', '.join(parts)}"
        first = self.first_fail
        return f"{text}; the first failure is {first.id}" if first else text


def _hanging(status: str, lines: Iterable[str], id: str = "") -> str:
    head = f"{status:<{_STATUS}}{id}"
    return "\n".join((" " * len(head) if n else head) + line for n, line in enumerate(lines))


def _wrapped(
    text: str, first: str, then: str, width: int = _WIDTH - _STATUS - _ID
) -> Iterator[str]:
    from textwrap import wrap

    for number, line in enumerate(text.splitlines() or [""]):
        yield from wrap(
            line,
            width,
            initial_indent=then if number else first,
            subsequent_indent=then + ("  " if line.startswith("- ") else ""),
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
