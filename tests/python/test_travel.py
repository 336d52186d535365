"""pickle, copy and deepcopy, also between processes. No secret is in a pickle."""

import asyncio
import base64
import copy
import multiprocessing
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor

import pyarrow as pa
import pytest
import siteline
from kit.keys import other_private_key

PASSPHRASE = "correct horse battery"
QUERY = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z", "interval": "1h"}
pytestmark = [pytest.mark.once, pytest.mark.sandbox(now=None)]


@pytest.fixture
def subject(sandbox, key):
    return sandbox.enroll(key.public_jwk)


@pytest.fixture
def locked_file(key, tmp_path):
    key.save(tmp_path / "locked.pem", passphrase=PASSPHRASE)
    return tmp_path / "locked.pem"


@pytest.fixture
def command(tmp_path):
    """A command that prints the passphrase."""
    script = tmp_path / "passphrase.py"
    script.write_text(f"print({PASSPHRASE!r})")
    return [sys.executable, "-I", "-S", str(script)]


@pytest.fixture
def client(sandbox, subject, key_file):
    return siteline.Client(
        sandbox.base_url,
        credential=siteline.Credential(subject, key_file),
        settle_lag="7m",
        http=siteline.types.Http(tries=2, application="travel/1"),
    )


def repickled(value, key_file=None):
    """Pickles and unpickles an object. The pickle must contain no secret."""
    pickled = pickle.dumps(value)
    secrets = [PASSPHRASE.encode()]
    if key_file is not None:
        lines = key_file.read_text().splitlines()[1:-1]
        secrets += [line.encode() for line in lines]
        secrets.append(base64.b64decode("".join(lines))[-64:])
    for secret in secrets:
        assert secret not in pickled
        assert base64.b64encode(secret).rstrip(b"=") not in pickled
    return pickle.loads(pickled)


def read_in_child(client_or_scan):
    if isinstance(client_or_scan, siteline.Client):
        client_or_scan = client_or_scan.scan(**QUERY)
    return client_or_scan.collect().to_pandas(), siteline.__version__


def test_a_client_works_in_a_spawned_process(client):
    expected, _ = read_in_child(client)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        in_child, version = pool.submit(read_in_child, client).result(timeout=300)
        scanned, _ = pool.submit(read_in_child, client.scan(**QUERY)).result(timeout=300)
    assert version == siteline.__version__
    assert len(expected) > 0
    assert in_child.equals(expected)
    assert scanned.equals(expected)


def test_a_client_pickles_settings_and_key_path(client, key_file, monkeypatch, tmp_path):
    client.discover()
    monkeypatch.chdir(tmp_path)
    again = repickled(client, key_file)
    assert again is not client
    assert (again.base_url, again.subject) == (client.base_url, client.subject)
    assert (
        again._handle.__getnewargs_ex__()[1].keys() == client._handle.__getnewargs_ex__()[1].keys()
    )
    for name, value in client._handle.__getnewargs_ex__()[1].items():
        if name != "credential":
            assert again._handle.__getnewargs_ex__()[1][name] == value, name
    again.discover()


def test_to_load_a_pickle_runs_no_command(sandbox, subject, locked_file, command, key, tmp_path):
    mark = tmp_path / "ran"
    line = f"open({str(mark)!r}, 'a').write('once '); print({PASSPHRASE!r})"
    command = [sys.executable, "-I", "-S", "-c", line]
    credential = siteline.Credential(subject, locked_file, password_command=command)
    client = siteline.Client(sandbox.base_url, credential=credential)
    pickled = pickle.dumps([credential, client, client.scan(**QUERY)])
    mark.unlink()
    again, client, scan = pickle.loads(pickled)
    assert (again.kid, again.public_jwk) == (key.thumbprint, key.public_jwk)
    assert pickle.loads(pickle.dumps(again)).subject == subject
    assert not mark.exists()
    client.discover()
    assert len(scan.collect()) > 0
    # At most once for the client and once for the scan's client.
    assert mark.read_text().split() in (["once"], ["once"] * 2)


def test_a_pickled_credential_fails_when_it_is_used(sandbox, subject, locked_file):
    def client(command):
        credential = siteline.Credential(subject, locked_file, password_command=command)
        return siteline.Client(sandbox.base_url, credential=credential)

    script = locked_file.with_name("command.py")
    script.write_text(f"print({PASSPHRASE!r})")
    pickled = pickle.dumps(client([sys.executable, str(script)]))
    script.write_text("raise SystemExit('the vault is closed')")
    with pytest.raises(siteline.errors.CredentialError, match="ended with status 1") as caught:
        pickle.loads(pickled).discover()
    assert caught.value.hint == "It said: the vault is closed"
    script.write_text(f"print({PASSPHRASE!r})")
    locked_file.unlink()
    other_private_key().save(locked_file, passphrase=PASSPHRASE)
    with pytest.raises(siteline.errors.CredentialError, match="kid="):
        pickle.loads(pickled).discover()
    assert sandbox.stats.token_requests == 0


def test_a_client_from_variables_is_pickled_as_their_names(sandbox, monkeypatch, set_variables):
    set_variables(sandbox.env())
    pem = sandbox.env()["SITELINE_PRIVATE_KEY"]
    client = siteline.Client(http=siteline.types.Http(tries=3))
    pickled = pickle.dumps(client)
    assert not any(line.encode() in pickled for line in pem.splitlines()[1:-1])
    pickle.loads(pickled).discover()
    monkeypatch.delenv("SITELINE_PRIVATE_KEY")
    with pytest.raises(siteline.errors.CredentialError, match="SITELINE_PRIVATE_KEY is not set"):
        pickle.loads(pickled)


def test_a_client_from_a_profile_is_pickled_as_its_settings(
    sandbox, subject, key_file, locked_file, command, monkeypatch, tmp_path
):
    config = tmp_path / "config.toml"
    config.write_text(
        f"[plant-a]\nbase_url = {sandbox.base_url!r}\nsubject = {subject!r}\n"
        f"private_key_file = {locked_file.name!r}\n"
        f"password_command = {command}\n"
    )
    monkeypatch.setenv("SITELINE_CONFIG", str(config))
    repickled(siteline.Client(profile="plant-a"), key_file).discover()


@pytest.mark.parametrize("how", ["text", "bytes", "object", "passphrase", "signer"])
def test_a_secret_value_is_not_pickled(sandbox, subject, key, key_file, locked_file, how):
    pem = key_file.read_text()
    credential = {
        "text": lambda new: new(subject, pem),
        "bytes": lambda new: new(subject, pem.encode()),
        "object": lambda new: new(subject, key),
        "passphrase": lambda new: new(subject, locked_file, passphrase=PASSPHRASE),
        "signer": lambda new: new(subject, signer=bytes, public_jwk=key.public_jwk),
    }[how](siteline.Credential)
    client = siteline.Client(sandbox.base_url, credential=credential)
    other = siteline.AsyncClient(sandbox.base_url, credential=credential)
    for value in (credential, client, other, client.scan(**QUERY), other.scan(**QUERY)):
        with pytest.raises(TypeError) as caught:
            pickle.dumps(value)
        for way in ("path of a key file", "password_command=", "Client() or", "Client(profile="):
            assert way in str(caught.value)
        assert copy.copy(value) is value
        assert copy.deepcopy(value) is value
    with pytest.raises(TypeError, match="save"):
        pickle.dumps(key)


def test_a_clock_and_the_password_of_a_proxy_are_not_pickled(sandbox, subject, key_file):
    credential = siteline.Credential(subject, key_file)
    with pytest.raises(TypeError, match="clock="):
        pickle.dumps(siteline.Client(sandbox.base_url, credential=credential, clock=sandbox.clock))
    proxy = "http://user:hunter2@proxy.example.com:3128"
    with pytest.raises(TypeError, match="HTTPS_PROXY") as caught:
        pickle.dumps(siteline.Client(sandbox.base_url, credential=credential, proxy=proxy))
    assert "hunter2" not in str(caught.value)


def test_an_async_client_and_its_scans_can_be_pickled_too(sandbox, subject, key_file):
    credential = siteline.Credential(subject, key_file)
    client = siteline.AsyncClient(
        sandbox.base_url, credential=credential, http=siteline.types.Http(tries=2)
    )

    async def read(client):
        async with client:
            return len(await client.scan(**QUERY).collect())

    expected = len(sandbox.expected(**QUERY))
    assert asyncio.run(read(repickled(client, key_file))) == expected
    scan = repickled(client.scan(**QUERY), key_file)
    assert len(asyncio.run(scan.collect())) == expected


def test_a_scan_is_pickled_as_its_query_and_settings(client, key_file):
    scan = client.scan(
        **QUERY, filters={"machineId": ["M1", "M2"]}, max_pages=9, deadline="1m",
        extra_columns=["quality"], keep_raw=True, page_size=7, tz="Europe/Berlin",
        labels={"T1": "speed"}, progress=print,
    )  # fmt: skip
    again = repickled(scan, key_file)
    assert again.query == scan.query
    assert repr(again) == repr(scan)
    assert pa.schema(again) == pa.schema(scan)
    # The cursor at the end is encrypted with a new nonce each time.
    assert next(again.pages()).raw[:500] == next(scan.pages()).raw[:500]
    assert again.collect().to_pandas().equals(scan.collect().to_pandas())
    again = repickled(client.scan(**QUERY, page_size=7, max_pages=1), key_file)
    with pytest.raises(siteline.errors.PageLimitReached, match="max_pages"):
        again.collect()


def test_a_resumed_scan_is_pickled_with_its_bookmark_but_without_a_table(client, sandbox, key_file):
    scan = client.scan(**QUERY, page_size=7)
    bookmark = next(scan.pages()).bookmark
    rest = scan.resume(bookmark)
    assert repickled(rest, key_file).collect().to_pandas().equals(rest.collect().to_pandas())
    sandbox.fault(on="data", status=503, skip=1, times=2)
    with pytest.raises(siteline.errors.ServiceUnavailable) as caught:
        client.scan(**QUERY, page_size=7).collect()
    error = caught.value
    with pytest.raises(TypeError, match="onto="):
        pickle.dumps(scan.resume(error.bookmark, onto=error.partial))
    again = pickle.loads(pickle.dumps(error))
    # The text omits the step that needs the scan.
    text, step = str(error).rsplit(": ", 1)
    assert step == "error.scan.collect() continues after it."
    assert (type(again), str(again)) == (type(error), f"{text}.")
    assert again.bookmark is None
    assert again.partial is None
