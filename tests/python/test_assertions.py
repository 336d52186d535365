"""Assertions on the wire, verified with PyJWT."""

import asyncio
import json
import pickle
from urllib.parse import parse_qs

import jwt
import pytest
import siteline
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from kit.keys import OTHER_FILE, OTHER_PEM, PEM, other_private_key

pytestmark = pytest.mark.sandbox(record_wire=True)

NOW_SECONDS = 1_795_132_800
RSA, OTHER_RSA = (load_pem_private_key(pem.encode(), None) for pem in (PEM, OTHER_PEM))
JWK = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key()))


def signer_of(rsa):
    return lambda data: rsa.sign(data, padding.PKCS1v15(), hashes.SHA256())


def token_requests(sandbox):
    """The head and the form of each token request on the wire."""
    texts = [text for text in sandbox.wire if text.startswith("POST /api/customer/oauth/token")]
    parts = [text.partition("\r\n\r\n") for text in texts]
    return [(head, parse_qs(body, strict_parsing=True)) for head, _, body in parts]


def client_of(sandbox, **credential):
    subject = sandbox.enroll(JWK)
    credential = siteline.Credential(subject, **credential)
    return siteline.Client(sandbox.base_url, credential=credential, clock=sandbox.clock)


def test_pyjwt_verifies_the_assertion_which_is_only_in_its_form_field(sandbox):
    client = client_of(sandbox, private_key=PEM)
    client.discover()
    [(head, form)] = token_requests(sandbox)
    [assertion] = form.pop("client_assertion")
    assert form == {
        "grant_type": ["client_credentials"],
        "client_assertion_type": ["urn:ietf:params:oauth:client-assertion-type:jwt-bearer"],
        "scope": ["customer.discovery.read customer.data.read"],
    }
    assert "content-type: application/x-www-form-urlencoded" in head.lower()
    assert "authorization" not in head.lower()
    others = [text for text in sandbox.wire if not text.startswith("POST ")]
    assert others
    assert not any(assertion in text for text in others)

    audience = sandbox.base_url + "/api/customer/oauth/token"
    kid = siteline.PrivateKey(PEM).thumbprint
    assert jwt.get_unverified_header(assertion) == {"alg": "RS256", "kid": kid}
    claims = jwt.decode(
        assertion,
        RSA.public_key(),
        algorithms=["RS256"],
        audience=audience,
        options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
    )
    assert 0 < len(claims.pop("jti")) <= 128
    times = {"iat": NOW_SECONDS, "nbf": NOW_SECONDS, "exp": NOW_SECONDS + 120}
    assert claims == {"iss": client.subject, "sub": client.subject, "aud": audience, **times}
    assert all(type(claims[name]) is int for name in times)


def test_the_credential_decides_header_and_claims(sandbox, tmp_path):
    (tmp_path / "key.pem").write_text(PEM)
    (tmp_path / "key.pem").chmod(0o600)
    audience = sandbox.base_url + "/api/customer/oauth/token"
    credential = siteline.Credential(
        sandbox.enroll(JWK), tmp_path / "key.pem", audience=audience,
        assertion_lifetime="1m", clock_tolerance=7, typ=True,
    )  # fmt: skip
    for one in (credential, pickle.loads(pickle.dumps(credential))):
        sandbox.forget_tokens()
        client = siteline.Client(f"{sandbox.base_url}/", credential=one, clock=sandbox.clock)
        client.discover()
    for _, form in token_requests(sandbox):
        [assertion] = form["client_assertion"]
        assert jwt.get_unverified_header(assertion)["typ"] == "JWT"
        claims = jwt.decode(assertion, options={"verify_signature": False})
        assert claims["aud"] == audience
        assert claims["exp"] - claims["iat"] == 60
        assert claims["iat"] - claims["nbf"] == 7
    assert len(token_requests(sandbox)) == 2


def test_another_credential_brings_its_own_audience(sandbox):
    client = client_of(sandbox, private_key=PEM)
    wrong = siteline.Credential(client.subject, PEM, audience="https://elsewhere.example.com")
    client.replace_credential(wrong)
    with pytest.raises(siteline.errors.AuthenticationError, match="aud https://elsewhere"):
        client.discover()


def test_a_signer_that_fails_or_signs_wrongly_is_an_error_and_nothing_is_sent(sandbox):
    def seal(data):
        raise ConnectionError("the vault is sealed")

    for sign, cause in ((signer_of(OTHER_RSA), type(None)), (seal, ConnectionError)):
        with pytest.raises(siteline.errors.CredentialError) as caught:
            client_of(sandbox, signer=sign, public_jwk=JWK).discover()
        assert type(caught.value.__cause__) is cause
    assert token_requests(sandbox) == []


def kids(sandbox):
    """The kid of each token request, in order."""
    forms = [form for _, form in token_requests(sandbox)]
    return [jwt.get_unverified_header(form["client_assertion"][0])["kid"] for form in forms]


@pytest.mark.parametrize("kind", [siteline.Client, siteline.AsyncClient])
def test_after_a_token_expires_the_next_one_is_signed_with_the_new_key(sandbox, key, kind):
    subject = sandbox.enroll(key.public_jwk)
    old, new = key, other_private_key()
    credential = siteline.Credential(subject, old)
    client = kind(sandbox.base_url, credential=credential, clock=sandbox.clock)

    def discover():
        asyncio.run(client.discover()) if kind is siteline.AsyncClient else client.discover()

    discover()
    sandbox.replace_key(subject, new.public_jwk)
    with pytest.raises(siteline.errors.ConfigError, match="keeps the subject"):
        client.replace_credential(siteline.Credential("another", new))
    client.replace_credential(siteline.Credential(subject, OTHER_FILE.read_text()))
    discover()
    assert kids(sandbox) == [old.thumbprint]
    sandbox.clock.advance("11m")
    discover()
    assert kids(sandbox) == [old.thumbprint, new.thumbprint]


@pytest.mark.sandbox(record_wire=True, now=None)
def test_a_client_with_a_replaced_credential_is_pickled_with_the_new_one(sandbox, key, tmp_path):
    new = other_private_key()
    new.save(tmp_path / "new.pem")
    subject = sandbox.enroll(key.public_jwk)
    client = siteline.Client(sandbox.base_url, credential=siteline.Credential(subject, key))
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(client)
    sandbox.replace_key(subject, new.public_jwk)
    client.replace_credential(siteline.Credential(subject, tmp_path / "new.pem"))
    pickle.loads(pickle.dumps(client)).discover()
    assert kids(sandbox) == [new.thumbprint]
