"""The parameters of a read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, Self

from siteline._escape import escaped
from siteline._handles import WithHtml
from siteline._records.record import FrozenRecord
from siteline._records.series import SeriesIds
from siteline._times import iso


class Filters(dict[str, tuple[str, ...]]):
    """The values of each further parameter. It cannot be changed."""

    def _refuse(self, *_given: object, **_keywords: object) -> NoReturn:
        raise TypeError("filters cannot be changed: make another object with other filters")

    if not TYPE_CHECKING:
        __setitem__ = __delitem__ = __ior__ = _refuse
        pop = setdefault = update = _refuse

        def clear(self) -> NoReturn:
            self._refuse()

        popitem = clear

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[str, Iterable[str]]]) -> Self:
        return cls((name, tuple(values)) for name, values in pairs)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


def parameter_text(parameters: Mapping[str, Any]) -> str:
    """Write the parameters that have values, in their order."""
    each = ((name, value) for name, values in parameters.items() for value in values or ())
    return " ".join(f"{escaped(name)}={escaped(value)}" for name, value in each)


def sent_text(of: Any, site: Iterable[str], line: Iterable[str], **bounds: Any) -> str:
    """Write the parameters that a query or a feed sends, in their order on the wire."""
    width = of.interval and f"{of.interval.total_seconds():.0f}"
    sent = {
        "siteId": site,
        "lineId": line,
        **bounds,
        "aggregationIntervalSeconds": width and (width,),
        "pageSize": of.page_size and (of.page_size,),
        **of.filters,
    }
    return parameter_text(sent)


@dataclass(frozen=True, repr=False)
class Query(WithHtml, FrozenRecord):
    """The parameters of a scan: those that are sent, then the selection of series.

    >>> query = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-02T00:00Z").query
    >>> print(query)
    siteId=S1 from=2026-11-01T00:00:00Z to=2026-11-02T00:00:00Z
    """

    _html = "html.query"

    site: tuple[str, ...]
    """The sites; empty for all. ``siteId`` on the wire."""
    line: tuple[str, ...]
    """The lines; empty for all. ``lineId`` on the wire."""
    machine: tuple[str, ...]
    """The ids or names of machines; empty for all."""
    device: tuple[str, ...]
    """The ids or names of devices; empty for all."""
    tag: tuple[str, ...]
    """The ids or names of tags; empty for all."""
    series: tuple[SeriesIds, ...]
    """The selected series; empty for all."""
    start: datetime | None
    """The start of the range in UTC; ``from`` on the wire."""
    end: datetime | None
    """The end of the range in UTC; ``to`` on the wire."""
    interval: timedelta | None
    """The bucket width; ``aggregationIntervalSeconds`` on the wire."""
    page_size: int | None
    """The requested number of items on a page; ``pageSize`` on the wire."""
    filters: Mapping[str, tuple[str, ...]] = field(hash=False)
    """The values of each further parameter."""

    @classmethod
    def _restore(cls, members: Mapping[str, Any]) -> Self:
        named = dict(members)
        named["interval"] = named.pop("interval_seconds")
        selection = named.pop("selection", {"levels": ((), (), ()), "series": ()})
        names = ("machine", "device", "tag")
        named.update(
            (name, tuple(ids)) for name, ids in zip(names, selection["levels"], strict=True)
        )
        named["series"] = tuple(SeriesIds(*ids) for ids in selection["series"])
        named["filters"] = Filters.of_pairs(named["filters"])
        return super()._restore(named)

    def __str__(self) -> str:
        """Return the parameters in their order on the wire."""
        bounds = {"from": self.start, "to": self.end}
        times = {name: at and (iso(at),) for name, at in bounds.items()}
        sent = sent_text(self, self.site, self.line, **times)
        selected = {
            "machine": self.machine,
            "device": self.device,
            "tag": self.tag,
            "series": self.series and (len(self.series),),
        }
        return " ".join(filter(None, [sent, parameter_text(selected)]))

    def __repr__(self) -> str:
        """Return the parameters."""
        return f"<Query {self}>"
