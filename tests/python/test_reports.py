"""The dicts that siteline returns match their TypedDicts."""

import types
import typing
from datetime import datetime

import pytest
import siteline
import siteline.reports
from kit import keys

RANGE = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z", "interval": "1h"}
DECLARED = {name for name in siteline.__all__ if typing.is_typeddict(getattr(siteline, name))}


def differences(value, declared, where="it"):
    """The differences between a value and its declared type, one line each."""
    if typing.is_typeddict(declared):
        if type(value) is not dict:
            return [f"{where} is a {type(value).__name__}, not a dict"]
        hints = typing.get_type_hints(declared)
        found = [f"{where} has no {name!r}" for name in declared.__required_keys__ - set(value)]
        found += [f"{where} has {name!r} too" for name in set(value) - set(hints)]
        for name in set(hints) & set(value):
            found += differences(value[name], hints[name], f"{where}[{name!r}]")
        return found
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is typing.Literal:
        return [] if value in arguments else [f"{where} is {value!r}, none of {arguments}"]
    if origin in (typing.Union, types.UnionType):
        choices = [differences(value, one, where) for one in arguments]
        return [] if [] in choices else choices[0]
    if origin is not None and type(value) is not origin:
        return [f"{where} is a {type(value).__name__}, not a {origin.__name__}"]
    if origin is list:
        parts = [(one, arguments[0], f"{where}[{n}]") for n, one in enumerate(value)]
    elif origin is dict:
        parts = [(key, arguments[0], f"a key of {where}") for key in value]
        parts += [(one, arguments[1], f"{where}[{key!r}]") for key, one in value.items()]
    else:
        # The exact type: True is not a count.
        return [] if type(value) is declared else [f"{where} is a {type(value).__name__}"]
    return [line for part in parts for line in differences(*part)]


def feed_of(**options):
    return siteline.Feed(
        "line-2", site="S1", line="L2", interval="1h", since="2026-11-15T00:00Z", **options
    )


def synced(sandbox, tmp_path):
    store = siteline.Store(tmp_path / "plant.siteline")
    frugal = sandbox.client(daily_allowance=2)
    first = frugal.sync(feed_of(page_size=50), store)
    assert first.todo
    return [first, sandbox.client().sync(feed_of(page_size=50), store)]


def examples(sandbox, tmp_path):
    """Real dicts of each declared type, made in every available way."""
    reports = [one.to_dict() for one in synced(sandbox, tmp_path)]
    store = siteline.Store(tmp_path / "plant.siteline")
    sandbox.fault(on="data", reset=True)
    sandbox.client().scan(**RANGE).collect()
    aside = siteline.Feed("aside", site="S1", interval="1h", since="2026-11-19", page_size=50)
    sandbox.fault(on="data", forget_cursors=True, times=20)
    with pytest.raises(siteline.errors.CursorRejected):
        sandbox.client().sync(aside, store)
    sandbox.clear_faults()
    reports.append(sandbox.client().sync(aside, store).to_dict())
    key = keys.private_key()
    with_key = siteline.Credential("subject", key)
    vault = siteline.Credential("subject", signer=bytes, public_jwk=key.public_jwk)
    diagnoses = [siteline.doctor(), siteline.doctor(sandbox.client())]
    told = [diagnosis.to_dict() for diagnosis in diagnoses]
    with siteline.Agent(sandbox.client()) as agent:
        agents = [agent.state]
    return {
        "AgentStateDict": agents,
        "AgentAllowanceDict": [state["allowance"] for state in agents],
        "ScanReport": [sandbox.client().scan(**RANGE).report],
        "PublicJwk": [one.public_jwk for one in (key, with_key, vault)],
        "SyncReportDict": reports,
        "FeedReportDict": [one for report in reports for one in report["feeds"]],
        "SetAsideDict": reports[-1]["feeds"][0]["set_aside"],
        "TaskDict": [one for report in reports for one in report["todo"]],
        "AllowanceDict": [report["allowance"] for report in reports],
        "DiagnosisDict": told,
        "CheckDict": [check for one in told for check in one["checks"]],
        "SandboxStats": [sandbox.stats, siteline.Sandbox().stats],
        "SandboxRequest": sandbox.stats["log"],
        "CatalogueReport": [sandbox.client().series().report],
    }


def test_every_dict_matches_its_typed_dict(sandbox, tmp_path):
    real = examples(sandbox, tmp_path)
    assert set(real) == DECLARED == set(siteline.reports.__all__)
    for name, values in real.items():
        assert values, name
        for value in values:
            assert not differences(value, getattr(siteline, name), name)


def test_a_dict_that_does_not_match_its_type_is_detected(sandbox):
    report = sandbox.client().scan(**RANGE).report
    for wrong in [
        {**report, "not_listed": None},
        {**report, "not_listed": [1]},
        {**report, "bounds_off_grid": ["middle"]},
        {**report, "more": 1},
        {"not_listed": []},
    ]:
        assert len(differences(wrong, siteline.ScanReport)) == 1
    request = {"at": datetime.now(), "method": "GET", "path": "/", "query": "", "status": 200}
    assert not differences(request, siteline.SandboxRequest)
    assert len(differences({**request, "at": "2026"}, siteline.SandboxRequest)) == 1
    assert differences({"token": {"200": 1}}, dict[str, dict[int, int]])
    assert differences((), list[int])
    assert not differences(None, int | None)
