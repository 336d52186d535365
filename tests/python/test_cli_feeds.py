"""The file of feeds of `siteline sync`: its format and its errors."""

from datetime import UTC, datetime, timedelta

import pytest
import siteline
from kit.command import run_command, run_json
from kit.feeds_file import FEEDS, write_feeds
from siteline.cli.feeds import read_feeds


def read(folder, text):
    return read_feeds(str(write_feeds(folder, text)))


def test_each_table_is_a_feed_with_the_defaults_that_it_does_not_replace(tmp_path):
    file = read(
        tmp_path,
        """
        profile = "plant-a"
        [defaults]
        site = "S1"
        interval = "1m"
        start = 2026-01-01T02:00:00+02:00
        filters = { machineId = "M1" }
        [feeds.line-2]
        line = "L2"
        interval = 300
        filters = { machineId = ["M7", "M8"], tag = 7 }
        page_size = 500
        settle_lag = "10m"
        overlap = "2h"
        lateness = "2d"
        window = "6h"
        audit_pages = 4
        [feeds."Line 1"]
        start = 2026-02-01
        """,
    )
    assert file.profile == "plant-a"
    first, second = file.feeds
    expected = {"site": "S1", "line": "L2", "interval": "5m", "start": "2026-01-01"}
    expected |= {"filters": {"machineId": ["M7", "M8"], "tag": 7}, "page_size": 500}
    expected |= {"settle_lag": "10m", "overlap": "2h", "lateness": "2d", "window": "6h"}
    assert first == siteline.Feed("line-2", **expected, audit_pages=4)
    assert (second.name, second.start) == ("Line 1", datetime(2026, 2, 1, tzinfo=UTC))
    assert second.filters == {"machineId": ("M1",)}
    assert second.interval == timedelta(minutes=1)


def test_a_file_of_an_editor_of_windows_is_read(tmp_path):
    path = tmp_path / "feeds.toml"
    path.write_bytes(b"\xef\xbb\xbf" + FEEDS.replace("\n", "\r\n").encode())
    assert [feed.name for feed in read_feeds(str(path)).feeds] == ["line-1", "line-2"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "it has no feeds", "[feeds.NAME]"),
        ("[feeds]", "it has no feeds", "[feeds.NAME]"),
        ("feeds = 3", "feeds is not a table", "[feeds.NAME]"),
        ("[[feeds]]\nsite = 'S1'", "feeds is not a table", "[feeds.NAME]"),
        ("defaults = 3", "defaults is not a table", "[defaults]"),
        ("[feed.a]\nstart = 2026-01-01", "unknown member 'feed'", "Is 'feeds' meant?"),
        ("stores = 'x'", "unknown member 'stores'", "There are 'profile', 'defaults', 'feeds'."),
        ("profile = 3", "profile is not a text", ""),
        ("profile = ''", "profile is not a text", ""),
        ("[defaults]\nintervall = '1m'", "[defaults]: unknown member 'intervall'", "'interval'"),
        ("[feeds.a]\nlines = 'L1'", "feed 'a': unknown member 'lines'", "Is 'line' meant?"),
        ("[feeds.a]\nname = 'b'", "feed 'a': unknown member 'name'", "There are 'start', 'site',"),
        ("[feeds]\na = 3", "feed 'a': it is not a table", "[feeds.NAME]"),
        ("[feeds.a]\nsite = 'S1'", "feed 'a': start is missing", "start = 2026-01-01"),
        ("[feeds.a]\nsince = 2026-01-01", "feed 'a': unknown member 'since'", "Write start."),
        ("[feeds.a]\nstart = 'soon'", "feed 'a': start=", ""),
        ("[feeds.a]\nstart = 10:00:00", "feed 'a': start= is an object of type time", ""),
        ("[feeds.a]\nstart = 2026-01-01\ninterval = 'x'", "feed 'a': interval=", '"15m"'),
        ("[feeds.a]\nstart = 2026-01-01\nsite = [1]", "feed 'a': site= is an object of", ""),
        ("[feeds.'']\nstart = 2026-01-01", "feed '': the feed's name is empty", ""),
        ("[feeds.a]\nstart =\n", "it is not TOML: Invalid value (at line 2", ""),
        ("[feeds.a]\n[feeds.a]\n", "it is not TOML: Cannot declare", ""),
        ("a = " + "9" * 5_000, "a number has too many digits", ""),
        ("a = " + "[" * 100_000, "nested too deep", ""),
    ],
)
def test_what_is_wrong_is_a_config_error_with_its_place(tmp_path, text, message, hint):
    with pytest.raises(siteline.errors.ConfigError) as caught:
        read(tmp_path, text)
    assert caught.value.message.startswith(f"{tmp_path / 'feeds.toml'}: ")
    assert message in caught.value.message
    assert hint in str(caught.value)


def test_unreadable_bytes_are_refused(tmp_path):
    path = tmp_path / "feeds.toml"
    path.write_bytes(b"[feeds.a]\nsite = '\xff'\n")
    with pytest.raises(siteline.errors.ConfigError, match="line 2 is not UTF-8"):
        read_feeds(str(path))
    path.write_bytes(b"SQLite format 3\0")
    with pytest.raises(siteline.errors.ConfigError, match="a store, not a file of feeds"):
        read_feeds(str(path))
    with pytest.raises(siteline.errors.ConfigError, match="larger than 1 MB"):
        read(tmp_path, "#" * 1_000_001)
    assert read(tmp_path, FEEDS + "#" * (1_000_000 - len(FEEDS))).feeds
    with pytest.raises(siteline.errors.ConfigError, match="larger than 1 MB"):
        read_feeds("/dev/zero")


@pytest.mark.parametrize(
    "text",
    [
        "private_key = 'MIIEvAIBADANBg'",
        "[feeds.a]\nstart = 2026-01-01\npassphrase = 'MIIEvAIBADANBg'",
        "[feeds.a]\nstart = 2026-01-01\nsite = { key = 'MIIEvAIBADANBg' }",
        "x = 'MIIEvAIBADANBg",
    ],
)
def test_a_misplaced_value_is_not_shown(tmp_path, text):
    with pytest.raises(siteline.errors.ConfigError) as caught:
        read(tmp_path, text)
    assert "MIIE" not in str(caught.value)


def test_feeds_are_chosen_by_name_in_the_order_of_the_file(tmp_path):
    file = read(tmp_path, FEEDS)
    assert file.chosen(None) == file.chosen(["line-2", "line-1"]) == file.feeds
    assert file.chosen(["line-2", "line-2"]) == file.feeds[1:]
    with pytest.raises(siteline.errors.ConfigError, match="no feed 'line2'") as caught:
        file.chosen(["line-1", "line2"])
    assert caught.value.hint == "Is 'line-2' meant?"


def test_the_command_names_the_file_and_asks_nothing(shared_sandbox, tmp_path):
    env, store = shared_sandbox.env(), tmp_path / "plant.siteline"
    path = write_feeds(tmp_path, "[feeds.line-1]\nstart = 2026-11-17\nlines = 'L1'\n")
    for more in ((), ("--dry-run",)):
        done = run_command("sync", path, store, *more, env=env, status=2)
        assert done.stderr == (
            f"siteline: {path}: feed 'line-1': unknown member 'lines'\n  Is 'line' meant?\n"
        )
        assert done.stdout == ""
        missing = run_json("sync", tmp_path / "other.toml", store, *more, env=env, status=2)
        assert missing["error"]["type"] == "FileNotFoundError"
        assert "other.toml" in missing["error"]["message"]
        run_command("sync", tmp_path, store, *more, env=env, status=2)
    assert shared_sandbox.stats.data_requests == 0
    assert not store.exists()


def test_the_profile_of_the_file_is_used(shared_sandbox, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[other]\nbase_url = "http://127.0.0.1:1"\n', encoding="utf-8")
    env = {**shared_sandbox.env(), "SITELINE_CONFIG": str(config)}
    path = write_feeds(tmp_path, f'profile = "plant-a"\n{FEEDS}')
    for arguments, name in (((), "plant-a"), (("--profile", "plant-b"), "plant-b")):
        document = run_json(
            "sync", path, tmp_path / "plant", "--dry-run", *arguments, env=env, status=2
        )
        assert document["error"]["type"] == "ConfigError"
        assert name in document["error"]["message"]
