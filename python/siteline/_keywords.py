"""Methods that say which keyword was meant, and methods with the parameters of another one."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from siteline.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["explained", "like"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Other names of keywords, without underscores and in small letters.
_NAMES = {
    "site": ("siteid", "sites"),
    "line": ("lineid", "lines"),
    "start": ("from", "since", "begin"),
    "end": ("to", "until"),
    "tz": ("timezone", "zone"),
    "interval": ("aggregationintervalseconds", "intervalseconds", "bucket", "freq"),
    "page_size": ("pagesize", "limit"),
    "settle_lag": ("lag",),
    "base_url": ("url", "baseurl", "address", "host"),
    "credential": ("credentials", "auth"),
    "ca_bundle": ("verify", "cabundle", "cafile", "certificates"),
    "daily_allowance": ("allowance", "dailylimit"),
    "http=Http(response_timeout=...)": ("timeout", "responsetimeout", "readtimeout"),
    "http=Http(tries=...)": ("tries", "retries", "maxretries", "attempts"),
}
_HTTP = (
    "tries",
    "response_timeout",
    "connect_timeout",
    "idle_timeout",
    "max_connections",
    "max_retry_after",
    "max_body_bytes",
    "application",
    "allow_http",
)
_CREDENTIAL = {
    name: f"write siteline.Credential(..., {name}=...)"
    for name in ("audience", "assertion_lifetime", "clock_tolerance", "typ")
}
_GONE = {
    **_CREDENTIAL,
    **{name: f"write http=Http({name}=...) of the client, from siteline.types" for name in _HTTP},
    "shape": "it belongs to the client: siteline.Client(..., shape=...)",
    "wait": "only sync() waits for a store",
    "batch": "it belongs to the target: DuckDB(..., batch=16), or its attribute batch",
    "now": "the service's time decides; in tests, pass clock= to the client",
}
_COLUMNS = {
    "machine_id": ("machine", "machines", "machineid"),
    "device_id": ("device", "devices", "deviceid"),
    "tag_guid": ("tag", "tags", "tagid", "tagguid"),
}
_START = (
    "start= is left out: without it the service decides where the points begin.",
    "That may be years ago, and each page costs a request of the daily allowance. Write "
    'start="2026-11-01" (a day in UTC) or a time, or start=None to let the service decide.',
)


@overload
def explained(function: Callable[_P, _R], /) -> Callable[_P, _R]: ...
@overload
def explained(
    function: None = None, /, **others: str
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
def explained(function: Any = None, /, **others: str) -> Any:
    """Make the error for a wrong keyword of a function name the right one.

    Args:
        function: A method or a constructor.
        others: Names that users may try, and what to write instead. A name that resembles
            a keyword needs no entry.
    """
    if function is None:
        return functools.partial(_explained_with, others=others)
    return _explained_with(function, others)


def _explained_with(function: Callable[_P, _R], others: Mapping[str, str]) -> Callable[_P, _R]:
    code: Any = function.__code__  # type: ignore[attr-defined, unused-ignore]
    positional = code.co_argcount
    known = code.co_varnames[: positional + code.co_kwonlyargcount]
    of_class = function.__qualname__.endswith(".__init__")
    needs_start = function.__name__ == "scan"

    @functools.wraps(function)
    def checked(*args: _P.args, **keywords: _P.kwargs) -> _R:
        try:
            unknown = [name for name in keywords if name not in known]
            if unknown or len(args) > positional:
                name = f"{type(args[0]).__name__}" if of_class else function.__name__
                if unknown:
                    raise TypeError(_explained(name, unknown[0], known, others)) from None
                raise TypeError(_by_name(name, positional - 1, known)) from None
            if needs_start and "start" not in keywords:
                raise QueryError(_START[0], hint=_START[1])
            return function(*args, **keywords)
        finally:
            # A traceback with local variables must not show a key or a passphrase.
            del args, keywords

    return checked


def check(function: Any, keywords: Iterable[str]) -> None:
    """Raise the ``TypeError`` of a wrong keyword of an explained method."""
    code = function.__wrapped__.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for name in keywords:
        if name not in known:
            raise TypeError(_explained(function.__name__, name, known, {}))


def like(
    declared: Callable[Concatenate[Any, _P], Any],
) -> Callable[[Callable[..., _R]], Callable[Concatenate[Any, _P], _R]]:
    """Give a method the parameters and the docstring of another one, which it calls."""

    def decorate(function: Callable[..., _R]) -> Callable[Concatenate[Any, _P], _R]:
        function.__doc__ = function.__doc__ or declared.__doc__
        function.__wrapped__ = declared  # type: ignore[attr-defined]
        return function

    return decorate


def _explained(function: str, name: str, known: Iterable[str], others: Mapping[str, str]) -> str:
    if name in others:
        return f"{function}() has no argument {name!r}: write {others[name]}."
    plain = name.replace("_", "").lower()
    known = [one for one in known if one != "self" and not one.startswith("_")]
    meant = [
        one
        for one, others in _NAMES.items()
        if plain in others and (one in known or (one.startswith("http") and "http" in known))
    ]
    columns = [column for column, others in _COLUMNS.items() if plain in others]
    if meant:
        instead = f"write {meant[0].removesuffix('=')}{'' if '=' in meant[0] else '='}"
    elif columns and "filters" in known:
        instead = (
            "it is a column of the result, not a filter that the interface shows (§4.3). Keep the "
            f'rows that you want, frame[frame["{columns[0]}"] == ...]. A filter of your service '
            'goes into filters= under its name there, such as filters={"machineId": ["M1", "M2"]}'
        )
    elif name in _GONE:
        instead = _GONE[name]
    else:
        instead = _nearest(name, known)
    return f"{function}() has no argument {name!r}: {instead}."


def _nearest(name: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, 1, 0.7)
    return f"write {near[0]}=" if near else f"it takes {', '.join(known)}"


def _by_name(function: str, positional: int, known: Iterable[str]) -> str:
    if "credential" in known:
        return (
            f"{function}() takes its credential by name: {function}(base_url, "
            'credential=siteline.Credential(subject, "key.pem")).'
        )
    return f"{function}() takes {positional} arguments by position, and all others by name."
