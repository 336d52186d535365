"""Assertions on the wire, verified with PyJWT."""

import asyncio
import json
import pickle
import time
from urllib.parse import parse_qs

import jwt
import pytest
import siteline
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

pytestmark = pytest.mark.sandbox(record_wire=True)

NOW_SECONDS = 1_795_132_800


def token_requests(sandbox):
    """Yield the head and the form of each token request on the wire."""
    for text in sandbox.wire:
        if text.startswith("POST /api/customer/oauth/token"):
            head, _, body = text.partition("\r\n\r\n")
            yield head, parse_qs(body, strict_parsing=True)


def exchange(sandbox, key, **options):
    """Exchange a token with this key; return the subject, the JWK, the head and the form."""
    known = len(list(token_requests(sandbox)))
    jwk = siteline.PrivateKey(key).public_jwk if "signer" not in options else options["public_jwk"]
    subject = sandbox.enroll(jwk)
    private_key = None if "signer" in options else key
    signing = {name: options.pop(name) for name in ("signer", "public_jwk") if name in options}
    credential = siteline.Credential(subject, private_key, **signing)
    client = siteline.Client(
        sandbox.base_url, credential=credential, clock=sandbox.clock, **options
    )
    client.discover()
    head, form = list(token_requests(sandbox))[known:][0]
    return subject, jwk, head, form


def pem(key, form=PrivateFormat.PKCS8, encryption=None):
    return key.private_bytes(Encoding.PEM, form, encryption or NoEncryption())


@pytest.mark.once
@pytest.mark.parametrize("bits", [2048, 3072, 4096])
@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.fault("K5")
def test_pyjwt_verifies_assertions_signed_with_keys_of_cryptography(sandbox, bits, form):
    key = rsa.generate_private_key(65537, bits)
    subject, jwk, _, form_fields = exchange(sandbox, pem(key, form))
    (assertion,) = form_fields["client_assertion"]
    audience = sandbox.base_url + "/api/customer/oauth/token"
    header = jwt.get_unverified_header(assertion)
    assert header == {"alg": "RS256", "kid": jwk["kid"]}
    claims = jwt.decode(
        assertion,
        key.public_key(),
        algorithms=["RS256"],
        audience=audience,
        options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
    )
    assert claims.pop("jti")
    assert claims == {
        "iss": subject,
        "sub": subject,
        "aud": audience,
        "iat": NOW_SECONDS,
        "nbf": NOW_SECONDS,
        "exp": NOW_SECONDS + 120,
    }
    assert all(type(claims[name]) is int for name in ("iat", "nbf", "exp"))


@pytest.mark.once
def test_pyjwt_verifies_assertions_signed_with_generated_keys(sandbox):
    seen = set()
    for _ in range(20):
        key = siteline.PrivateKey.generate(2048)
        _, jwk, _, form = exchange(sandbox, key)
        (assertion,) = form["client_assertion"]
        public = jwt.PyJWK.from_json(json.dumps(jwk))
        claims = jwt.decode(
            assertion,
            public,
            algorithms=["RS256"],
            options={
                "verify_aud": False,
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )
        assert len(claims["jti"]) <= 128
        seen.add(claims["jti"])
    assert len(seen) == 20


def test_the_form_has_the_four_fields_and_nothing_else(sandbox):
    _, _, head, form = exchange(sandbox, siteline.PrivateKey.generate(2048))
    assert set(form) == {"grant_type", "client_assertion_type", "client_assertion", "scope"}
    assert form["grant_type"] == ["client_credentials"]
    assert form["client_assertion_type"] == [
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    ]
    assert form["scope"] == ["customer.discovery.read customer.data.read"]
    assert "content-type: application/x-www-form-urlencoded" in head.lower()


@pytest.mark.fault("T32", "D9")
def test_the_assertion_is_sent_only_in_its_form_field(sandbox):
    _, _, head, form = exchange(sandbox, siteline.PrivateKey.generate(2048))
    assert "authorization" not in head.lower()
    (assertion,) = form["client_assertion"]
    others = [text for text in sandbox.wire if not text.startswith("POST ")]
    assert others
    assert not any(assertion in text for text in others)


def test_a_key_in_a_vault_signs_through_a_callable(sandbox):
    key = rsa.generate_private_key(65537, 2048)
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    signed = []

    def sign(data: bytes) -> bytes:
        signed.append(data)
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())

    _, _, _, form = exchange(sandbox, key, signer=sign, public_jwk=jwk)
    (assertion,) = form["client_assertion"]
    assert signed == [assertion.rsplit(".", 1)[0].encode()]


def test_a_wrong_signature_of_a_signer_is_detected_before_anything_is_sent(sandbox):
    key = rsa.generate_private_key(65537, 2048)
    other = rsa.generate_private_key(65537, 2048)
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    with pytest.raises(siteline.CredentialError):
        exchange(
            sandbox,
            key,
            public_jwk=jwk,
            signer=lambda data: other.sign(data, padding.PKCS1v15(), hashes.SHA256()),
        )
    assert not list(token_requests(sandbox))


def test_an_error_of_the_signer_is_the_cause_of_the_credential_error(sandbox):
    jwk = siteline.PrivateKey.generate(2048).public_jwk

    def sign(data: bytes) -> bytes:
        raise ConnectionError("the vault is sealed")

    with pytest.raises(siteline.CredentialError) as caught:
        exchange(sandbox, None, signer=sign, public_jwk=jwk)
    assert isinstance(caught.value.__cause__, ConnectionError)


def test_the_audience_can_differ_from_the_address(sandbox):
    key = siteline.PrivateKey.generate(2048)
    subject = sandbox.enroll(key.public_jwk)
    client = siteline.Client(
        sandbox.base_url,
        credential=siteline.Credential(subject, key),
        clock=sandbox.clock,
        audience="https://customer.example.com/api/customer/oauth/token",
    )
    with pytest.raises(siteline.AuthenticationError) as caught:
        client.discover()
    assert "aud" in str(caught.value)


def test_times_are_checked_before_anything_is_sent():
    credential = siteline.Credential("subject", siteline.PrivateKey.generate(2048))
    for wrong in ({"assertion_lifetime": "6m"}, {"assertion_lifetime": 0}, {"clock_tolerance": 61}):
        with pytest.raises(siteline.ConfigError):
            siteline.Client("https://customer.example.com", credential=credential, **wrong)


def test_time_is_a_parameter(sandbox):
    began = time.monotonic()
    client = sandbox.client()
    client.discover()
    sandbox.clock.advance("9m")
    client.discover()
    assert sandbox.stats["token_requests"] <= 2
    sandbox.clock.advance("1d")
    client.discover()
    assert time.monotonic() - began < 60


def test_an_encrypted_key_works_with_its_passphrase(sandbox):
    key = rsa.generate_private_key(65537, 2048)
    encrypted = pem(key, encryption=BestAvailableEncryption(b"correct horse"))
    loaded = siteline.PrivateKey(encrypted, passphrase="correct horse")
    exchange(sandbox, loaded)


def kids(sandbox):
    """The kid of each token request, in order."""
    forms = [form for _, form in token_requests(sandbox)]
    return [jwt.get_unverified_header(form["client_assertion"][0])["kid"] for form in forms]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.fault("T30")
def test_a_token_is_used_until_it_expires_and_the_next_one_is_signed_with_the_new_key(
    sandbox, tmp_path, is_async
):
    old, new = (siteline.PrivateKey.generate(2048) for _ in range(2))
    new.save(tmp_path / "new.pem")
    subject = sandbox.enroll(old.public_jwk)
    kind = siteline.AsyncClient if is_async else siteline.Client
    client = kind(
        sandbox.base_url,
        credential=siteline.Credential(subject, old),
        clock=sandbox.clock,
    )

    def discover():
        return asyncio.run(client.discover()) if is_async else client.discover()

    discover()
    sandbox.replace_key(subject, new.public_jwk)
    client.replace_credential(siteline.Credential(subject, tmp_path / "new.pem"))
    discover()
    assert kids(sandbox) == [old.thumbprint]
    sandbox.clock.advance("11m")
    discover()
    assert kids(sandbox) == [old.thumbprint, new.thumbprint]


def test_a_client_with_a_replaced_credential_is_pickled_with_the_new_one(tmp_path):
    old, new = (siteline.PrivateKey.generate(2048) for _ in range(2))
    new.save(tmp_path / "new.pem")
    # On the machine's clock: a client on the sandbox's clock cannot be pickled.
    with siteline.Sandbox(record_wire=True) as sandbox:
        subject = sandbox.enroll(old.public_jwk)
        client = siteline.Client(sandbox.base_url, credential=siteline.Credential(subject, old))
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(client)
        sandbox.replace_key(subject, new.public_jwk)
        client.replace_credential(siteline.Credential(subject, tmp_path / "new.pem"))
        pickle.loads(pickle.dumps(client)).discover()
        assert kids(sandbox) == [new.thumbprint]


def test_a_credential_of_another_subject_is_refused_and_nothing_changes(sandbox):
    key = siteline.PrivateKey.generate(2048)
    credential = siteline.Credential(sandbox.enroll(key.public_jwk), key)
    client = siteline.Client(sandbox.base_url, credential=credential, clock=sandbox.clock)
    with pytest.raises(siteline.ConfigError, match="keeps the subject"):
        client.replace_credential(siteline.Credential("another", key))
    client.discover()
    assert kids(sandbox) == [key.thumbprint]
