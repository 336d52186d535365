"""Keys and settings: what is wrong is said before any request leaves, and without the secret."""

import base64
import json
import os
import pickle
import stat
import warnings
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
import siteline
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


@pytest.fixture(scope="module")
def rsa_key():
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def pem(rsa_key):
    return rsa_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.fixture
def key_file(pem, tmp_path):
    path = tmp_path / "key.pem"
    path.write_bytes(pem)
    path.chmod(0o600)
    return path


def no_secret(error, pem):
    text = f"{error} {error!r} {vars(error)}"
    for line in pem.decode().splitlines()[1:-1]:
        assert line not in text


@pytest.mark.fault("K1")
def test_a_path_that_is_no_key_file_is_named(tmp_path):
    for path in (tmp_path / "missing.pem", tmp_path):
        with pytest.raises(siteline.CredentialError, match=path.name):
            siteline.PrivateKey(path)


@pytest.mark.fault("K1")
def test_pem_text_is_recognised_and_never_taken_for_a_path(pem):
    key = siteline.PrivateKey(pem.decode())
    assert key.bits == 2048
    broken = pem.decode().replace("M", "!", 5)
    with pytest.raises(siteline.CredentialError) as caught:
        siteline.PrivateKey(broken)
    no_secret(caught.value, pem)


@pytest.mark.fault("K2")
def test_a_key_of_another_kind_is_refused_by_name(rsa_key):
    wrong = [
        rsa_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ),
        ed25519.Ed25519PrivateKey.generate().private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ),
    ]
    for text in wrong:
        with pytest.raises(siteline.CredentialError, match="RS256 needs an RSA private key"):
            siteline.PrivateKey(text)


@pytest.mark.fault("K3")
def test_an_encrypted_key_wants_its_passphrase_and_never_shows_it(rsa_key):
    encrypted = rsa_key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"correct horse")
    )
    for wrong in (None, "battery staple"):
        with pytest.raises(siteline.CredentialError) as caught:
            siteline.PrivateKey(encrypted, passphrase=wrong)
        assert "battery" not in f"{caught.value!r} {vars(caught.value)}"
    assert siteline.PrivateKey(encrypted, passphrase=b"correct horse").bits == 2048


@pytest.mark.fault("K4")
def test_a_key_of_1024_bits_is_refused():
    small = rsa.generate_private_key(65537, 1024)
    with pytest.raises(siteline.CredentialError, match="2048"):
        siteline.PrivateKey(small.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@pytest.mark.fault("K5")
def test_every_form_of_one_key_has_one_kid(rsa_key, pem, key_file):
    numbers = rsa_key.private_numbers()

    def b64(number):
        data = number.to_bytes((number.bit_length() + 7) // 8, "big")
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    jwk = {
        "kty": "RSA",
        "n": b64(numbers.public_numbers.n),
        "e": b64(numbers.public_numbers.e),
        "d": b64(numbers.d),
        "p": b64(numbers.p),
        "q": b64(numbers.q),
        "dp": b64(numbers.dmp1),
        "dq": b64(numbers.dmq1),
        "qi": b64(numbers.iqmp),
    }
    forms = [
        key_file,
        str(key_file),
        pem,
        pem.decode(),
        pem.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + pem,
        b"  \n" + pem + b"\n\n",
        jwk,
        json.dumps(jwk),
        rsa_key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
        rsa_key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        rsa_key.private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
    ]
    assert len({siteline.PrivateKey(form).thumbprint for form in forms}) == 1


@pytest.mark.fault("K6")
def test_a_stated_kid_that_is_not_the_thumbprint_is_refused_with_the_right_one(key_file):
    right = siteline.PrivateKey(key_file).thumbprint
    with pytest.raises(siteline.CredentialError, match=right):
        siteline.Credential("subject", key_file, kid="typed-in-by-hand")
    assert siteline.Credential("subject", key_file, kid=right).kid == right


@pytest.mark.fault("K8")
@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_a_key_file_that_others_can_read_warns_once_or_is_refused(key_file):
    key_file.chmod(0o644)
    with pytest.warns(siteline.SitelineWarning, match="chmod 600") as caught:
        siteline.PrivateKey(key_file)
    assert len(caught) == 1
    with pytest.raises(siteline.CredentialError):
        siteline.PrivateKey(key_file, strict=True)


@pytest.mark.fault("K9")
def test_plain_http_beyond_loopback_must_be_allowed(key_file):
    credential = siteline.Credential("subject", key_file)
    with pytest.raises(siteline.ConfigError, match="allow_http"):
        siteline.Client("http://customer.example.com", credential=credential)
    siteline.Client("http://customer.example.com", credential=credential, allow_http=True)
    siteline.Client("http://127.0.0.1:8080", credential=credential)


@pytest.mark.fault("K10")
def test_an_address_with_userinfo_query_or_fragment_is_refused(key_file):
    credential = siteline.Credential("subject", key_file)
    for wrong in ("https://u:secret@h.example", "https://h.example?a=1", "https://h.example#f"):
        with pytest.raises(siteline.ConfigError) as caught:
            siteline.Client(wrong, credential=credential)
        assert "secret" not in str(caught.value)
    for right in (
        "https://h.example/",
        "https://h.example/prefix",
        "https://[::1]",
        "https://h.example:443",
    ):
        client = siteline.Client(right, credential=credential)
        assert client.base_url == right.rstrip("/")


@pytest.mark.fault("K11")
def test_scopes_are_checked_and_merged(key_file):
    credential = siteline.Credential("subject", key_file)
    for wrong in ([], "", ['a"b'], ["a\nb"]):
        with pytest.raises(siteline.ConfigError):
            siteline.Client("https://h.example", credential=credential, scopes=wrong)
    with siteline.Sandbox(record_wire=True) as sandbox:
        sandbox.client(
            scopes=["customer.data.read", "customer.discovery.read", "customer.data.read"]
        ).discover()
        assert any(
            "scope=customer.data.read+customer.discovery.read" in text
            or "scope=customer.data.read%20customer.discovery.read" in text
            for text in sandbox.wire
        )


@pytest.mark.fault("K12")
def test_a_subject_with_a_stray_newline_is_trimmed_with_a_warning(key_file):
    with pytest.warns(siteline.SitelineWarning):
        credential = siteline.Credential("subject-7\n", key_file)
    assert credential.subject == "subject-7"


def test_a_generated_key_is_saved_for_its_owner_alone_and_loads_again(tmp_path):
    key = siteline.PrivateKey.generate()
    assert key.bits == 3072
    for name, passphrase in (("plain.pem", None), ("sealed.pem", "correct horse")):
        path = tmp_path / name
        key.save(path, passphrase=passphrase)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = siteline.PrivateKey(path, passphrase=passphrase)
        assert again.thumbprint == key.thumbprint
        with pytest.raises(siteline.CredentialError, match=name):
            key.save(path)
    assert set(key.public_jwk) == {"kty", "n", "e", "kid", "alg", "use"}


def test_a_private_key_is_not_pickled_and_shows_nothing_of_itself(key_file):
    key = siteline.PrivateKey(key_file)
    with pytest.raises(TypeError):
        pickle.dumps(key)
    assert repr(key).count(key.thumbprint) == 1
    assert len(repr(key)) < 120


# What is asked.


@pytest.fixture(scope="module")
def sandbox():
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        yield sandbox


@pytest.mark.fault("K13")
def test_bounds_are_aware_ordered_whole_seconds_or_refused(sandbox):
    client = sandbox.client()
    good = datetime(2026, 11, 1, tzinfo=UTC)
    berlin = ZoneInfo("Europe/Berlin")
    wrong = [
        {"start": datetime(2026, 11, 1)},
        {"start": "2026-11-01T00:00:00"},
        {"start": pd.Timestamp("2026-11-01")},
        {"start": datetime(2026, 3, 29, 2, 30, tzinfo=berlin)},
        {"start": good, "end": good},
        {"start": good, "end": good - timedelta(days=1)},
        {"start": good.replace(microsecond=1)},
        {"start": pd.Timestamp("2026-11-01T00:00:00.000000001Z")},
        {"start": 1_793_491_200},
    ]
    for bounds in wrong:
        with pytest.raises(siteline.QueryError):
            client.data(**bounds)
    same = [
        good,
        "2026-11-01T00:00:00Z",
        "2026-11-01T00:00Z",
        "2026-11-01T01:00:00+01:00",
        pd.Timestamp("2026-11-01", tz="UTC"),
        datetime(2026, 11, 1, 1, tzinfo=berlin),
    ]
    queries = {client.data(start=start, end="2026-11-02T00:00:00Z").query for start in same}
    assert len(queries) == 1


@pytest.mark.fault("K13")
def test_an_end_in_the_future_warns_and_is_pulled_back_only_when_asked(sandbox):
    client = sandbox.client()
    ahead = "2026-11-21T00:00:00Z"
    with pytest.warns(siteline.SitelineWarning, match="ahead"):
        scan = client.data(start="2026-11-01T00:00:00Z", end=ahead, interval="1m")
    assert scan.query.end.isoformat() == "2026-11-21T00:00:00+00:00"
    scan = client.data(start="2026-11-01T00:00:00Z", end=ahead, interval="1m", lag="5m")
    assert scan.query.end.isoformat() == "2026-11-19T23:55:00+00:00"


@pytest.mark.fault("K14")
def test_a_bucket_width_or_page_size_that_is_none_is_refused(sandbox):
    client = sandbox.client()
    for interval in (0, -1, 1.5, "0s", "1.5s", True, timedelta(milliseconds=1500), "soon"):
        with pytest.raises(siteline.QueryError):
            client.data(interval=interval)
    for page_size in (0, -1, 1.5, True, "ten"):
        with pytest.raises(siteline.QueryError):
            client.data(page_size=page_size)
    widths = (60, 60.0, "1m", "60s", timedelta(minutes=1))
    assert {client.data(interval=width).query.interval_seconds for width in widths} == {60}


def test_reserved_names_are_refused_among_the_filters(sandbox):
    client = sandbox.client()
    for name in (
        "siteId",
        "lineId",
        "from",
        "to",
        "aggregationIntervalSeconds",
        "pageSize",
        "cursor",
    ):
        with pytest.raises(siteline.QueryError, match=name):
            client.data(filters={name: "x"})
    query = client.data(filters={"machineId": ["M1", "M2"], "tagGuid": 7}).query
    assert query.filters == {"machineId": ("M1", "M2"), "tagGuid": ("7",)}


def test_a_query_is_immutable_hashable_and_printable(sandbox):
    client = sandbox.client()
    make = lambda: client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-02T00:00Z").query  # noqa: E731
    assert make() == make()
    assert len({make(), make()}) == 1
    assert "S1" in str(make())
    with pytest.raises(AttributeError):
        make().site = "S2"
