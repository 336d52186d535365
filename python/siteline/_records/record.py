"""The base class of the records.

The modules of this package have no ``from __future__ import annotations``, because the type object
of a field selects its reader.
"""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, Union, get_args, get_origin

from siteline._keywords import explain, renamed
from siteline._times import iso

_Reader = Callable[[Any], Any] | None
_FIELDS: dict[type, dict[str, tuple[str, _Reader]]] = {}


class FrozenRecord:
    """A frozen dataclass with the fields of one Rust struct.

    :meth:`to_dict` omits fields that begin with an underscore.
    """

    __dataclass_fields__: ClassVar[dict[str, "dataclasses.Field[Any]"]]

    def __init_subclass__(cls) -> None:
        """Set the public path of the class for pickles and ``help()``."""
        if cls.__module__.startswith("siteline._records."):
            cls.__module__ = "siteline.types"
        explain(cls)

    @classmethod
    def _restore(cls, members: Mapping[str, Any]) -> Self:
        """Return the record of a Rust struct."""
        return cls(**cls._read(members))

    @classmethod
    def _read(cls, members: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the members of a Rust struct to fields."""
        known = _FIELDS.get(cls) or _FIELDS.setdefault(cls, _fields(cls))
        values = {}
        for name, value in members.items():
            field, read = known.get(name, (name, None))
            values[field] = value if read is None or value is None else read(value)
        return values

    if not TYPE_CHECKING:  # a type checker that sees it accepts every attribute

        def __getattr__(self, name: str) -> NoReturn:
            raise renamed(self, name)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and properties as JSON values.

        Times are ISO 8601 text, durations are seconds.
        """
        members = (one for kind in type(self).__mro__ for one in vars(kind).items())
        computed = (name for name, one in members if isinstance(one, property))
        names = [*self.__dataclass_fields__, *computed]
        return {name: _plain(getattr(self, name)) for name in names if name[0] != "_"}

    def _member(self) -> Any:
        """Return the value in the ``to_dict()`` of another record."""
        return self.to_dict()


def _fields(cls: type[FrozenRecord]) -> dict[str, tuple[str, _Reader]]:
    """Return the field and the reader of each member."""
    fields = dataclasses.fields(cls)
    return {one.name.lstrip("_"): (one.name, _reader(one.type)) for one in fields}


def _reader(kind: Any) -> _Reader:
    """Return the function that converts a value of the core, if it needs one."""
    if kind is datetime:
        return datetime.fromisoformat
    if kind is timedelta:
        return lambda seconds: timedelta(seconds=seconds)
    if isinstance(kind, type) and issubclass(kind, FrozenRecord):
        return kind._restore
    if get_origin(kind) in (Union, UnionType):
        return next(filter(None, map(_reader, get_args(kind))), None)
    if get_origin(kind) is tuple:
        # All items of a tuple have one type.
        item = _reader(get_args(kind)[0])
        return tuple if item is None else lambda values: tuple(map(item, values))
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, FrozenRecord):
        return value._member()
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [*map(_plain, value)] if isinstance(value, tuple | list) else value
