"""`siteline changes`: what has changed in a store, and where the next changes begin."""

import csv
import io
import json
import os

import pytest
import siteline
from kit.command import run_command, run_json
from kit.feeds import make_feed


@pytest.fixture
def path(sandbox, tmp_path):
    """A store with one feed, which was synced twice, an hour apart."""
    path = tmp_path / "plant.siteline"
    with siteline.Store(path) as store:
        sandbox.client().sync(make_feed(), store)
        sandbox.clock.advance("1h")
        sandbox.client().sync(make_feed(), store)
    return path


def known(path, since, *range_):
    """What the store itself says has changed, with times as text."""
    with siteline.Store(path, read_only=True) as store:
        rows = list(store.changes("line-2", since, *range_).records())
    return [{**row, "timestamp": row["timestamp"].strftime("%Y-%m-%dT%H:%M:%SZ")} for row in rows]


def test_changes_go_to_stdout_as_csv(path):
    done = run_command("changes", path, "line-2", "--since", "0")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert done.stderr == ""
    assert [row["change"] for row in rows] == [row["change"] for row in known(path, 0)]
    assert [float(row["value"]) for row in rows] == [row["value"] for row in known(path, 0)]


def test_the_next_changes_begin_where_these_ended(sandbox, path, tmp_path):
    out = tmp_path / "out.jsonl"
    first = run_json("changes", path, "line-2", "--since", "0", "-o", out)
    assert (first["since"], first["points"]) == (0, len(known(path, 0)))
    assert (first["format"], first["bytes"]) == ("jsonl", out.stat().st_size)
    nothing = run_json("changes", path, "line-2", "--since", first["next_since"], "-o", out)
    assert (nothing["points"], nothing["next_since"]) == (0, first["next_since"])
    assert out.read_bytes() == b""
    sandbox.clock.advance("1h")
    with siteline.Store(path) as store:
        report = sandbox.client().sync(make_feed(), store)["line-2"]
    later = run_json("changes", path, "line-2", "--since", first["next_since"], "-o", out)
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert rows == known(path, first["next_since"])
    assert {row["change"] for row in rows} <= {"new", "revised"}
    assert later["points"] == report.inserted + report.revised > 0
    assert later["next_since"] == report.sequence


def test_the_range_can_be_narrowed(path):
    range_ = ("2026-11-16T00:00:00Z", "2026-11-16T06:00:00Z")
    arguments = ["--start", range_[0], "--end", range_[1], "--format", "jsonl"]
    done = run_command("changes", path, "line-2", "--since", "0", *arguments)
    assert [json.loads(line) for line in done.stdout.splitlines()] == known(path, 0, *range_)


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow"])
def test_parquet_and_arrow_have_the_column_too(path, tmp_path, name):
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = tmp_path / name
    run_command("changes", path, "line-2", "--since", "0", "-o", out)
    table = pq.read_table(out) if name == "out.parquet" else pa.ipc.open_stream(out).read_all()
    assert table["change"].to_pylist() == [row["change"] for row in known(path, 0)]
    assert table["value"].to_pylist() == [row["value"] for row in known(path, 0)]


def test_a_part_that_was_never_read_is_an_error_and_nothing_on_stdout(path):
    arguments = ["changes", path, "line-2", "--since", "0", "--start", "2026-11-01"]
    done = run_command(*arguments, status=6)
    assert done.stdout == ""
    assert "unread: 2026-11-01T00:00:00Z to 2026-11-15T00:00:00Z" in done.stderr
    assert "client.sync" not in done.stderr
    warned = run_command(*arguments, "--unread", "warn")
    assert len(warned.stdout.splitlines()) == 1 + len(known(path, 0))
    assert "warning" in warned.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.siteline", "line-2", "--since", "0"], "there is no store"),
        (["plant.siteline", "line-3", "--since", "0"], "no feed"),
        (["plant.siteline", "line-2", "--since", "999"], "lies ahead"),
        (["plant.siteline", "line-2", "--since", "2026-11-16"], "by the sequence of pages"),
        (["plant.siteline", "line-2"], "--since"),
        (["plant.siteline", "line-2", "--since", "0", "--json"], "stdout has the data"),
        (
            ["plant.siteline", "line-2", "--since", "0", "-o", "plant.siteline", "--format", "csv"],
            "is a store, which -o does not replace",
        ),
    ],
)
def test_what_is_wrong_is_refused_and_changes_no_file(path, tmp_path, arguments, said):
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    done = run_command("changes", *arguments, folder=tmp_path, status=2)
    assert said in done.stderr
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before
