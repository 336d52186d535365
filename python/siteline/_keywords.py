"""Errors for wrong arguments, and methods with the parameters of another method."""

from __future__ import annotations

import functools
import inspect
from importlib import import_module
from inspect import CO_COROUTINE, CO_VARARGS, CO_VARKEYWORDS
from itertools import islice
from types import FunctionType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from siteline._escape import described
from siteline.errors import ConfigError, CredentialError, QueryError, SitelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

# Other names of keywords, without underscores and in small letters.
_NAMES = {
    "site": ("siteid", "sites"),
    "line": ("lineid", "lines"),
    "start": ("from", "since", "begin", "starttime", "startdate", "date", "day"),
    "end": ("to", "until", "stop", "endtime", "enddate"),
    "machine": ("machineid", "machines"),
    "device": ("deviceid", "devices"),
    "tag": ("tagid", "tagguid", "tags"),
    "tz": ("timezone", "zone"),
    "interval": (
        *("aggregationintervalseconds", "intervalseconds", "bucket", "freq", "frequency"),
        *("step", "granularity", "resolution"),
    ),
    "every": ("freq", "frequency", "rule", "interval", "step", "by"),
    "agg": ("how", "func", "method", "aggregation", "value"),
    "withdrawn": ("flagged", "absent"),
    "text": ("name", "label", "pattern"),
    "path": ("file", "filename"),
    "response_timeout": ("timeout", "readtimeout"),
    "page_size": ("pagesize", "perpage", "batchsize", "chunksize"),
    "settle_lag": "lag",
    "base_url": ("url", "baseurl", "address", "host"),
    "credential": ("credentials", "auth", "key", "keyfile", "privatekeyfile", "apikey"),
    "ca_bundle": ("verify", "cabundle", "cafile", "certificates"),
    "daily_allowance": ("allowance", "dailylimit"),
    "http=Http(response_timeout=...)": ("timeout", "responsetimeout", "readtimeout"),
    "http=Http(tries=...)": ("tries", "retries", "maxretries", "attempts"),
}
# Classes with arguments that users give to another function, and how to write such an argument.
_OWNERS = {
    "types.Http": "http=Http({}=...) of the client, from siteline.types",
    "credentials.Credential": "siteline.Credential(..., {}=...)",
}
_OWNERS_FOR_SANDBOX = {"testing.Variant": "variant=siteline.testing.Variant({}=...)", **_OWNERS}
_GONE = {
    "shape": "it belongs to the client: siteline.Client(..., shape=...)",
    "limit": "max_pages= limits a read, and scan(...).head(n) returns the first points",
    "wait": "only sync() waits for a store",
    "series": "keep its series first: table.find(...)",
    "gaps": "with_gaps() adds the missing rows to a table",
    "fresh": "scan(...).pages() requests the pages again",
    "columns": "name columns of a frame: to_pandas()[columns]",
    "settled_only": "store.read(feed, final=True) returns settled points only",
    "final": "only store.read() has it",
    "as_of": "only store.read() has it",
    "sep": "frames have it: to_pandas().to_csv(path, sep=...)",
    "verify": "write ca_bundle= of the client",
    "batch": "it belongs to the target: DuckDB(..., batch=16), or its attribute batch",
    "now": "the service's time decides; in tests, pass clock= to the client",
}
_OF_SERIES = ("machine", "device", "tag")
# Attributes of other libraries, with the names to use if the object has them.
_RENAMED = {
    **dict.fromkeys(("data", "get", "query", "fetch", "points"), "read(...)"),
    "scan": "read(feed).lazy()",
    "as_of": "read(feed, as_of=...)",
    "wide": "pivot()",
    "rebucket": "resample(every, agg)",
    **dict.fromkeys(("df", "to_frame", "to_df", "to_dataframe"), "to_pandas()"),
    "save": "to_parquet(path)",
    "status": "coverage(feed)",
    **dict.fromkeys(("catalogue", "catalog"), "series()"),
    "including": "series",
    "discovery": "discover()",
    "flagged": "withdrawn",
    "absent": "withdrawn",
    "set_aside": "skipped",
    "todo": "tasks",
    "lag": "settle_lag",
    "since": "start",
    "against": "diff(stored)",
    "come": "added",
    "gone": "removed",
    "truth": "expected()",
    "to_svg": "plot()",
    "token": "allowance",
}
# Parameters that accept a private key.
_KEYS = ("private_key", "source", "key", "certificate", "self", "frame", "body", "raw")
_TEXTS, _HOLDERS = (str, bytes, bytearray), (dict, list, tuple)
_SHORTEST_KEY = 16
_LONGEST_KEY = 1 << 16
# The exceptions of a call with an unusable value.
_MISTAKES = (TypeError, AttributeError, ValueError, OverflowError)
_ALIASES = {
    "_Bytes": "bytes | bytearray | memoryview",
    "_Duration": "float | timedelta | str",
    "_Instant": "datetime | date | str",
    "_PathLike": "str | PathLike",
    "_ProgressArg": "bool | Callable",
    "_StoreProgressArg": "bool | Callable",
    "_Texts": "str | Iterable",
    "_Ids": "str | int | Iterable",
    "_Series": "Table | Iterable",
    "_Agg": 'Literal["mean", "sum", "first", "last", "increase"]',
    "_Unread": 'Literal["error", "warn", "keep"]',
    "_Partial": 'Literal["null", "keep", "drop"]',
    "os.PathLike[str]": "PathLike",
}
# Words for a type, and what fits it: names of classes, and methods that a class may have instead.
_KINDS = {
    "bool": ("True or False", ("bool", "bool_")),
    "bytes": ("bytes", ("bytes", "bytearray", "memoryview")),
    "float": ("a number", ("__float__()", "__index__()")),
    "int": ("a whole number", ("__index__()",)),
    "str": ("text", ("str",)),
    "Callable": ("a function", ("__call__()",)),
    "Iterable": ("an iterable", ("__iter__()",)),
    "Mapping": ("a Mapping", ("keys()",)),
    "PathLike": ("a path", ("__fspath__()",)),
    "Sequence": ("a Sequence", ("index()",)),
    "TextIO": ("an open file", ("write()",)),
    "None": ("None", ("NoneType",)),
    "datetime": ("a datetime", ("datetime", "datetime64")),
    "timedelta": ("a timedelta", ("timedelta", "timedelta64")),
    **{one: (f"a {one}", (one,)) for one in ("bytearray", "memoryview", "date", "time", "tzinfo")},
    "MeterProvider": ("a MeterProvider of OpenTelemetry", ("MeterProvider",)),
    "TracerProvider": ("a TracerProvider of OpenTelemetry", ("TracerProvider",)),
}
# Modules of public classes.
_MODULES = ("siteline", "siteline.shapes", "siteline.testing", "siteline.types")
_START = (
    "start= is missing: without it the service chooses the first point.",
    "That may be years ago, and each page costs a request of the daily allowance. Write "
    'start="2026-11-01" or a time, or start=None to let the service decide.',
)


def explained(**others: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Explain the wrong arguments of a constructor. ``others`` replace further wrong names."""
    return functools.partial(_explained_with, others=others)


def strict(function: _T) -> _T:
    """Explain the wrong arguments of a function or dataclass, and check the types first."""
    if not isinstance(function, type):
        return cast("_T", _explained_with(function, {}, is_strict=True))
    cls: Any = function
    cls.__init__ = _explained_with(cls.__init__, {}, is_strict=True)
    return function


def explain(cls: _T) -> _T:
    """Explain the wrong arguments of the public methods that a class of siteline defines.

    The error for a wrong keyword names the right one, and for a wrong type the types. A
    private key is refused where none belongs, because errors and logs quote other values.
    """
    if not cls.__module__.startswith("siteline."):
        return cls
    for name, member in list(vars(cls).items()):
        if name != "__init__" and name.startswith("_"):
            continue
        function = getattr(member, "__func__", member)
        if not isinstance(function, FunctionType) or hasattr(function, "explained_names"):
            continue
        is_internal = (function.__doc__ or "").startswith("Wrap ")
        made: Any = _internal(function) if is_internal else _explained_with(function, {})
        setattr(cls, name, made if function is member else type(member)(made))
    return cls


def _internal(constructor: Any) -> Any:
    """Explain a call of a constructor that only siteline calls."""

    @functools.wraps(constructor)
    def checked(self: Any, *args: Any, **keywords: Any) -> None:
        try:
            constructor(self, *args, **keywords)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise
            kind = type(self).__name__
            raise TypeError(f"{kind}() is for siteline only: help({kind}) has its use.") from None

    return checked


def _explained_with(function: Any, others: Mapping[str, str], *, is_strict: bool = False) -> Any:
    # A function that like() decorates has the parameters of the other one.
    declared = inspect.unwrap(function)
    code = declared.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    takes_any = bool(code.co_flags & (CO_VARKEYWORDS | CO_VARARGS))
    has_default = declared.__kwdefaults__ or ()
    required = [
        *names[: code.co_argcount - len(declared.__defaults__ or ())],
        *(one for one in names[code.co_argcount :] if one not in has_default),
    ]

    def refused(args: tuple[Any, ...], keywords: dict[str, Any]) -> Exception | None:
        if _has_key((*args, *keywords.values())):
            for parameter, value in _given(names, args, keywords):
                if parameter not in _KEYS and _has_key((value,)):
                    return CredentialError(
                        f"{parameter}= of {shown(args)}() contains a private key. Nothing was done "
                        "with it.",
                        hint="Pass a key as private_key= of siteline.Credential, or the path of "
                        "its file.",
                    )
        if declared is not function and keywords and (unknown := unexpected(keywords)):
            return TypeError(_explained(shown(args), unknown[0], names, others))
        return _wrong_type(function, names, args, keywords) if is_strict else None

    def needed(name: str) -> str:
        kinds = str(declared.__annotations__.get(name, ""))
        if name == "store" and "feeds" in names:
            return "store=, after the feeds"
        is_choice = any(one.startswith("Literal") for one in _alternatives(kinds))
        return f"{name}=, which is {_words(kinds)}" if is_choice else f"{name}="

    def unexpected(keywords: dict[str, Any]) -> list[str]:
        return [] if takes_any else [one for one in keywords if one not in names]

    def better(
        error: Exception, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Exception | None:
        if isinstance(error, SitelineError):
            return None
        if unknown := unexpected(keywords):
            return TypeError(_explained(shown(args), unknown[0], names, others))
        if len(args) > code.co_argcount and not takes_any:
            count = code.co_argcount - (names[:1] == ("self",))
            return TypeError(_by_name(shown(args), count, names))
        if function.__name__ == "scan" and not takes_any and "start" not in keywords:
            return QueryError(_START[0], hint=_START[1])
        given = {*names[: len(args)], *keywords}
        if not takes_any and (missing := [one for one in required if one not in given]):
            return TypeError(f"{shown(args)}() needs {', '.join(map(needed, missing))}.")
        if isinstance(error, OverflowError):
            for name, value in _given(names, args, keywords):
                if isinstance(value, int) and not 0 <= value < 1 << 31:
                    return QueryError(f"{name}={value} is out of range.")
        return _wrong_type(function, names, args, keywords)

    def shown(args: tuple[Any, ...]) -> str:
        is_constructor = function.__name__ == "__init__"
        return type(args[0]).__name__ if is_constructor else str(function.__name__)

    # A traceback with local variables must not show a key or a passphrase, so both functions
    # delete their arguments.
    if function.__code__.co_flags & CO_COROUTINE:

        @functools.wraps(function)
        async def checked(*args: Any, **keywords: Any) -> Any:
            try:
                if (wrong := refused(args, keywords)) is not None:
                    raise wrong
                return await function(*args, **keywords)
            except _MISTAKES as error:
                if (wrong := better(error, args, keywords)) is None:
                    raise
                raise wrong from None
            finally:
                wrong = None
                del args, keywords

    else:

        @functools.wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            try:
                if (wrong := refused(args, keywords)) is not None:
                    raise wrong
                return function(*args, **keywords)
            except _MISTAKES as error:
                if (wrong := better(error, args, keywords)) is None:
                    raise
                raise wrong from None
            finally:
                wrong = None
                del args, keywords

    checked.explained_names = names  # type: ignore[attr-defined]
    return checked


def _given(
    names: tuple[str, ...], args: tuple[Any, ...], keywords: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    yield from zip(names, args, strict=False)
    yield from keywords.items()


def _has_key(values: Iterable[Any], *, with_items: bool = True) -> bool:
    """Whether a value, or an item of it, is the text of a private key."""
    for value in values:
        if isinstance(value, _TEXTS):
            if len(value) >= _SHORTEST_KEY and _is_key(value[:_LONGEST_KEY]):
                return True
        elif with_items and isinstance(value, _HOLDERS):
            items = value.values() if isinstance(value, dict) else value
            if _has_key(islice(items, 100), with_items=False):
                return True
    return False


def _is_key(value: str | bytes | bytearray) -> bool:
    start = value if isinstance(value, str) else value.decode("latin-1")
    return "PRIVATE KEY-----" in start or ('"kty"' in start and '"d"' in start)


def _wrong_type(
    function: Any, names: tuple[str, ...], args: tuple[Any, ...], keywords: dict[str, Any]
) -> Exception | None:
    declared = inspect.unwrap(function).__annotations__
    for name, value in _given(names, args, keywords):
        kinds = declared.get(name, "object")
        # The modules of records have types instead of their names.
        kinds = kinds if isinstance(kinds, str) else inspect.formatannotation(kinds)
        if not _fits(value, kinds):
            if "Literal" in kinds and isinstance(value, str):
                wrong = ConfigError if function.__name__ == "__init__" else QueryError
                return wrong(f'{name}= is {_words(kinds)}; this is "{value[:100]}".')
            return TypeError(f"{name}= is {_words(kinds)}; this is {described(value)}.")
    return None


def _alternatives(kinds: str) -> Iterator[str]:
    """Yield the alternatives of an annotation; a known alias is written out."""
    depth, start = 0, 0
    for place, character in enumerate(f"{kinds}|"):
        depth += (character == "[") - (character == "]")
        if character == "|" and not depth:
            one = kinds[start:place].strip().strip("\"'")
            start = place + 1
            yield from _alternatives(_ALIASES[one]) if one in _ALIASES else (one,)


def _fits(value: Any, kinds: str) -> bool:
    """Whether a value fits an annotation; unknown types always fit."""
    return any(_fits_one(value, one) for one in _alternatives(kinds))


def _fits_one(value: Any, kind: str) -> bool:
    name, _, inner = kind.rpartition("]")[0].partition("[") if "[" in kind else (kind, "", "")
    name = name.rpartition(".")[2]
    cls: type = value.__class__  # a mock has the class that it replaces
    if name == "Literal":
        return repr(value).replace("'", '"') in inner.replace("'", '"').split(", ")
    if name in ("Iterable", "Sequence"):
        if isinstance(value, str | bytes):
            return False
        if isinstance(value, list | tuple) and "," not in inner:
            return all(_fits(one, inner) for one in value)
    if name == "tuple":
        return isinstance(value, tuple | list) and (
            "..." in inner or len(value) == inner.count(",") + 1
        )
    if name not in _KINDS and not _module(name):
        return True
    classes = [one.__name__ for one in cls.__mro__]
    # The temporary files of Python forward their methods.
    owner = value if name == "TextIO" else cls
    _, wanted = _KINDS.get(name, ("", (name,)))
    return any(hasattr(owner, one[:-2]) if one.endswith("()") else one in classes for one in wanted)


def _module(name: str) -> str | None:
    """Return the module of a public class."""
    found = (module for module in _MODULES if name in import_module(module).__all__)
    return next(found, None) if name[:1].isupper() else None


def _words(kinds: str) -> str:
    words = dict.fromkeys(_word(one) for one in _alternatives(kinds) if one != "None")
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _word(kind: str) -> str:
    name, _, inner = kind.partition("[")
    name = name.rpartition(".")[2]
    if name == "Literal":
        return " or ".join(inner.rstrip("]").replace("'", '"').split(", "))
    if name == "tuple":
        return f"a tuple of {inner.count(',') + 1}"
    module = _module(name)
    return f"a {module}.{name}" if module else _KINDS.get(name, (f"a {name}",))[0]


def like(
    declared: Callable[Concatenate[Any, _P], Any],
) -> Callable[[Callable[..., _R]], Callable[Concatenate[Any, _P], _R]]:
    """Copy the parameters and the docstring of another method, which the method calls."""

    def decorate(function: Callable[..., _R]) -> Callable[Concatenate[Any, _P], _R]:
        function.__doc__ = function.__doc__ or declared.__doc__
        function.__wrapped__ = declared  # type: ignore[attr-defined]
        returned = function.__annotations__.get("return")
        signature = inspect.signature(declared).replace(return_annotation=returned)
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return decorate


def _explained(function: str, name: str, known: Iterable[str], others: Mapping[str, str]) -> str:
    import difflib

    if name in others:
        return f"{function}() has no argument {name!r}: write {others[name]}."
    plain = name.replace("_", "").lower()
    known = [one for one in known if one != "self" and not one.startswith("_")]
    meant = [one for one in known if one.replace("_", "") == plain] or [
        one
        for one, others in _NAMES.items()
        if plain in others and (one in known or (one.startswith("http") and "http" in known))
    ]
    if meant:
        instead = f"write {meant[0].removesuffix('=')}{'' if '=' in meant[0] else '='}"
    elif "lateness" in known and any(plain.startswith(level) for level in _OF_SERIES):
        instead = (
            "a feed reads all series of its site and line. store.read(feed, machine=...) selects, "
            'and filters={"machineId": ["M1"]} is sent if your service has such a filter'
        )
    elif "lateness" in known and plain in ("tz", *_NAMES["tz"]):
        instead = (
            "times of feeds are UTC, so that a window is the same for everybody. For a local day "
            'write its offset: start="2026-11-01T00:00+01:00"'
        )
    elif function == "series":
        instead = "select rows of its table: series().find(...)"
    elif function == "plan" and (name in _NAMES or name in ("series", "filters")):
        instead = f"write plan(client.scan({name}=...))"
    elif name in _GONE:
        instead = _GONE[name]
    elif owned := _owned(name, _OWNERS_FOR_SANDBOX if function == "Sandbox" else _OWNERS):
        instead = f"write {owned}"
    else:
        near = difflib.get_close_matches(name, known, 1, 0.8)
        instead = f"write {near[0]}=" if near else f"it takes {', '.join(known) or 'no arguments'}"
    return f"{function}() has no argument {name!r}: {instead}."


def _owned(name: str, owners: Mapping[str, str]) -> str | None:
    for owner, text in owners.items():
        module, _, cls = owner.partition(".")
        if name in inspect.signature(getattr(import_module(f"siteline.{module}"), cls)).parameters:
            return text.format(name)
    return None


def _by_name(function: str, positional: int, known: Iterable[str]) -> str:
    if "credential" in known:
        return (
            f"{function}() takes its credential by name: {function}(base_url, "
            'credential=siteline.Credential(subject, "key.pem")).'
        )
    names = [one for one in known if one not in ("self", "cls")]
    if not names:
        return f"{function}() takes no arguments."
    named = ", ".join(f"{one}=..." for one in names[positional:][:3])
    if not positional:
        return f"{function}() takes its arguments by name: {named}."
    others = f", and others by name: {named}" if named else ""
    return f"{function}() takes {', '.join(names[:positional])} by position{others}."


def renamed(owner: object, name: str) -> AttributeError:
    """Return the error for a missing attribute, with its new name."""
    kind = type(owner)
    text = f"{kind.__name__!r} object has no attribute {name!r}"
    fields = getattr(kind, "__dataclass_fields__", ())
    instead = _RENAMED.get(name, "")
    if (new := instead.partition("(")[0]) in fields or (new and hasattr(kind, new)):
        text += f": write {instead}"
    elif kind.__name__ == "Store" and name in ("sync", "update"):
        text += ": write client.sync(feeds, store)"
    elif kind.__name__.endswith("Scan") and name in dir(import_module("siteline.table").Table):
        text += f": write collect() first, and then {name}"
    return AttributeError(text, name=name, obj=owner)
