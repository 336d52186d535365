"""`siteline.doctor` without a fault: its requests and its output."""

import asyncio
import pickle
import re

import pytest
import siteline
from kit import systems
from kit.command import run_command, run_process
from kit.doctor import IDS, diagnosed, profile
from kit.feeds import make_feed
from kit.markup import read_html
from kit.ranges import NOW

PASSPHRASE = "correct horse battery staple"


def sent(sandbox):
    return [getattr(sandbox.stats, f"{kind}_requests") for kind in ("token", "discovery", "data")]


def test_a_diagnosis_sends_three_requests(sandbox):
    client = sandbox.client()
    diagnosis = siteline.doctor(client)
    assert [check.id for check in diagnosis.checks] == IDS
    assert (diagnosis.ok, diagnosis.first_fail) == (True, None)
    skipped = {check.id for check in diagnosis.checks if check.status == "skipped"}
    assert skipped == {"agent", "tls", "store"}
    assert sent(sandbox) == [1, 1, 1]
    assert (client.allowance.used, client.allowance.token_requests) == (1, 1)
    # A client with a token sends no request for one.
    assert siteline.doctor(client)["token"].seen.startswith("there is one")
    assert sent(sandbox) == [1, 2, 2]


def test_offline_it_sends_nothing(sandbox):
    diagnosis = siteline.doctor(sandbox.client(), offline=True)
    skipped = [check.id for check in diagnosis.checks if check.seen == "offline"]
    assert skipped == IDS[IDS.index("tcp") : IDS.index("store")]
    assert diagnosis.ok
    assert not sandbox.stats.log


@pytest.mark.parametrize("on", ["token", "discovery", "data"])
def test_no_request_is_repeated(sandbox, on):
    for fault in ({"status": 401}, {"status": 503}, {"reset": True}, {"cut": 20}):
        before = sent(sandbox)
        sandbox.fault(on=on, times=9, **fault)
        assert not siteline.doctor(sandbox.client()).ok
        sandbox.clear_faults()
        new = [now - was for now, was in zip(sent(sandbox), before, strict=True)]
        assert max(new) == 1


def listing(folder):
    # With the folder itself: its time changes when a file is made and removed.
    stats = {path: path.stat() for path in [folder, *folder.rglob("*")]}
    return {path: (one.st_mode, one.st_mtime_ns, one.st_size) for path, one in stats.items()}


@systems.MODES
@pytest.mark.sandbox(now=None)
@pytest.mark.parametrize("more", [(), ("--offline",)], ids=["online", "offline"])
def test_only_the_ledger_changes(sandbox, tmp_path, key, more):
    folder, ledger = tmp_path / "plant", tmp_path / "ledger.txt"
    folder.mkdir()
    key.save(folder / "key.pem", passphrase=PASSPHRASE)
    with siteline.Store(folder / "plant.siteline") as store:
        sandbox.client().sync(make_feed(page_size=2_000), store)
    env = profile(
        folder,
        **{"base_url": sandbox.base_url, "subject": sandbox.enroll(key.public_jwk)},
        **{"private_key_file": "key.pem", "password_command": f"echo {PASSPHRASE}"},
        **{"ledger": str(ledger), "daily_allowance": 100},
    )
    before, tokens = listing(folder), sandbox.stats.token_requests
    checks = diagnosed(*more, "--store", folder / "plant.siteline", env=env, run=run_process)
    assert listing(folder) == before
    assert checks["store"]["status"] == checks["key"]["status"] == "ok"
    assert sandbox.stats.token_requests - tokens == (0 if more else 1)
    assert ledger.exists() == (not more)
    assert "does not exist yet" in checks["ledger"]["seen"]


@systems.MODES
def test_settings_and_file_modes_are_shown(sandbox, key, tmp_path):
    key.save(tmp_path / "key.pem")
    siteline.Store(tmp_path / "plant.siteline", share="group-read").close()
    for name in ("key.pem", "plant.siteline"):
        (tmp_path / name).chmod(0o644)
    members = {"base_url": "https://other.example.com", "private_key_file": "key.pem"}
    members["subject"] = sandbox.enroll(key.public_jwk)
    env = profile(tmp_path, **members, settle_lag="10m")
    env |= {name: sandbox.env()[name] for name in ("SITELINE_BASE_URL", "SITELINE_SANDBOX_CLOCK")}
    checks = diagnosed("--store", tmp_path / "plant.siteline", env=env)
    assert [checks[one]["status"] for one in ("settings", "key", "store")] == ["ok", "warn", "warn"]
    assert re.search(r"key\.pem\" \(mode 644\). Run chmod 600", checks["key"]["do"])
    # The variable in effect, and the members of the profile.
    seen = checks["settings"]["seen"]
    assert seen.startswith(f"{sandbox.base_url}, subject ")
    assert "; set by SITELINE_BASE_URL; " in seen
    file = tmp_path / "config.toml"
    assert seen.endswith(f'"default" of {file}: subject, private_key_file, settle_lag')


def test_missing_settings_are_named(tmp_path):
    checks = diagnosed(env={"XDG_CONFIG_HOME": str(tmp_path)}, status=2, first="settings")
    assert "base_url, subject and the private key are missing" in checks["settings"]["seen"]
    assert "SITELINE_BASE_URL (not set)" in checks["settings"]["do"]
    others = [checks[one]["seen"] for one in IDS if one not in ("settings", "store", "versions")]
    assert set(others) == {"settings failed"}
    assert checks["versions"]["status"] == "ok"
    missing = diagnosed("--profile", "none", status=2, first="settings")
    assert 'No profile "none"' in missing["settings"]["seen"]


def test_an_async_client_is_diagnosed(sandbox, key):
    client = sandbox.async_client()
    assert siteline.doctor(client).ok
    assert sent(sandbox) == [1, 1, 1]
    assert asyncio.run(client.discover())
    with pytest.raises(siteline.errors.ConfigError, match="not both"):
        siteline.doctor(client, profile="plant-a")

    # A signer that only asyncio awaits is not called.
    async def signer(_data):
        raise AssertionError

    subject = sandbox.enroll(key.public_jwk)
    credential = siteline.Credential(subject, signer=signer, public_jwk=key.public_jwk)
    client = siteline.AsyncClient(sandbox.base_url, credential=credential, clock=sandbox.clock)
    before, diagnosis = sent(sandbox), siteline.doctor(client)
    assert diagnosis.ok, diagnosis
    assert diagnosis["service"].status == "skipped"
    assert "AsyncClient" in diagnosis["data"].seen == diagnosis["service"].seen
    assert sent(sandbox) == before


@pytest.mark.parametrize("mode", ["data", "token"])
def test_a_client_certificate_replaces_the_key(mode):
    with siteline.Sandbox(now=NOW, mutual_tls=mode) as sandbox:
        client_id = "plant-7" if mode == "token" else None
        plant = siteline.MutualTls(sandbox.certificate("plant-7"), client_id=client_id)
        options = {"credential": plant, "ca_bundle": sandbox.ca, "clock": sandbox.clock}
        diagnosis = siteline.doctor(siteline.Client(sandbox.base_url, **options))
        assert diagnosis.ok, diagnosis
        assert "CN=plant-7" in diagnosis["key"].seen
        assert (diagnosis["token"].status == "ok") == (mode == "token")
        assert diagnosis["clock"].status == "ok"
        assert sent(sandbox) == [mode == "token", 1, 1]
        for status in ("warn", "fail"):
            sandbox.clock.advance("20d")
            check = siteline.doctor(siteline.Client(sandbox.base_url, **options))["key"]
            assert check.status == status
        assert "has expired" in check.seen


def test_warnings_are_no_faults(sandbox, monkeypatch):
    from importlib import metadata

    monkeypatch.setattr(metadata, "version", lambda name: "1.9.12" if name == "polars" else "9999")
    diagnosis = siteline.doctor(sandbox.client(scopes="customer.data.read"))
    assert diagnosis.ok, diagnosis
    assert (diagnosis["discovery"].status, diagnosis["data"].status) == ("warn", "ok")
    assert diagnosis["versions"].status == "warn"
    assert re.fullmatch(r"Update to at least polars 1\.[0-9.]+\.", diagnosis["versions"].do)


def test_an_unknown_form_of_discovery_is_explained(sandbox, recwarn):
    sandbox.fault(on="discovery", status=200, body='{"hello": "world"}')
    diagnosis = siteline.doctor(sandbox.client())
    assert diagnosis.ok, diagnosis
    assert diagnosis["discovery"].status == "warn"
    assert diagnosis["discovery"].seen == "it lists 0 series"
    assert "DiscoveryShape" in diagnosis["discovery"].do
    assert not recwarn.list


def test_a_diagnosis_prints_draws_and_pickles(sandbox):
    sandbox.fault(on="discovery", status=503, body='{"error": "<b>down</b>"}')
    diagnosis = siteline.doctor(sandbox.client())
    text = str(diagnosis)
    assert text.startswith("sends at most one token, one discovery and one data request\n")
    assert max(map(len, text.splitlines())) <= 80
    assert text.endswith("the first failure is discovery")
    assert repr(diagnosis).startswith("<Diagnosis 15 checks: ")
    drawn = read_html(diagnosis)
    assert "the first failure is discovery" in drawn.text
    assert all(one in drawn.text for one in IDS)
    assert pickle.loads(pickle.dumps(diagnosis)) == diagnosis
    assert diagnosis.to_dict()["checks"][0]["id"] == "settings"
    with pytest.raises(KeyError):
        diagnosis["none"]


def test_causes_are_lines_and_skipped_checks_grouped(sandbox):
    client = sandbox.client()
    sandbox.revoke(client.subject)
    text = str(siteline.doctor(client))
    assert text.count("  - ") >= 3
    assert "\\n" not in text
    assert "\nskipped  discovery, data: token failed\n" in text
    assert text.count("token failed") == 1


def test_the_command_says_what_it_sends(sandbox):
    done = run_command("doctor", env=sandbox.env())
    assert done.stderr == "Sends at most one token, one discovery and one data request.\n"
    assert done.stdout.startswith("ok       settings   http://127.0.0.1")
    assert max(map(len, done.stdout.splitlines())) <= 80
    told = run_command("doctor", "--offline", env=sandbox.env()).stderr
    assert told == "Sends nothing (offline).\n"


def test_a_first_run_names_the_next_command(tmp_path, key_file):
    env = {"SITELINE_CONFIG": str(tmp_path / "config.toml")}
    done = run_command("doctor", env=env, status=2)
    lines = done.stdout.splitlines()
    assert (done.stderr, len(lines) <= 6) == ("", True)
    [init] = [line for line in lines if "siteline profile init" in line]
    values = {"URL": "https://a.example.com", "SUBJECT": "s", "FILE": str(key_file)}
    words = [values.get(word, word) for word in init.split()]
    run_command(*words[1:], env=env)
    # The profile has another name than "default", so the next command names it.
    done = run_command("doctor", env=env, status=2)
    assert "\nType: siteline doctor --profile plant-a\n" in done.stdout
    # With any setting, all checks are listed.
    done = run_command("doctor", env={**env, "SITELINE_SUBJECT": "s"}, status=2)
    assert done.stdout.startswith("fail     settings")
