"""Every public function explains wrong arguments and never shows a private key."""

import asyncio
import importlib
import inspect
import traceback
from dataclasses import is_dataclass
from types import FunctionType

import numpy as np
import pytest
import siteline
from kit import keys
from kit.ranges import SIX_HOURS
from siteline import errors, plots
from siteline.testing import Clock, Variant
from siteline.types import Http

MODULES = ("siteline", "siteline.plots", "siteline.shapes", "siteline.targets", "siteline.testing",
           "siteline.types", "siteline.otel", "siteline.mcp", "siteline.signers", "siteline.spark",
           "siteline.dlt")  # fmt: skip
# Spark calls the methods of this class.
EXCEPT = {"SitelineDataSource"}
# Parameters that take keys.
OF_KEYS = ("private_key", "source", "key", "certificate", "frame", "body", "raw")
SECRET = "".join(keys.PEM.splitlines()[1:3])
AUTHORISED = {"credential": siteline.Credential("s", keys.PEM)}


def public_functions():
    """Yields the name, the class (of a method) and the function of each public function."""
    seen = set()
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found) and issubclass(found, BaseException):
                continue
            members = vars(found).items() if inspect.isclass(found) else [("", found)]
            for member, one in members:
                function = getattr(one, "__func__", one)
                is_named = member == "__init__" or not member.startswith("_")
                # Only siteline calls such a constructor.
                is_named = is_named and not (function.__doc__ or "").startswith("Wrap ")
                if not is_named or not isinstance(function, FunctionType) or function in seen:
                    continue
                seen.add(function)
                cls = found if inspect.isclass(found) else None
                yield f"{name}.{member}".rstrip("."), cls, function


def parameters(function):
    names = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [one.name for one in names if one.name not in ("self", "cls") and one.kind not in kinds]


EXPLAINED = {
    name: (cls, function)
    for name, cls, function in public_functions()
    if name.partition(".")[0] not in EXCEPT and hasattr(function, "explained_names")
}


def call(name, /, **keywords):
    """Calls a function with wrong arguments. It rejects them before it uses ``self``."""
    cls, function = EXPLAINED[name]
    has_self = next(iter(inspect.signature(function).parameters), "") in ("self", "cls")
    made = function(*([cls.__new__(cls)] if has_self else []), **keywords)
    return asyncio.run(made) if inspect.iscoroutine(made) else made


def takes_any(function):
    """Returns whether a function passes its keywords on to a function that explains them."""
    own = getattr(function, "__wrapped__", function) if is_explained(function) else function
    return bool(own.__code__.co_flags & inspect.CO_VARKEYWORDS)


def is_explained(function):
    return hasattr(function, "explained_names")


def is_protocol(cls):
    return getattr(cls, "_is_protocol", False)


def test_all_functions_with_parameters_are_explained():
    missing = {
        name
        for name, cls, function in public_functions()
        if name.partition(".")[0] not in EXCEPT
        if parameters(function) and name not in EXPLAINED and not takes_any(function)
        if not (cls and (is_dataclass(cls) or issubclass(cls, tuple) or is_protocol(cls)))
    }
    assert not missing
    assert len(EXPLAINED) > 60


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_wrong_keyword_names_the_right_one(name):
    function = EXPLAINED[name][1]
    if takes_any(function):
        pytest.skip("it hands its keywords on")
    for parameter in parameters(function):
        if len(parameter) < 4:
            continue
        with pytest.raises(TypeError) as caught:
            call(name, **{f"{parameter}_": 1})
        assert f"has no argument '{parameter}_': write {parameter}=" in str(caught.value)


@pytest.mark.parametrize("name", EXPLAINED)
def test_no_function_quotes_a_private_key(name):
    for parameter in parameters(EXPLAINED[name][1]):
        for key in (keys.PEM, keys.PEM.encode(), [keys.PEM]):
            if parameter in OF_KEYS:
                continue
            with pytest.raises(errors.CredentialError) as caught:
                call(name, **{parameter: key})
            assert f"{parameter}= of " in str(caught.value)
            assert SECRET[:20] not in shown(caught.value)


def shown(error):
    """Returns the traceback with the local variables of siteline's functions."""
    inner = error.__traceback__.tb_next
    while inner is not None and "/tests/" in inner.tb_frame.f_code.co_filename:
        inner = inner.tb_next
    lines = traceback.TracebackException(type(error), error, inner, capture_locals=True).format()
    return "".join([repr(error), *lines])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda pem: siteline.Credential("subject", pem),
        lambda pem: siteline.Credential("subject", pem.encode()),
        lambda pem: siteline.Credential("subject", keys.PEM, passphrase=pem),
        lambda pem: siteline.Credential("subject", keys.PEM, kid=pem),
        lambda pem: siteline.Credential(pem, keys.PEM),
        lambda pem: siteline.PrivateKey(pem),
        lambda pem: siteline.MutualTls((keys.KEYS / "certificate.pem").read_bytes(), key=pem),
        lambda pem: siteline.Client(pem),
        lambda pem: siteline.Client(profile=pem),
        lambda pem: siteline.doctor(profile=pem),
        lambda pem: siteline.doctor(store=pem),
    ],
)
def test_a_damaged_key_is_in_no_traceback(wrong, caplog):
    damaged = keys.PEM.replace(SECRET[40:48], "AAAAAAAA")
    with pytest.raises(errors.ConfigError) as caught:
        wrong(damaged)
    text = shown(caught.value)
    assert SECRET[:20] not in text
    assert SECRET[-20:] not in text
    assert SECRET[:20] not in caplog.text


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: siteline.Client(http={}), "http= is a siteline.types.Http; this is an object of"),
        (lambda: siteline.Sandbox(tls="1.1"), 'tls= is True or False or "1.2" or "1.3"; this is'),
        (lambda: siteline.Sandbox(variant=Variant(page_size=0)), "page_size= must be at least 1"),
        (lambda: Variant(page_size="many"), "page_size= is a whole number"),
        (lambda: siteline.doctor(store=5), "store= is text, a path or an iterable"),
        (lambda: siteline.doctor("plant-a"), "client= is a siteline.Client or a siteline.Async"),
        (lambda: siteline.Client("https://h", ca_bundle=7, **AUTHORISED), "ca_bundle="),
        (lambda: Http(tries="x"), "tries= is a whole number; this is an object of type str"),
        (lambda: Http(connect_timeout="soon"), 'connect_timeout="soon" is not'),
        (lambda: Http(connect_timeout=[]), "connect_timeout= is a number, a timedelta or text"),
        (lambda: Clock("2026-11-01").advance(None), "by= is a NoneType, not a duration"),
        (lambda: Clock("2026-11-01").step(None), "by= is a NoneType, not a duration"),
        (lambda: Clock(np.datetime64(10**9, "Y")), "start= is not a time between the years"),
        (lambda: plots.coverage("line-2"), "coverages= is a siteline.types.Coverage or an itera"),
        (lambda: plots.allowance({}), "allowance= is a siteline.types.Allowance"),
        (siteline.Scan, "Scan() is for siteline only"),
        (siteline.Table, "Table() is for siteline only"),
        (lambda: siteline.PrivateKey.generate(-5), "bits=-5 is out of range"),
        (lambda: siteline.PrivateKey(keys.PEM, strict=1), "strict= is True or False"),
    ],
)
def test_a_wrong_value_names_its_parameter(wrong, words):
    with pytest.raises((TypeError, errors.ConfigError)) as caught:
        wrong()
    assert words in str(caught.value)


def test_tables_name_wrong_parameters(client):
    table = client.read(**SIX_HOURS)
    for wrong, words in (
        (lambda: table.find(5), "text= is text; this is an object of type int"),
        (lambda: client.scan(start="-1d").to_pandas(tz=keys.PEM), "tz= of to_pandas() contains"),
        (lambda: siteline.types.Coverage.from_state(5), "state= is bytes"),
        (lambda: table.head(-5), "n=-5 is out of range"),
        (lambda: table.records(named=1), "named= is True or False"),
        (lambda: table.to_csv(5), "is text, a path or an open file"),
        (lambda: table.plot(title=5), "title= is text"),
    ):
        with pytest.raises((TypeError, errors.ConfigError)) as caught:
            wrong()
        assert words in str(caught.value)


def test_errors_of_callbacks_stay_as_they_are(client):
    def broken(_progress):
        raise TypeError("of the user")

    with pytest.raises(TypeError, match="of the user"):
        client.read(**SIX_HOURS, progress=broken)
