"""Uses most of siteline, and prints all objects and errors. Run by test_secrets.py."""

import faulthandler
import json
import logging
import os
import pickle
import re
import sys
import traceback
import urllib.parse
import warnings
from pathlib import Path

import siteline
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from siteline.cli import main

TOKEN, ASSERTION = r"(?i)authorization: bearer (\S+)", r"client_assertion=([^&\s]+)"
PASSPHRASE, PROXY_PASSWORD, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
WRONG = "wrong one"
logging.basicConfig(level=1, stream=sys.stdout)


def show(thing):
    print(repr(thing), str(thing), f"{thing}", f"{thing!a}", sep="\n")
    print(getattr(thing, "__dict__", ""))
    html = getattr(thing, "_repr_html_", None)
    print(html() if html else "")


def failing(action):
    try:
        action()
    except BaseException as error:
        show(error)
        options = {"capture_locals": True, "compact": False}
        print(*traceback.TracebackException.from_exception(error, **options).format(), sep="")
        print(vars(error), error.args, repr(error))
        for name in ("bookmark", "partial", "attempts"):
            show(getattr(error, name, None))
        return error
    raise SystemExit("it did not fail")


# Secrets are globals, as the locals of these frames are printed.
PROXY = f"http://user:{PROXY_PASSWORD}@127.0.0.1:9"


def through_proxy(base_url):
    credential = siteline.Credential("subject", folder / "key.pem", passphrase=PASSPHRASE)
    http = siteline.types.Http(tries=1)
    return siteline.Client(base_url, credential=credential, proxy=PROXY, http=http)


def settings(base_url):
    show(siteline.Credential("subject", folder / "key.pem", passphrase=PASSPHRASE))
    show(through_proxy(base_url))
    failing(lambda: through_proxy("https://service.invalid").discover())
    failing(lambda: siteline.Credential("subject", folder / "key.pem", passphrase=WRONG))
    failing(lambda: siteline.Credential("subject", PEM, passphrase=PASSPHRASE, kid="other"))
    failing(lambda: siteline.Credential("subject", PEM[:700]))


def scan_of(client):
    day = {"start": "2026-11-01T00:00Z", "end": "2026-11-01T06:00Z", "interval": "1h"}
    return client.scan(site="S1", **day, page_size=20, progress=show)


def reads(client):
    scan = scan_of(client)
    for thing in (client, client.allowance, scan, scan.query, client.discover()):
        show(thing)
    pages = scan.pages()
    show(pages)
    for page in pages:
        show(page), show(page.bookmark), show(page.report)
    show(scan.records()), show(scan.collect()), show(scan)
    show(scan.resume(next(scan.pages()).bookmark))
    show(scan.to_pandas().attrs)
    diagnosis = siteline.doctor(client)
    show(diagnosis), show(diagnosis.to_dict()), keep("diagnosis.pickle", diagnosis)


def odd(echo):
    return json.dumps({"error": "odd", "error_description": echo})


def failures(sandbox, client):
    for fault in (
        {"status": 503, "skip": 1, "times": 4},
        {"repeat_cursor": True, "skip": 1},
        {"forget_cursors": True, "skip": 1},
        {"status": 400, "body": odd(ECHO), "skip": 1},
        {"drop": ["nextCursor"], "skip": 1},
        {"body": odd(ECHO), "skip": 1},
        {"status": 302, "headers": {"Location": "/?" + ECHO}, "skip": 1},
        {"cut": 200, "skip": 1, "times": 4},
        {"status": 401, "skip": 1, "times": 3},
    ):
        sandbox.clear_faults()
        sandbox.fault(on="data", **fault)
        failing(lambda: scan_of(client).collect())
    sandbox.clear_faults()
    sandbox.forget_tokens()
    sandbox.fault(on="token", status=400, body=odd(SENT))
    failing(client.discover)


def keep(name, thing):
    (folder / "kept" / name).write_bytes(thing if isinstance(thing, bytes) else pickle.dumps(thing))


def stored(sandbox):
    ledger, path = folder / "plant.ledger", folder / "plant.siteline"
    feed = siteline.Feed("line", site="S1", interval="1h", start="2026-11-01", page_size=5)
    with sandbox.client(ledger=ledger) as client, siteline.Store(path) as store:
        sandbox.fault(on="data", status=503, skip=2, times=50)
        failing(lambda: client.sync(feed, store))
        sandbox.clear_faults()
        show(store), show(store.coverage("line"))
        for file in folder.glob("plant.*"):
            keep(file.name, file.read_bytes())
        keep("points.pickle", store.read("line", unread="keep").to_pandas())


def pickled(sandbox, client):
    credential = siteline.Credential("subject", folder / "key.pem", password_command=COMMAND)
    scan = scan_of(siteline.Client(sandbox.base_url, credential=credential))
    for name, thing in {
        "credential": credential, "scan": scan, "query": scan.query,
        "frame": scan_of(client).to_pandas(), "allowance": client.allowance,
    }.items():  # fmt: skip
        keep(f"{name}.pickle", thing)
    sandbox.fault(on="data", status=400, skip=1)
    error = failing(lambda: scan_of(client).collect())
    sandbox.clear_faults()
    keep("error.pickle", error)
    keep("bookmark-with-cursor.pickle", error.bookmark)


FEEDS = """
[feeds.line-2]
site = "S1"
line = "L2"
interval = "1h"
start = "2026-11-18"
page_size = 200
"""
QUERY = ("--site", "S1", "--line", "L2", "--interval", "5m", "--page-size", "300")
QUERY += ("--start", "2026-11-01", "--end", "2026-11-02")


def command(*words, status=0):
    """Runs a command, which must end with this status; prints its text and its document."""
    for more in ([], ["--json"]):
        assert main([*words, "-vv", *more]) == status, words


def variables(sandbox, **key_settings):
    """Sets the variables of a new subject, which has no token and no remembered refusal."""
    subject = sandbox.enroll(key.public_jwk)
    kept = {name: sandbox.env()[f"SITELINE_{name}"] for name in ("BASE_URL", "SANDBOX_CLOCK")}
    kept |= {"SUBJECT": subject, "PRIVATE_KEY_FILE": "plain.pem", **key_settings}
    os.environ.pop("SITELINE_PASSPHRASE", None)
    os.environ.update({f"SITELINE_{name}": text for name, text in kept.items()})


def commands(sandbox):
    os.chdir(folder)
    os.environ["SITELINE_CONFIG"] = "config.toml"
    Path("feeds.toml").write_text(FEEDS)
    Path("jwk.json").write_text(json.dumps(key.public_jwk))
    given = ("--base-url", sandbox.base_url, "--subject", "s", "--private-key-file", "plain.pem")
    assert main(["profile", "init", "plant-a", *given]) == 0
    for words in (("profile", "show", "plant-a"), ("profile", "list"), ("completion", "bash"),
                  ("keygen", "other.pem", "--bits", "2048", "--overwrite")):  # fmt: skip
        command(*words)
    # Decrypting a key is slow, so most commands use one that is not encrypted.
    variables(sandbox, PRIVATE_KEY_FILE="key.pem", PASSPHRASE=PASSPHRASE)
    command("read", *QUERY, "--dry-run")
    for words in (("doctor", "--enrolled-jwk", "jwk.json"), ("doctor", "--offline")):
        command(*words)
    for on, status in (("token", 401), ("discovery", 401), ("data", 503)):
        variables(sandbox)
        body = '{"error": "invalid_client", "error_description": "no"}'
        sandbox.fault(on=on, times=2, status=status, body=body)
        command("doctor", status=3 if status == 401 else 4)
        sandbox.clear_faults()
    command("series", "--diff")
    sandbox.fault(on="data", nth=2, status=503)
    command("sync", "feeds.toml", "own.siteline")
    sandbox.clear_faults()
    sandbox.clock.advance("2d")
    sandbox.fault(on="data", skip=1, status=410)
    assert main(["sync", "feeds.toml", "own.siteline", "-vv"]) == 3
    sandbox.clear_faults()
    command("read", *QUERY, "-o", "out.csv")
    sandbox.fault(on="data", skip=2, times=99, status=503)
    command("read", *QUERY, "-o", "late.csv", "--resume", status=4)
    sandbox.clear_faults()
    sandbox.forget_cursors()
    command("read", *QUERY, "-o", "late.csv", "--resume")
    for words in (("coverage", "own.siteline"), ("coverage", "own.siteline", "--lateness"),
                  ("store", "info", "own.siteline"), ("store", "check", "own.siteline"),
                  ("allowance",)):  # fmt: skip
        command(*words)
    assert main(["changes", "own.siteline", "line-2", "--since", "0", "-vv"]) == 0
    sandbox.revoke(os.environ["SITELINE_SUBJECT"])
    command("series", status=3)
    command("doctor", "--store", "own.siteline", status=3)


def panics():
    if hasattr(siteline._core, "_panic"):
        for at in ("call", "work"):
            failing(lambda at=at: siteline._core._panic(at))
    faulthandler.dump_traceback(file=sys.stdout, all_threads=True)


def encrypted(sandbox, path):
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    locked, opener = path.with_suffix(".p12"), path.with_suffix(".opener")

    def put(passphrase):
        how = serialization.BestAvailableEncryption(passphrase.encode())
        locked.write_bytes(pkcs12.serialize_key_and_certificates(None, key, certificate, None, how))
        locked.chmod(0o600)

    put(PASSPHRASE)
    opener.write_text(PASSPHRASE)
    given = siteline.MutualTls(locked, passphrase=PASSPHRASE)
    asking = siteline.MutualTls(locked, password_command=["cat", str(opener)])
    show(given), show(asking)
    failing(lambda: pickle.dumps(given))
    failing(lambda: siteline.MutualTls(locked, passphrase=WRONG))
    keep(f"{path.stem}-locked.pickle", asking)
    with sandbox.client(credential=asking) as client:
        failing(client.discover) if path.stem == "token" else show(client.discover())
        put(WRONG)
        failing(client.discover) if path.stem == "token" else show(client.discover())
        show(asking.not_after)


def with_certificates(mode):
    with siteline.Sandbox(now="2026-11-20T00:00Z", mutual_tls=mode, record_wire=True) as sandbox:
        client_id = "plant-7" if mode == "token" else None
        KEYS.append(sandbox.certificate("plant-7").decode())
        path = folder / f"{mode}.pem"
        path.write_text(KEYS[-1])
        path.chmod(0o600)
        plant = siteline.MutualTls(path, client_id=client_id)
        keep(f"{mode}-certificate.pickle", plant)
        for options in ({}, {"ledger": folder / "kept" / f"{mode}.ledger"}):
            with sandbox.client(credential=plant, **options) as client:
                show(plant), show(client), show(sandbox), show(client.discover())
                show(scan_of(client).collect())
        encrypted(sandbox, path)
        keep(f"{mode}-client.pickle", siteline.Client("https://127.0.0.1:9", credential=plant))
        with sandbox.client(credential=plant) as client:
            client.discover()
            sandbox.forget_tokens()
            sandbox.unregister("plant-7")
            failing(client.discover)
            failing(lambda: scan_of(client).collect())
        failing(lambda: siteline.MutualTls(KEYS[-1][:-200]))
        failing(lambda: siteline.MutualTls(KEYS[-1], key=PEM))
        failing(lambda: siteline.MutualTls(folder / "key.pem", passphrase=WRONG))
        failing(lambda: pickle.dumps(siteline.MutualTls(KEYS[-1])))
        failing(lambda: sandbox.client(credential=siteline.MutualTls(KEYS[0])).discover())
        wire = "\n".join(sandbox.wire)
        assert not re.findall(ASSERTION, wire)
        return [*re.findall(TOKEN, wire), *cursors(wire)]


def cursors(wire):
    return map(urllib.parse.unquote, re.findall(r"cursor=([^&\s]+)", wire))


(folder / "kept").mkdir()
KEYS = []
COMMAND = [sys.executable, "-c", f"print(open({str(folder / 'passphrase')!r}).read())"]
(folder / "passphrase").write_text(PASSPHRASE)
key = siteline.PrivateKey(Path(sys.argv[4]).read_text())
key.save(folder / "key.pem", passphrase=PASSPHRASE)
key.save(folder / "plain.pem")
PEM = (folder / "plain.pem").read_text()
(folder / "plain.pem").chmod(0o644)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    siteline.Credential(" subject ", folder / "plain.pem")
    for one in warned:
        show(one), show(one.message)
assert warned
show(key), show(siteline.Credential("subject", key))
with siteline.Sandbox(now="2026-11-20T00:00:00Z", record_wire=True) as sandbox:
    show(sandbox)
    client = sandbox.client(on_request=show)
    settings(sandbox.base_url)
    reads(client)
    wire = "\n".join(sandbox.wire)
    # A service may echo the token and the assertion. (Tests of the core check that a request's own
    # cursor is removed from its reply.)
    SENT = " ".join(re.findall(ASSERTION, wire))
    ECHO = f"{re.findall(TOKEN, wire)[-1]} {SENT}"
    failures(sandbox, client)
    # A refused token request is remembered for a while.
    sandbox.clock.advance("2m")
    stored(sandbox)
    pickled(sandbox, client)
    commands(sandbox)
    show(sandbox.stats)
    wire = "\n".join(sandbox.wire)
    found = {
        "tokens": re.findall(TOKEN, wire),
        "assertions": re.findall(ASSERTION, wire),
        "cursors": list(cursors(wire)),
    }
with siteline.Sandbox(mutual_tls="data") as other:
    KEYS.append(other.certificate("plant-7").decode())
for mode in ("data", "token"):
    of_mode = with_certificates(mode)
    found["tokens"] += [one for one in of_mode if one.startswith("sandbox.")]
    found["cursors"] += [one for one in of_mode if not one.startswith("sandbox.")]
panics()
found = {name: sorted(set(secrets)) for name, secrets in found.items()}
(folder / "secrets.json").write_text(json.dumps(found))
(folder / "keys.json").write_text(json.dumps(KEYS))
