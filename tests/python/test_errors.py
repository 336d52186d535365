"""The error tree: typed, with fields, picklable, and without secrets."""

import base64
import copy
import inspect
import logging
import pickle
import traceback
import urllib.parse
from datetime import UTC, datetime

import pytest
import siteline
from kit.ranges import NOW
from siteline import errors

QUERY = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z", "interval": "1m"}
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
    drawn = [
        line.split("── ")[1].split()[0] for line in errors.__doc__.splitlines() if "── " in line
    ]
    assert {*drawn, "SitelineError"} == {cls.__name__ for cls in CLASSES}


def test_an_error_in_the_middle_of_a_chain_can_be_resumed_from():
    with siteline.Sandbox(now=NOW) as sandbox:
        client = sandbox.client()
        complete = client.data(**QUERY, page_size=700).to_pandas()
        scan = client.data(**QUERY, page_size=700)
        sandbox.fault(on="data", status=503, skip=2, times=4)
        with pytest.raises(siteline.ServiceUnavailable) as caught:
            scan.to_pandas()
        error = caught.value
        assert error.status == 503
        assert error.retryable
        assert [attempt.outcome for attempt in error.attempts] == ["503"] * 4
        assert len(error.partial) == 1_400
        assert pickle.loads(pickle.dumps(error)).bookmark == error.bookmark
        before = client.allowance.used
        resumed = scan.resume(pickle.loads(pickle.dumps(error.bookmark)), onto=error.partial)
        assert resumed.to_pandas().equals(complete)
        assert client.allowance.used - before == -(-len(complete) // 700) - 2


# Secrets.


def forms_of(secret):
    data = secret if isinstance(secret, bytes) else secret.encode()
    return {
        data,
        base64.b64encode(data).rstrip(b"="),
        base64.urlsafe_b64encode(data).rstrip(b"="),
        urllib.parse.quote(data, safe="").encode(),
        data.hex().encode(),
    }


def failing(client):
    scan = client.data(**QUERY, page_size=500)
    try:
        scan.to_pandas()
    except siteline.SitelineError as error:
        return error
    raise AssertionError("it did not fail")


def test_no_text_that_a_user_can_get_contains_a_secret(caplog, recwarn, tmp_path):
    caplog.set_level(logging.DEBUG)
    texts = []
    key = siteline.PrivateKey.generate(2048)
    path = tmp_path / "key.pem"
    key.save(path, passphrase="correct horse battery")
    with siteline.Sandbox(now=NOW, record_wire=True) as sandbox:
        credential = siteline.Credential(
            sandbox.enroll(key.public_jwk), path, passphrase="correct horse battery"
        )
        client = siteline.Client(sandbox.base_url, credential=credential, clock=sandbox.clock)
        scan = client.data(**QUERY, page_size=500)
        pages = list(scan.pages())
        cursors = {
            urllib.parse.unquote(part.split("cursor=")[1].split(" ")[0])
            for part in sandbox.wire
            if "cursor=" in part
        }
        assert len(cursors) >= 2
        failures = [
            {"status": 400, "error": "invalid_cursor"},
            {"status": 500, "times": 9},
            {"status": 401, "times": 3},
            {"body": b'{"nextCursor": 7, "series": []}'},
            {"repeat_cursor": True, "skip": 1},
        ]
        for failure in failures:
            sandbox.clear_faults()
            sandbox.fault(on="data", **{"skip": 1, "times": 5, **failure})
            error = failing(client)
            texts += [
                str(error),
                repr(error),
                repr(vars(error)),
                "".join(
                    traceback.TracebackException.from_exception(error, capture_locals=True).format()
                ),
            ]
        tokens = {
            line.split("Bearer ", 1)[1].strip()
            for text in sandbox.wire
            for line in text.splitlines()
            if "Bearer " in line
        }
        assertions = {
            part.removeprefix("client_assertion=")
            for text in sandbox.wire
            for part in text.partition("\r\n\r\n")[2].split("&")
            if part.startswith("client_assertion=")
        }
        assert tokens
        assert assertions
        sandbox.clear_faults()
        things = [
            client,
            credential,
            key,
            scan,
            scan.query,
            scan.collect(),
            pages[0],
            pages[0].bookmark,
            client.allowance,
            client.discover(),
            sandbox,
            sandbox.clock,
        ]
        texts += [repr(thing) for thing in things] + [str(thing) for thing in things]
    texts += [record.getMessage() for record in caplog.records] + [
        str(one.message) for one in recwarn
    ]
    text = "\n".join(texts).encode()
    secrets = {
        path.read_text().splitlines()[5],
        "correct horse battery",
        *tokens,
        *assertions,
        *cursors,
    }
    for secret in secrets:
        for form in forms_of(secret):
            assert form not in text
    # A cursor without its prefix and padding is still a secret.
    for cursor in cursors:
        assert cursor.strip("~=").encode() not in text


def test_the_loggers_are_named_and_quiet_by_default(caplog):
    with siteline.Sandbox(now=NOW) as sandbox:
        with caplog.at_level(logging.DEBUG):
            sandbox.client().data(**QUERY).to_pandas()
        names = {record.name for record in caplog.records}
        assert names <= {"siteline.token", "siteline.http", "siteline.data"}
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            sandbox.client().data(**QUERY).to_pandas()
        assert not caplog.records
