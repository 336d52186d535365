"""`siteline.doctor` where all is well: what it sends, what it leaves as it is, what it shows."""

import asyncio
import os
import pickle
import re
from datetime import timedelta
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.doctor import IDS, diagnosed, profile
from kit.feeds import make_feed
from kit.markup import read_html
from kit.ranges import NOW

PASSPHRASE = "correct horse battery staple"


def statuses(diagnosis):
    return {check.id: check.status for check in diagnosis.checks}


def sent(sandbox):
    stats = sandbox.stats
    return [stats[f"{kind}_requests"] for kind in ("token", "discovery", "data")]


def test_where_all_is_well_it_sends_three_requests_and_no_token_request_where_there_is_one(sandbox):
    client = sandbox.client()
    diagnosis = siteline.doctor(client)
    assert [check.id for check in diagnosis.checks] == IDS
    assert (diagnosis.ok, diagnosis.first_fail) == (True, None)
    assert {one for one, status in statuses(diagnosis).items() if status == "skipped"} == {
        "agent",
        "tls",
        "store",
    }
    assert sent(sandbox) == [1, 1, 1]
    assert client.allowance.used == 1
    assert client.allowance.token_requests == 1
    again = siteline.doctor(client)
    assert again["token"].seen.startswith("there is one")
    assert sent(sandbox) == [1, 2, 2]


def test_offline_it_sends_nothing_and_opens_no_connection(sandbox):
    before = len(sandbox.stats["log"])
    diagnosis = siteline.doctor(sandbox.client(), offline=True)
    skipped = [check.id for check in diagnosis.checks if check.seen == "offline"]
    assert skipped == IDS[IDS.index("name") : IDS.index("store")]
    assert diagnosis.ok
    assert len(sandbox.stats["log"]) == before == 0


@pytest.mark.parametrize("on", ["token", "discovery", "data"])
@pytest.mark.parametrize(
    "fault", [{"status": 401}, {"status": 503}, {"reset": True}, {"cut": 20}], ids=str
)
def test_no_request_is_repeated_whatever_comes(sandbox, on, fault):
    sandbox.fault(on=on, times=9, **fault)
    diagnosis = siteline.doctor(sandbox.client())
    assert not diagnosis.ok
    assert max(sent(sandbox)) == 1
    assert sum(sent(sandbox)) <= 3


def test_a_pause_that_the_service_asked_for_is_not_waited_out(sandbox):
    sandbox.fault(on="token", status=429, retry_after=40)
    client = sandbox.client()
    first = siteline.doctor(client)
    assert (first.first_fail.id, first.first_fail.error) == ("token", "RateLimited")
    before = sandbox.clock.now()
    again = siteline.doctor(client)
    assert again.first_fail.error == "RateLimited"
    assert sandbox.clock.now() == before
    assert sent(sandbox) == [1, 0, 0]


def test_a_refusal_that_is_looked_at_is_not_remembered_for_the_client(sandbox):
    machine = sandbox.clock.machine(sandbox.clock.now() + timedelta(minutes=10))
    client = sandbox.client(clock=machine)
    assert siteline.doctor(client).first_fail.id == "clock"
    # The client itself corrects for the clocks.
    assert client.discover()


def listing(folder: Path):
    found = {}
    # The folder itself too: its time changes where a file is made and removed again.
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.stat()
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, status.st_size)
    return found


@systems.MODES
@pytest.mark.parametrize("more", [(), ("--offline",)], ids=["online", "offline"])
def test_nothing_on_the_disk_is_changed_but_a_ledger_that_a_request_is_counted_in(
    tmp_path, key, more
):
    folder = tmp_path / "plant"
    folder.mkdir()
    with siteline.Sandbox() as sandbox:
        key.save(folder / "key.pem", passphrase=PASSPHRASE)
        with siteline.Store(folder / "plant.siteline") as store:
            sandbox.client().sync(make_feed(page_size=2_000), store)
        env = profile(
            folder,
            base_url=sandbox.base_url,
            subject=sandbox.enroll(key.public_jwk),
            private_key_file="key.pem",
            password_command=f"echo {PASSPHRASE}",
            ledger=str(tmp_path / "ledger.txt"),
            daily_allowance=100,
        )
        before = listing(folder)
        tokens = sandbox.stats["token_requests"]
        checks = diagnosed(*more, "--store", folder / "plant.siteline", env=env)
        assert listing(folder) == before
        assert checks["store"]["status"] == checks["key"]["status"] == "ok"
        assert sandbox.stats["token_requests"] - tokens == (0 if more else 1)
    assert (tmp_path / "ledger.txt").exists() == (not more)
    assert "which the first request makes" in checks["ledger"]["seen"]


@systems.MODES
def test_files_that_others_can_read_are_warned_of(sandbox, key, tmp_path):
    key.save(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o644)
    with siteline.Store(tmp_path / "plant.siteline"):
        pass
    (tmp_path / "plant.siteline").chmod(0o644)
    env = profile(
        tmp_path,
        base_url=sandbox.base_url,
        subject=sandbox.enroll(key.public_jwk),
        private_key_file="key.pem",
    )
    clock = sandbox.env()["SITELINE_SANDBOX_CLOCK"]
    checks = diagnosed(
        *("--store", tmp_path / "plant.siteline"), env={**env, "SITELINE_SANDBOX_CLOCK": clock}
    )
    assert [checks[one]["status"] for one in ("settings", "key", "store")] == ["ok", "warn", "warn"]
    assert "0644" in checks["key"]["seen"]
    assert checks["key"]["do"] == f"chmod 600 {tmp_path / 'key.pem'}"


def test_the_settings_say_which_variable_won_and_what_the_profile_gave(sandbox, key, tmp_path):
    key.save(tmp_path / "key.pem")
    env = profile(
        tmp_path,
        base_url="https://other.example.com",
        subject=sandbox.enroll(key.public_jwk),
        private_key_file="key.pem",
        settle_lag="10m",
    )
    env |= {name: sandbox.env()[name] for name in ("SITELINE_BASE_URL", "SITELINE_SANDBOX_CLOCK")}
    seen = diagnosed(env=env)["settings"]["seen"]
    assert seen.startswith(f"{sandbox.base_url}, subject ")
    assert "; set by SITELINE_BASE_URL; " in seen
    assert seen.endswith(
        f'"default" of {tmp_path / "config.toml"}: subject, private_key_file, settle_lag'
    )


def test_without_settings_each_failure_is_a_check(tmp_path):
    checks = diagnosed(env={"XDG_CONFIG_HOME": str(tmp_path)}, status=2, first="settings")
    assert "base_url, subject and the private key are missing" in checks["settings"]["seen"]
    assert "SITELINE_BASE_URL (not set)" in checks["settings"]["do"]
    others = [
        check for one, check in checks.items() if one not in ("settings", "store", "versions")
    ]
    assert {check["seen"] for check in others} == {"settings failed"}
    assert checks["versions"]["status"] == "ok"
    missing = diagnosed("--profile", "none", status=2, first="settings")
    assert 'No profile "none"' in missing["settings"]["seen"]


def test_an_asyncio_client_is_looked_at_in_the_same_way(sandbox):
    client = sandbox.async_client()
    assert siteline.doctor(client).ok
    assert sent(sandbox) == [1, 1, 1]
    assert asyncio.run(client.discover())
    with pytest.raises(siteline.ConfigError, match="not both"):
        siteline.doctor(client, profile="plant-a")


def test_a_signer_that_only_asyncio_awaits_is_not_called(sandbox, key):
    subject = sandbox.enroll(key.public_jwk)

    async def signer(_data):
        raise AssertionError

    credential = siteline.Credential(subject, signer=signer, public_jwk=key.public_jwk)
    client = siteline.AsyncClient(sandbox.base_url, credential=credential, clock=sandbox.clock)
    diagnosis = siteline.doctor(client)
    assert diagnosis.ok, diagnosis
    assert diagnosis["assertion"].status == diagnosis["service"].status == "skipped"
    assert diagnosis["data"].seen == diagnosis["service"].seen
    assert "AsyncClient" in diagnosis["data"].seen
    assert sent(sandbox) == [0, 0, 0]


@pytest.mark.parametrize("mode", ["data", "token"])
def test_a_client_certificate_takes_the_place_of_key_and_assertion(mode, tmp_path):
    with siteline.Sandbox(now=NOW, mutual_tls=mode) as sandbox:
        plant = siteline.MutualTls(
            sandbox.certificate("plant-7"), client_id="plant-7" if mode == "token" else None
        )
        options = {"credential": plant, "ca_bundle": sandbox.ca, "clock": sandbox.clock}
        diagnosis = siteline.doctor(siteline.Client(sandbox.base_url, **options))
        assert diagnosis.ok, diagnosis
        assert diagnosis["key"].title == "client certificate"
        assert "CN=plant-7" in diagnosis["key"].seen
        assert diagnosis["assertion"].status == "skipped"
        assert (diagnosis["token"].status == "ok") == (mode == "token")
        assert diagnosis["clock"].status == "ok"
        assert sent(sandbox) == [mode == "token", 1, 1]
        sandbox.clock.advance("20d")
        assert siteline.doctor(siteline.Client(sandbox.base_url, **options))["key"].status == "warn"
        sandbox.clock.advance("20d")
        late = siteline.doctor(siteline.Client(sandbox.base_url, **options))
        assert late.first_fail.id == "key"
        assert "has expired" in late.first_fail.seen


@pytest.mark.sandbox(extra_members=True, array="items", timestamps="epoch_ms")
def test_the_shape_of_the_page_is_told_as_it_was_seen(sandbox):
    seen = siteline.doctor(sandbox.client())["shape"].seen
    assert "array items" in seen
    assert "timestamps epoch_milliseconds" in seen
    assert "unknown members" in seen


def test_without_the_scope_of_discovery_its_refusal_is_no_fault(sandbox):
    diagnosis = siteline.doctor(sandbox.client(scopes="customer.data.read"))
    assert diagnosis.ok, diagnosis
    assert diagnosis["discovery"].status == "warn"
    assert diagnosis["data"].status == "ok"


def test_a_package_that_is_older_than_siteline_needs_is_warned_of(sandbox, monkeypatch):
    from importlib import metadata

    monkeypatch.setattr(metadata, "version", lambda name: "1.9.12" if name == "polars" else "9999")
    check = siteline.doctor(sandbox.client(), offline=True)["versions"]
    assert check.status == "warn"
    assert re.fullmatch(r"Update to at least polars 1\.[0-9.]+\.", check.do)


def test_it_prints_in_eighty_columns_and_is_drawn_and_pickled(sandbox):
    sandbox.fault(on="discovery", status=503, body='{"error": "<b>down</b>"}')
    diagnosis = siteline.doctor(sandbox.client())
    text = str(diagnosis)
    assert text.startswith("sends at most one token, one discovery and one data request\n")
    assert max(map(len, text.splitlines())) <= 80
    assert text.endswith("the first fail is discovery")
    assert repr(diagnosis).startswith("<Diagnosis 19 checks: ")
    drawn = read_html(diagnosis)
    assert "the first fail is discovery" in drawn.text
    assert all(one in drawn.text for one in IDS)
    assert pickle.loads(pickle.dumps(diagnosis)) == diagnosis
    assert diagnosis.to_dict()["checks"][0]["id"] == "settings"
    with pytest.raises(KeyError):
        diagnosis["none"]


def test_the_command_says_first_what_it_sends(sandbox):
    from kit.command import run_command

    done = run_command("doctor", env=sandbox.env())
    assert done.stderr == "siteline: sends at most one token, one discovery and one data request\n"
    assert done.stdout.startswith("ok       settings   http://127.0.0.1")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert run_command("doctor", "--offline", env=sandbox.env()).stderr.startswith(
        "siteline: sends nothing"
    )


