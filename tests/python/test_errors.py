"""The error tree: typed, with fields, picklable, and without secrets."""

import copy
import inspect
import pickle
import re
from datetime import UTC, datetime

import pytest
from siteline import errors

CLASSES = [
    thing
    for name, thing in vars(errors).items()
    if inspect.isclass(thing) and issubclass(thing, errors.SitelineError)
]
BASES = {
    "ConfigError": ValueError,
    "TransportError": ConnectionError,
    "TransportTimeout": TimeoutError,
    "ProtocolError": ValueError,
    "ScopeError": PermissionError,
    "DeadlineExceeded": TimeoutError,
    "StoreFull": OSError,
    "BookmarkError": ValueError,
    "ClosedError": RuntimeError,
    "ForkError": RuntimeError,
    "InternalError": RuntimeError,
}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_survives_pickle_and_copy_with_its_fields(cls):
    error = cls(
        "what came",
        hint="what to do",
        status=503,
        retryable=True,
        attempts=(errors.Attempt("503", 0.2),),
        retry_at=datetime(2026, 11, 2, tzinfo=UTC),
    )
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is cls
        assert str(again) == "what came\nwhat to do"
        assert vars(again) == vars(error)
        assert again.attempts[0].wait == 0.2


def test_the_tree_in_the_docstring_is_complete():
    assert {cls.__name__ for cls in CLASSES} | {"Attempt", "SitelineWarning"} == set(errors.__all__)
    for name, base in BASES.items():
        assert issubclass(getattr(errors, name), base)
    drawn = set(re.findall(r"\w+", errors.__doc__))
    assert [cls.__name__ for cls in CLASSES if cls.__name__ not in drawn] == []
