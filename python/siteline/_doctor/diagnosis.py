"""What the doctor has found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from siteline._counts import counted
from siteline._escape import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from siteline.reports import CheckDict, DiagnosisDict

__all__ = ["Check", "Diagnosis"]

_WIDTH = 80
_STATUS, _ID = 9, 11
_NOUNS = {"ok": "ok", "warn": "to look at", "fail": "failed", "skipped": "skipped"}


class Check(NamedTuple):
    """One thing that was looked at.

    - ``id``: its name, which stays: ``"key"``, ``"tls"``
    - ``title``: the same in words; ``status``: ``"ok"``, ``"warn"``, ``"fail"`` or ``"skipped"``
    - ``seen``: what was seen, or why it was skipped; ``do``: what to do, or ``None``
    - ``error``: the class of the exception that a client raises for it, by name, where it failed

    >>> check = siteline.doctor(client, offline=True)["key"]
    >>> check.title, check.status, check.do
    ('private key', 'ok', None)
    """

    id: str
    """Its name, which stays."""
    title: str
    """The same in words."""
    status: Literal["ok", "warn", "fail", "skipped"]
    """``"ok"``, ``"warn"``, ``"fail"`` or ``"skipped"``."""
    seen: str
    """What was seen, or why it was skipped."""
    do: str | None = None
    """What to do."""
    error: str | None = None
    """The class of the exception that a client raises for it, by name, where it failed."""

    def _plain(self) -> CheckDict:
        return {
            "id": self.id,
            "title": self.title,
            "status": self.status,
            "seen": self.seen,
            "do": self.do,
            "error": self.error,
        }

    def __str__(self) -> str:
        """Print it in lines of 80 characters at most, where words allow it."""
        head = f"{self.status:<{_STATUS}}{self.id:<{_ID}}"
        lines = [*_wrapped(escaped(self.seen), "", "")]
        if self.do:
            lines += _wrapped(escaped(self.do), "do: ", "    ")
        indent = " " * (_STATUS + _ID)
        return "\n".join((head if n == 0 else indent) + line for n, line in enumerate(lines))


@dataclass(frozen=True)
class Diagnosis:
    """What :func:`siteline.doctor` has found; it prints as a list, and notebooks draw it.

    - ``checks``: each :class:`Check`, in the order of cause; ``diagnosis["tls"]`` is the first of
      that ``id``
    - ``ok``: whether none failed; ``first_fail``: the first that did, which is the cause, or
      ``None``
    - ``sends``: what it may send; ``base_url``, ``subject``: whose settings, ``None`` where they
      could not be read

    >>> sandbox.revoke(client.subject)
    >>> diagnosis = siteline.doctor(client)
    >>> diagnosis.first_fail.id, diagnosis.first_fail.error, diagnosis["scopes"].seen
    ('token', 'AuthenticationError', 'token failed')
    """

    checks: tuple[Check, ...]
    """Each check, in the order of cause."""
    sends: str
    """What it may send."""
    base_url: str | None
    """The address of the service."""
    subject: str | None
    """The subject of the credential."""
    _error: BaseException | None = field(default=None, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return self.first_fail is None

    @property
    def first_fail(self) -> Check | None:
        """The first check that failed, or ``None``: those after it may fail because of it."""
        return next((check for check in self.checks if check.status == "fail"), None)

    def __getitem__(self, id: str) -> Check:
        """Return the first check with this ``id``."""
        for check in self.checks:
            if check.id == id:
                return check
        raise KeyError(id)

    def to_dict(self) -> DiagnosisDict:
        """Return it as plain values, as JSON has them."""
        first = self.first_fail
        return {
            "ok": self.ok,
            "first_fail": first.id if first else None,
            "base_url": self.base_url,
            "subject": self.subject,
            "sends": self.sends,
            "checks": [check._plain() for check in self.checks],
        }

    def __str__(self) -> str:
        """Print a line or more for each check, and the sum of them."""
        return f"sends {escaped(self.sends)}\n\n{self._list()}"

    def __repr__(self) -> str:
        """Show the sum of the checks."""
        return f"<Diagnosis {self._sum()}>"

    def _list(self) -> str:
        """Return the lines of the checks: the command says before them what it sends."""
        return "\n".join([*map(str, self.checks), "", self._sum()])

    def _sum(self) -> str:
        counts: Counter[str] = Counter(check.status for check in self.checks)
        parts = [f"{counts[status]} {noun}" for status, noun in _NOUNS.items() if counts[status]]
        text = f"{counted(len(self.checks), 'check')}: {', '.join(parts)}"
        first = self.first_fail
        return f"{text}; the first fail is {first.id}" if first else text

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from siteline._display import diagnosis_html

        return diagnosis_html.diagnosis(self)


def _wrapped(text: str, first: str, then: str) -> Iterator[str]:
    from textwrap import wrap

    width = _WIDTH - _STATUS - _ID
    for number, line in enumerate(text.splitlines() or [""]):
        yield from wrap(
            line,
            width,
            initial_indent=then if number else first,
            subsequent_indent=then + ("  " if line.startswith("- ") else ""),
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
