"""Uses most of siteline, and prints all objects and errors. Run by test_secrets.py."""

import json
import logging
import re
import sys
import traceback
import urllib.parse
import warnings
from pathlib import Path

import siteline

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
        print(
            "".join(
                traceback.TracebackException.from_exception(
                    error, capture_locals=True, compact=False
                ).format()
            )
        )
        print(vars(error), error.args, repr(error))
        for name in ("bookmark", "partial", "attempts"):
            show(getattr(error, name, None))
        return error
    raise SystemExit("it did not fail")


# Secrets are globals, as the locals of these frames are printed.
PROXY = f"http://user:{PROXY_PASSWORD}@127.0.0.1:9"


def through_proxy(base_url):
    credential = siteline.Credential("subject", folder / "key.pem", passphrase=PASSPHRASE)
    return siteline.Client(base_url, credential=credential, proxy=PROXY, tries=1)


def settings(base_url):
    show(siteline.Credential("subject", folder / "key.pem", passphrase=PASSPHRASE))
    show(through_proxy(base_url))
    failing(lambda: through_proxy("https://service.invalid").discover())
    failing(lambda: siteline.Credential("subject", folder / "key.pem", passphrase=WRONG))
    failing(lambda: siteline.Credential("subject", PEM, passphrase=PASSPHRASE, kid="other"))
    failing(lambda: siteline.Credential("subject", PEM[:700]))


def scan_of(client):
    return client.data(
        site="S1",
        start="2026-11-01T00:00Z",
        end="2026-11-01T06:00Z",
        interval="1h",
        page_size=20,
        progress=show,
    )


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


key = siteline.PrivateKey.generate(2048)
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
    client = sandbox.client()
    settings(sandbox.base_url)
    reads(client)
    wire = "\n".join(sandbox.wire)
    # A service may echo the token and the assertion. (Tests of the core check that a request's own
    # cursor is removed from its reply.)
    SENT = " ".join(re.findall(ASSERTION, wire))
    ECHO = f"{re.findall(TOKEN, wire)[-1]} {SENT}"
    failures(sandbox, client)
    show(sandbox.stats)
    wire = "\n".join(sandbox.wire)
    found = [
        *re.findall(TOKEN, wire),
        *re.findall(ASSERTION, wire),
        *map(urllib.parse.unquote, re.findall(r"cursor=([^&\s]+)", wire)),
    ]
(folder / "secrets.json").write_text(json.dumps(sorted(set(found))))
