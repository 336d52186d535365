"""The signers of vaults, with the vendors' own packages against local stand-ins."""

import asyncio
import copy
import hashlib
import importlib
import io
import json
import pickle
import subprocess
import sys
import threading
import traceback
from concurrent import futures
from pathlib import Path
from types import SimpleNamespace

import jwt
import pytest
import siteline
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from jwt.algorithms import RSAAlgorithm
from jwt.utils import base64url_decode, base64url_encode
from siteline import signers
from siteline.errors import CredentialError
from test_assertions import RSA as KEY
from test_assertions import token_requests

PUBLIC = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
SECRET = "the-bearer-of-the-vault"


def signature_of(digest):
    return KEY.sign(digest, padding.PKCS1v15(), Prehashed(hashes.SHA256()))


@pytest.fixture
def aws(monkeypatch):
    """Returns a function that makes a key in moto's KMS and a signer for it."""
    import boto3
    from moto import mock_aws

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with mock_aws():
        kms = boto3.client("kms", region_name="eu-central-1")

        def make(spec="RSA_2048", usage="SIGN_VERIFY", **options):
            arn = kms.create_key(KeySpec=spec, KeyUsage=usage)["KeyMetadata"]["Arn"]
            return signers.AwsKms(arn, **options)

        yield make


class AzureService:
    """Answers the requests that Azure's package would send with `requests`."""

    def __init__(self):
        jwk = RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
        self.key = {**jwk, "key_ops": ["sign"], "enabled": True}

    def send(self, _, request, **options):
        import requests

        reply = requests.Response()
        reply.request, reply.url, reply.status_code = request, request.url, 200
        body = {"error": {"code": "Unauthorized", "message": "no token"}}
        if request.headers.get("Authorization") != f"Bearer {SECRET}":
            reply.status_code = 401
            place = 'authorization="https://login.example/t", resource="https://vault.azure.net"'
            reply.headers["WWW-Authenticate"] = f"Bearer {place}"
        elif "/sign" in request.url and "forbids_signing" in self.key:
            body["error"] = {"code": "Forbidden", "message": "not permitted"}
            reply.status_code = 403
        elif "/sign" in request.url:
            asked = json.loads(request.body)
            assert asked["alg"] == "RS256"
            signature = signature_of(base64url_decode(asked["value"]))
            body = {"kid": self.kid, "value": base64url_encode(signature).decode()}
        elif "/absent" in request.url:
            reply.status_code, body = 404, {"error": {"code": "KeyNotFound", "message": "none"}}
        else:
            key = {"kid": self.kid, **self.key}
            body = {"attributes": {"enabled": key.pop("enabled")}, "key": key}
        reply.headers["Content-Type"] = "application/json"
        reply.raw = io.BytesIO(json.dumps(body).encode())
        return reply

    kid = "https://plant.vault.azure.net/keys/line/0123456789abcdef"


@pytest.fixture
def azure(monkeypatch):
    from azure.core.credentials import AccessToken

    service = AzureService()
    monkeypatch.setattr("requests.adapters.HTTPAdapter.send", lambda *a, **k: service.send(*a, **k))
    identity = SimpleNamespace(get_token=lambda *scopes, **options: AccessToken(SECRET, 1 << 40))

    def make(name="line", **key):
        service.key |= key
        where = f"https://plant.vault.azure.net/keys/{name}"
        return signers.AzureKeyVault(where, credential=identity)

    return make


@pytest.fixture
def gcp():
    """Serves one key of Google Cloud KMS by gRPC on loopback."""
    import grpc
    from google.cloud import kms
    from google.cloud.kms_v1.services.key_management_service import transports

    name = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"
    algorithms = kms.CryptoKeyVersion.CryptoKeyVersionAlgorithm
    key = {"algorithm": "RSA_SIGN_PKCS1_2048_SHA256"}

    def get_public_key(request, context):
        if request.name != name:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such key")
        return kms.PublicKey(name=name, pem=PUBLIC.decode(), algorithm=algorithms[key["algorithm"]])

    def asymmetric_sign(request, context):
        return kms.AsymmetricSignResponse(signature=signature_of(request.digest.sha256))

    def handler(function, asked, answer):
        return grpc.unary_unary_rpc_method_handler(function, asked.deserialize, answer.serialize)

    methods = {
        "GetPublicKey": handler(get_public_key, kms.GetPublicKeyRequest, kms.PublicKey),
        "AsymmetricSign": handler(
            asymmetric_sign, kms.AsymmetricSignRequest, kms.AsymmetricSignResponse
        ),
    }
    server = grpc.server(futures.ThreadPoolExecutor(1))
    service = "google.cloud.kms.v1.KeyManagementService"
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, methods)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        transport = transports.KeyManagementServiceGrpcTransport(channel=channel)
        client = kms.KeyManagementServiceClient(transport=transport)

        def make(where=name, **options):
            key.update(options)
            return signers.GoogleKms(where, client=client)

        yield make
    server.stop(None).wait()


LIBRARIES = ("/usr/lib/softhsm/libsofthsm2.so", "/opt/homebrew/lib/softhsm/libsofthsm2.so")


@pytest.fixture(scope="module")
def softhsm(tmp_path_factory):
    """The library of SoftHSM, with a token that has a key, a short one, and one for ECDSA."""
    library = next((path for path in LIBRARIES if Path(path).exists()), None)
    if library is None:
        pytest.skip("SoftHSM is not installed: apt-get install softhsm2")
    folder = tmp_path_factory.mktemp("softhsm")
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder}\n")
    keys = {"line": KEY, "short": rsa.generate_private_key(65537, 1024)}
    keys["curve"] = ec.generate_private_key(ec.SECP256R1())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTHSM2_CONF", str(folder / "softhsm2.conf"))

        def run(*command):
            command = ["softhsm2-util", "--label", *command, "--pin", "1234"]
            subprocess.run(command, check=True, capture_output=True)

        run("plant", "--init-token", "--free", "--so-pin", "5678")
        for number, (name, key) in enumerate(keys.items()):
            form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
            (folder / name).write_bytes(key.private_bytes(*form, serialization.NoEncryption()))
            options = ("--token", "plant", "--id", f"0{number}")
            run(name, "--import", str(folder / name), *options)
        yield library


@pytest.fixture
def pkcs11(softhsm, tmp_path):
    def make(key="line", pin="1234"):
        file = tmp_path / "pin"
        file.write_text(pin)
        command = [sys.executable, "-c", f"print(open({str(file)!r}).read())"]
        return signers.Pkcs11(softhsm, token="plant", key=key, pin_command=command)

    yield make
    importlib.import_module("pkcs11").lib(softhsm).finalize()


@pytest.fixture(params=["aws", "azure", "gcp", "pkcs11"])
def vault(request):
    """Makes signers of one kind."""
    return request.getfixturevalue(request.param)


@pytest.mark.sandbox(record_wire=True)
def test_a_vault_signs_an_assertion(vault, sandbox):
    signer = vault()
    credential = siteline.Credential(sandbox.enroll(signer.public_jwk), signer=signer)
    client = siteline.Client(sandbox.base_url, credential=credential, clock=sandbox.clock)
    assert "sites" in client.discover()
    [(_, form)] = token_requests(sandbox)
    [assertion] = form["client_assertion"]
    header = jwt.get_unverified_header(assertion)
    assert header["kid"] == signer.kid == credential.kid == jwt.PyJWK(signer.public_jwk).key_id
    options = {f"verify_{name}": False for name in ("exp", "iat", "nbf", "aud")}
    key = jwt.PyJWK(signer.public_jwk)
    assert (
        jwt.decode(assertion, key, algorithms=["RS256"], options=options)["iss"] == client.subject
    )


def test_an_event_loop_runs_while_a_vault_signs(vault, sandbox, monkeypatch):
    signer, threads = vault(), []
    plain = type(signer).__call__

    def sign(self, data):
        threads.append(threading.get_ident())
        return plain(self, data)

    monkeypatch.setattr(type(signer), "__call__", sign)
    subject = sandbox.enroll(signer.public_jwk)
    credential = siteline.Credential(subject, signer=signer.asynchronous)

    async def discover():
        options = {"credential": credential, "clock": sandbox.clock}
        async with siteline.AsyncClient(sandbox.base_url, **options) as client:
            return await client.discover()

    assert "sites" in asyncio.run(discover())
    assert len(threads) == 1
    assert threads != [threading.get_ident()]


@pytest.mark.parametrize(
    ("kind", "options", "fault"),
    [
        ("aws", {"spec": "ECC_NIST_P256"}, "does not allow RSASSA_PKCS1_V1_5_SHA_256"),
        ("aws", {"usage": "ENCRYPT_DECRYPT"}, "does not allow RSASSA_PKCS1_V1_5_SHA_256"),
        ("azure", {"kty": "EC", "crv": "P-256"}, "its type is EC"),
        ("azure", {"key_ops": ["verify"]}, "the operation sign is not allowed"),
        ("azure", {"enabled": False}, "it is disabled"),
        ("azure", {"n": "_" * 170}, "it has 1016 bits"),
        ("gcp", {"algorithm": "EC_SIGN_P256_SHA256"}, "algorithm is EC_SIGN_P256_SHA256"),
        ("gcp", {"algorithm": "RSA_SIGN_PKCS1_4096_SHA512"}, "algorithm is RSA_SIGN_PKCS1_4096"),
        ("gcp", {"algorithm": "RSA_SIGN_PSS_2048_SHA256"}, "algorithm is RSA_SIGN_PSS_2048"),
        ("pkcs11", {"key": "curve"}, "its type is EC"),
        ("pkcs11", {"key": "short"}, "it has 1024 bits"),
    ],
)
def test_a_key_that_cannot_sign_is_refused(kind, options, fault, request):
    with pytest.raises(CredentialError, match=f"cannot sign with RS256: .*{fault}"):
        request.getfixturevalue(kind)(**options)


@pytest.mark.parametrize(
    ("kind", "options", "cause"),
    [
        ("azure", {"name": "absent"}, "ResourceNotFoundError"),
        ("gcp", {"where": "projects/p"}, "NotFound"),
        ("pkcs11", {"key": "absent"}, "NoSuchKey"),
        ("pkcs11", {"pin": "secret-pin"}, "PinIncorrect"),
    ],
)
def test_an_unusable_vault_is_the_cause(kind, options, cause, request):
    make = request.getfixturevalue(kind)
    with pytest.raises(CredentialError, match=f"could not read its public key: {cause}") as caught:
        make(**options)
    assert type(caught.value.__cause__).__name__ == cause
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [one for one in [*shown.stack, *shown.__cause__.stack] if one.filename != __file__]
    assert ours
    text = "".join([*traceback.StackSummary.from_list(ours).format(), str(shown)])
    assert SECRET not in text
    assert "secret-pin" not in text


def test_a_failing_vault_sends_nothing(azure, sandbox):
    signer = azure()
    credential = siteline.Credential(sandbox.enroll(signer.public_jwk), signer=signer)
    client = siteline.Client(sandbox.base_url, credential=credential, clock=sandbox.clock)
    azure(forbids_signing=True)
    with pytest.raises(CredentialError, match="HttpResponseError; nothing was sent") as caught:
        client.discover()
    assert "not permitted" in str(caught.value.__cause__)
    assert sandbox.stats.token_requests == 0


@pytest.mark.parametrize("mode", ["plain", "asynchronous"])
def test_a_stop_iteration_ends_the_read(mode, aws, sandbox, monkeypatch):
    signer = aws()
    monkeypatch.setattr(signer, "_sign", lambda data: next(iter(())))
    sign = signer if mode == "plain" else signer.asynchronous
    credential = siteline.Credential(sandbox.enroll(signer.public_jwk), signer=sign)

    async def discover():
        options = {"credential": credential, "clock": sandbox.clock}
        async with siteline.AsyncClient(sandbox.base_url, **options) as client:
            return await asyncio.wait_for(client.discover(), 10)

    with pytest.raises(CredentialError, match="nothing was sent") as caught:
        asyncio.run(discover())
    assert isinstance(caught.value.__cause__.__cause__, StopIteration)


def test_a_signer_cannot_be_pickled(aws):
    signer = aws()
    for one in (signer, signer.asynchronous):
        with pytest.raises(TypeError, match="make the signer in the process that uses it"):
            pickle.dumps(one)
        assert copy.deepcopy(one) is one


def test_two_keys_of_one_token_sign(pkcs11):
    first, second = pkcs11(), pkcs11(key=b"\0")
    assert first(b"data") == second(b"data") == signature_of(hashlib.sha256(b"data").digest())
