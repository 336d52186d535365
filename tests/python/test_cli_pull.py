"""`siteline pull`: the points, the formats, and errors before the first request."""

import csv
import json
import os
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest
import siteline
from kit import systems
from kit.command import environment, run_command, run_json, run_process
from siteline.cli import parquet
from siteline.cli.exits import Exit, status_of
from siteline.cli.pull_report import read_through

RANGE = {"site": "S1", "line": "L2", "start": "2026-11-01T00:00Z", "end": "2026-11-08T00:00Z"}
QUERY = [part for name, value in RANGE.items() for part in (f"--{name}", value)]
QUERY += ["--interval", "1h", "--page-size", "100"]
PAGES = 11

# Runs the command without some packages, and prints by how many MB memory grew.
RUN = """
import json, resource, sys
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))
from siteline.cli import main
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
status = main(sys.argv[2:])
print("\\n", peak() - before)
sys.exit(status)
"""


def run_without(packages, *arguments, env, status=0):
    """Run the command in a process in which these packages are missing; returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(packages), *map(str, arguments)],
        env=environment(env),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done
    return done


def iso(at):
    """A time as the files have it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def with_texts(rows):
    return [{**row, "timestamp": iso(row["timestamp"])} for row in rows]


def true_rows(sandbox, **options):
    """The points of the range as a list of dicts, by series, then time; times as text."""
    return with_texts(sandbox.expected(**{**RANGE, "interval": "1h", **options}).records())


NUMBERS = {"value": float, "minimum": float, "maximum": float, "sample_count": int}


def rows_of(path):
    """The rows of a file, with numbers as numbers and times as text."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.suffix == ".csv":
        with open(path, encoding="utf-8", newline="") as file:
            return [
                {name: NUMBERS.get(name, str)(text) if text else None for name, text in row.items()}
                for row in csv.DictReader(file)
            ]
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix == ".arrow":
        table = pa.ipc.open_stream(path.read_bytes()).read_all()
    else:
        table = pq.read_table(path)
        assert str(table.schema.field("site_id").type) in ("string", "large_string")
    return with_texts(table.to_pylist())


@pytest.mark.parametrize("format", ["csv", "jsonl", "arrow", "parquet"])
def test_each_format_has_the_points(shared_sandbox, tmp_path, format):
    before, path = shared_sandbox.stats.data_requests, tmp_path / f"out.{format}"
    document = run_json("pull", "-o", path, *QUERY, env=shared_sandbox.env())
    assert rows_of(path) == true_rows(shared_sandbox)
    assert os.listdir(tmp_path) == [path.name]
    assert shared_sandbox.stats.data_requests - before == PAGES
    expected = {
        **{"pages": PAGES, "requests": PAGES, "points": 1002, "bytes": path.stat().st_size},
        **{"start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00Z", "format": format},
        **{"output": str(path), "revised": 0, "spool": None, "not_listed": None},
    }
    assert document | expected == document
    assert document["query"]["filters"] == {}
    assert document["allowance"]["used"] == PAGES
    if format == "csv":
        assert path.read_bytes().startswith(b"site_id,line_id,")
        assert b"\r" not in path.read_bytes()


def test_parquet_needs_one_of_two_packages(sandbox, tmp_path):
    path = tmp_path / "out.parquet"
    words = ("pull", "-o", path, *QUERY)
    done = run_without(["pyarrow", "polars"], *words, "--json", env=sandbox.env(), status=2)
    assert json.loads(done.stdout.splitlines()[0])["error"]["type"] == "ConfigError"
    assert "pip install 'siteline[pyarrow]'" in done.stderr
    assert sandbox.stats.requests["token"] == {}
    run_without(["pyarrow"], *words, env=sandbox.env())
    assert rows_of(path) == true_rows(sandbox)


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl"])
def test_missing_numbers_and_odd_ids(sandbox, tmp_path, name):
    import pyarrow as pa

    at = [
        siteline.testing.Clock("2026-11-01T00:00Z").now(),
        siteline.testing.Clock("2026-11-01T01:00Z").now(),
    ]
    columns = {"timestamp": at, "value": [0.1, None], "minimum": [1e-7, None]}
    ids = {"site": 'a,"b"', "line": "Straße\n1", "machine": None, "device": "None"}
    sandbox.load(pa.table({**columns, "maximum": [1e22, None]}), bucket="1h", **ids)
    query = ["--site", 'a,"b"', "--start", "2026-11-01", "--end", "2026-11-02", "--interval", "1h"]
    truth = true_rows(sandbox, site='a,"b"', line=None, end="2026-11-02T00:00Z")
    assert truth[1]["value"] is None
    path = tmp_path / name
    run_command("pull", "-o", path, *query, env=sandbox.env())
    assert rows_of(path) == truth
    # The shortest text that is read back as the same number.
    assert "0.1,1e-07,1e+22," in path.read_text(encoding="utf-8") or name == "out.jsonl"


@pytest.mark.sandbox(now="2030-01-20T00:00:00Z")
def test_a_range_over_two_windows_is_one_chain(sandbox, tmp_path):
    # Windows of ten years meet on 17 December 2029.
    days = {"start": "2029-12-10", "end": "2029-12-24"}
    query = [*QUERY, *(part for name, day in days.items() for part in (f"--{name}", day))]
    document = run_json("pull", "-o", tmp_path / "out.csv", *query, env=sandbox.env())
    scan = sandbox.client().scan(**{**RANGE, **days}, interval="1h", page_size=100)
    assert document["pages"] == scan.collect().report.pages
    queries = {entry.query.split("&cursor")[0] for entry in sandbox.stats.log}
    assert len(queries - {""}) == 1


def test_stdout_has_only_the_rows(shared_sandbox):
    words = ("pull", "-o", "-", "--format", "jsonl", *QUERY)
    done = run_process(*words, env=shared_sandbox.env())
    assert [json.loads(line) for line in done.stdout.splitlines()] == true_rows(shared_sandbox)
    assert done.stderr == ""


@pytest.mark.sandbox(variant=siteline.testing.Variant(order="time"))
def test_as_read_keeps_the_order_of_pages(sandbox, tmp_path):
    path, truth = tmp_path / "out.csv", true_rows(sandbox)
    document = run_json("pull", "--as-read", "-o", path, *QUERY, env=sandbox.env())
    pages = sandbox.client().scan(**RANGE, interval="1h", page_size=100).pages()
    assert rows_of(path) == with_texts(record for page in pages for record in page.records())
    assert rows_of(path) != truth
    assert document["points"] == len(rows_of(path)) == len(truth)
    assert document["pages"] == document["requests"] == PAGES
    assert os.listdir(tmp_path) == ["out.csv"]


def test_unlisted_ids_are_named(sandbox, tmp_path):
    words = ["pull", "-o", tmp_path / "out.csv", "--start", "2026-11-01T00:00Z"]
    words += ["--end", "2026-11-01T01:00Z", "--interval", "1h", "--site"]
    empty = run_json(*words, "S1", "--filter", "machineId=none", env=sandbox.env())
    assert (empty["points"], empty["not_listed"]) == (0, ['machine "none"'])
    assert len((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()) == 1
    assert run_json(*words, "S9", env=sandbox.env())["not_listed"] == ['site "S9"']
    sandbox.fault(on="discovery", status=403, error="insufficient_scope")
    refused = run_json(*words, "S9", env=sandbox.env())
    assert (refused["points"], refused["not_listed"]) == (0, None)


def test_a_refused_request_is_reported_once(shared_sandbox, tmp_path):
    words = ("pull", "-o", tmp_path / "out.csv", *QUERY, "--filter", "colour=red")
    message, kept = run_command(*words, env=shared_sandbox.env(), status=3).stderr.splitlines()
    assert message.endswith('unknown parameter "colour"')
    assert kept == "  No page was read, and nothing is kept."


def test_this_clock_may_be_ahead():
    # The command cannot be given a wrong clock.
    now, end = (
        siteline.testing.Clock("2026-11-20T00:00Z").now(),
        siteline.testing.Clock("2026-11-20T01:00Z").now(),
    )
    wanted = SimpleNamespace(query=SimpleNamespace(end=end))
    assert read_through(SimpleNamespace(read_through=end), wanted) == end
    with pytest.warns(siteline.SitelineWarning, match="read up to 2026-11-20T00:00:00Z: 2026-11-2"):
        assert read_through(SimpleNamespace(read_through=now), wanted) == now
    with pytest.raises(siteline.errors.QueryError, match="ahead of the service's time"):
        read_through(SimpleNamespace(read_through=None), wanted)


def test_an_end_in_the_future_is_cut(shared_sandbox, tmp_path):
    path, env = tmp_path / "out.csv", shared_sandbox.env()
    words = ["pull", "-o", path, "--site", "S1", "--interval", "1h", "--start", "2026-11-19"]
    done = run_command(*words, "--end", "2026-12-01", env=env)
    assert done.stderr.startswith("siteline: warning: --end 2026-12-01T00:00:00Z lies ahead of now")
    assert done.stderr.count("\n") == 1
    assert rows_of(path)[-1]["timestamp"] == "2026-11-19T23:00:00Z"
    # Five minutes before now, in whole buckets.
    assert run_json(*words, env=env)["end"] == "2026-11-19T23:00:00Z"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "out.csv"], "--start is required"),
        (["-o", "out.csv", "--resume"], "--start is required"),
        (["-o", "out.csv", "--resume", "--site", "S1"], "--start is required"),
        (["-o", "out.txt", *QUERY], "its ending says no format"),
        (["-o", "-", "--json", *QUERY], "stdout has the data"),
        (["-o", "none/out.csv", *QUERY], "there is no such folder"),
        (["-o", ".", "--format", "csv", *QUERY], "is a folder"),
        (["-o", "/dev/null", "--format", "csv", *QUERY], "not a regular file"),
        (["-o", "out.parquet", "--as-read", *QUERY], "not parquet"),
        (["-o", "out.csv", "--as-read", "--resume", *QUERY], "has no spool"),
        (["-o", "-", "--resume", *QUERY], "--spool FILE"),
        (["-o", "out.csv", "--skip-code", "256", *QUERY], "from 0 to 255"),
        (["-o", "out.csv", "--filter", "machineId", *QUERY], "is not NAME=VALUE"),
        (["-o", "out.csv", "--site", "S1", "--start", "2026-11-21"], "the range is empty"),
    ],
)
def test_a_wrong_line_sends_nothing(shared_sandbox, tmp_path, arguments, said):
    before, env = shared_sandbox.stats.log, shared_sandbox.env()
    done = run_command("pull", *arguments, env=env, folder=tmp_path, status=2)
    assert said in done.stderr
    assert shared_sandbox.stats.log == before
    assert os.listdir(tmp_path) == []


@systems.MODES
def test_a_replaced_file_keeps_its_properties(shared_sandbox, tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "out.csv"
    real.write_text("old", encoding="utf-8")
    real.chmod(0o640)
    owner = 65534 if os.geteuid() == 0 else os.geteuid()
    os.chown(real, owner, -1)
    link.symlink_to(real)
    run_command("pull", "-o", link, *QUERY, env=shared_sandbox.env())
    assert link.is_symlink()
    assert len(rows_of(real)) == 1002
    assert (stat.S_IMODE(real.stat().st_mode), real.stat().st_uid) == (0o640, owner)


@pytest.mark.campaign
@systems.PROC
def test_memory_does_not_grow_with_the_range(sandbox, tmp_path):
    def growth(end):
        words = ["--site", "S1", "--interval", "10s", "--page-size", "10000", "-o"]
        words += [tmp_path / "out.csv", "--start", "2026-11-01", "--end", end]
        return int(run_without([], "pull", *words, env=sandbox.env()).stdout.split()[-1])

    short, long = growth("2026-11-01T12:00Z"), growth("2026-11-03")  # 50,000 and 200,000 points
    assert short < 60
    assert long < short + 25  # a list of the records more would take over 60 MB


@pytest.mark.parametrize(("free", "status"), [(1_000, Exit.TEMPORARY), (1_000_000, Exit.FAULT)])
def test_polars_on_a_full_disk(monkeypatch, free, status):
    # polars raises an error without a number.
    error = RuntimeError("File out of specification: Invalid thrift: transport error")
    usage = SimpleNamespace(free=free)
    monkeypatch.setattr(parquet.shutil, "disk_usage", lambda _: usage)
    assert status_of(parquet._of_system(error, "week.parquet")) is status
