"""`siteline pull`: the points, the formats, and what is refused before anything is sent."""

import csv
import json
import os
import stat
from types import SimpleNamespace

import pytest
import siteline
from kit import systems
from kit.command import run_command, run_json
from kit.interpreter import run_script
from siteline.cli import parquet
from siteline.cli.exits import Exit, status_of
from siteline.cli.pull_report import read_through
from siteline.cli.writers import COLUMNS

RANGE = {"site": "S1", "line": "L2", "start": "2026-11-01T00:00Z", "end": "2026-11-08T00:00Z"}
QUERY = [part for name, value in RANGE.items() for part in (f"--{name}", value)]
QUERY += ["--interval", "1h", "--page-size", "100"]
PAGES = 11

# The command in a process where some packages are not there. It prints the exit status, the
# packages that were loaded, and by how many MB memory grew.
RUN = """
    import sys
    sys.stderr = sys.stdout
    sys.modules.update(dict.fromkeys({without!r}))
    from siteline.cli import main

    def peak():
        if sys.platform != "linux":
            return 0
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    before = peak()
    print(main({arguments!r}))
    print([name for name in ("pandas", "polars", "pyarrow", "asyncio") if sys.modules.get(name)])
    print(peak() - before)
"""


def run_without(*arguments, env, without=()):
    """The lines that a command prints, and those of `RUN`: status, packages, growth."""
    script = RUN.format(arguments=[*map(str, arguments)], without=[*without])
    return run_script(script, environment=env).splitlines()


def loaded_by(*arguments, env, without=()):
    """The packages that a command has loaded, in a process where those of `without` are not."""
    *_, status, loaded, _growth = run_without(*arguments, env=env, without=without)
    assert status == "0"
    return loaded


def true_rows(sandbox, **options):
    """The points of the range as a list of dicts, by series, then time; times as text."""
    rows = list(sandbox.truth(**{**RANGE, "interval": "1h", **options}).records())
    return [{**row, "timestamp": iso(row["timestamp"])} for row in rows]


def iso(at):
    """A time as the files have it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def csv_rows(path):
    """The rows of a CSV file, with numbers as numbers and an empty field as None."""
    with open(path, encoding="utf-8", newline="") as file:
        return [
            {name: number(name, text) if text else None for name, text in row.items()}
            for row in csv.DictReader(file)
        ]


def number(name, text):
    """The field as the number that it is, if it is one."""
    kinds = {"value": float, "minimum": float, "maximum": float, "sample_count": int}
    return kinds.get(name, str)(text)


def json_rows(path):
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def parquet_rows(path):
    """The rows of a Parquet file."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    assert str(table.schema.field("site_id").type) in ("string", "large_string")
    return [{**row, "timestamp": iso(row["timestamp"])} for row in table.to_pylist()]


def test_csv_has_the_points_of_the_service_by_series_then_time(sandbox, tmp_path):
    path = tmp_path / "out.csv"
    document = run_json("pull", "-o", path, *QUERY, env=sandbox.env())
    assert csv_rows(path) == true_rows(sandbox)
    assert path.read_bytes().startswith(b"site_id,line_id,")
    assert b"\r" not in path.read_bytes()
    assert os.listdir(tmp_path) == ["out.csv"]
    assert sandbox.stats["data_requests"] == PAGES == document["pages"] == document["requests"]
    assert document["query"]["filters"] == {}
    assert (document["start"], document["end"]) == ("2026-11-01T00:00:00Z", "2026-11-08T00:00:00Z")
    assert (document["points"], document["bytes"]) == (1002, path.stat().st_size)
    assert (document["format"], document["output"]) == ("csv", str(path))
    assert (document["revised"], document["spool"], document["not_listed"]) == (0, None, None)
    assert document["allowance"]["used"] == PAGES


@pytest.mark.parametrize("without", [[], ["pyarrow"]])
def test_parquet_has_the_same_points_by_pyarrow_and_by_polars(sandbox, tmp_path, without):
    path = tmp_path / "out.parquet"
    loaded = loaded_by("pull", "-o", path, *QUERY, env=sandbox.env(), without=without)
    assert ("polars" in loaded) == bool(without)
    assert parquet_rows(path) == true_rows(sandbox)


def test_parquet_without_a_package_is_refused_before_anything_is_sent(sandbox, tmp_path):
    path = tmp_path / "out.parquet"
    document, _, hint, status, *_ = run_without(
        "pull", "-o", path, "--json", *QUERY, env=sandbox.env(), without=["pyarrow", "polars"]
    )
    assert status == "2"
    assert json.loads(document)["error"]["type"] == "ConfigError"
    assert "pip install 'siteline[pyarrow]'" in hint
    assert sandbox.stats["requests"]["token"] == {}


def load_odd_points(sandbox):
    """Points without numbers, and of ids that need quoting."""
    import pyarrow as pa

    at = [siteline.Clock("2026-11-01T00:00Z").now(), siteline.Clock("2026-11-01T01:00Z").now()]
    columns = {"timestamp": at, "value": [0.1, None], "minimum": [1e-7, None]}
    ids = {"site": 'a,"b"', "line": "Straße\n1", "machine": None, "device": "None"}
    sandbox.load(pa.table({**columns, "maximum": [1e22, None]}), bucket="1h", **ids)
    return ["--site", 'a,"b"', "--start", "2026-11-01", "--end", "2026-11-02", "--interval", "1h"]


def test_a_missing_number_is_empty_in_csv_and_null_in_json_and_ids_are_quoted(sandbox, tmp_path):
    query = load_odd_points(sandbox)
    truth = true_rows(sandbox, site='a,"b"', line=None, end="2026-11-02T00:00Z")
    assert truth[1]["value"] is None
    for name, rows in (("out.csv", csv_rows), ("out.jsonl", json_rows)):
        run_command("pull", "-o", tmp_path / name, *query, env=sandbox.env())
        assert rows(tmp_path / name) == truth
    # The shortest text that is read back as the same number.
    assert ",0.1,1e-07,1e+22," in (tmp_path / "out.csv").read_text(encoding="utf-8")


@pytest.mark.sandbox(now="2030-01-20T00:00:00Z")
def test_a_range_over_the_edge_of_a_window_is_one_chain(sandbox, tmp_path):
    query = [*QUERY]
    query[query.index("--start") + 1] = "2029-12-10"
    query[query.index("--end") + 1] = "2029-12-24"  # windows of ten years meet on 17 December 2029
    document = run_json("pull", "-o", tmp_path / "out.csv", *query, env=sandbox.env())
    scan = sandbox.client().data(
        site="S1",
        line="L2",
        start="2029-12-10",
        end="2029-12-24",
        interval="1h",
        page_size=100,
    )
    assert document["pages"] == scan.collect().report["pages"]
    queries = {entry["query"].split("&cursor")[0] for entry in sandbox.stats["log"]}
    assert len(queries - {""}) == 1


def test_stdout_has_the_rows_alone_and_the_summary_goes_to_a_terminal(sandbox):
    done = run_command("pull", "-o", "-", *QUERY, env=sandbox.env())
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1003
    done = run_command("pull", "-o", "-", "--format", "jsonl", *QUERY, env=sandbox.env())
    assert [json.loads(line) for line in done.stdout.splitlines()] == true_rows(sandbox)


@pytest.mark.sandbox(order="time")
def test_as_read_writes_rows_as_the_pages_bring_them(sandbox, tmp_path):
    path = tmp_path / "out.csv"
    document = run_json("pull", "--as-read", "-o", path, *QUERY, env=sandbox.env())
    rows = csv_rows(path)
    truth = true_rows(sandbox)
    pages = sandbox.client().data(**RANGE, interval="1h", page_size=100).pages()
    read = [record for page in pages for record in page.records()]
    assert rows == [{**row, "timestamp": iso(row["timestamp"])} for row in read]
    assert rows != truth
    assert document["points"] == len(rows) == len(truth)
    assert document["pages"] == PAGES
    assert document["requests"] == PAGES
    assert os.listdir(tmp_path) == ["out.csv"]


def test_no_points_are_told_apart_from_no_authorisation(sandbox, tmp_path):
    path = tmp_path / "out.csv"
    early = ["--start", "2026-11-01T00:00Z", "--end", "2026-11-01T01:00Z", "--interval", "1h"]
    empty = run_json(
        "pull", "-o", path, "--site", "S1", "--filter", "machineId=none", *early, env=sandbox.env()
    )
    assert (empty["points"], empty["not_listed"]) == (0, ['machine "none"'])
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1
    unknown = run_json("pull", "-o", path, "--site", "S9", *early, env=sandbox.env())
    assert unknown["not_listed"] == ['site "S9"']
    sandbox.fault(on="discovery", status=403, error="insufficient_scope")
    refused = run_json("pull", "-o", path, "--site", "S9", *early, env=sandbox.env())
    assert (refused["points"], refused["not_listed"]) == (0, None)


def test_a_refused_request_is_told_once(sandbox, tmp_path):
    done = run_command(
        "pull",
        "-o",
        tmp_path / "out.csv",
        *QUERY,
        "--filter",
        "colour=red",
        env=sandbox.env(),
        status=3,
    )
    message, kept = done.stderr.splitlines()
    assert message.endswith('unknown parameter "colour"')
    assert kept == "  No page was read, and nothing is kept."


def test_an_end_ahead_of_now_is_read_up_to_now_with_a_warning(sandbox, tmp_path):
    arguments = ["--site", "S1", "--interval", "1h", "--start", "2026-11-19"]
    path = tmp_path / "out.csv"
    done = run_command("pull", "-o", path, *arguments, "--end", "2026-12-01", env=sandbox.env())
    assert done.stderr.startswith("siteline: warning: --end 2026-12-01T00:00:00Z lies ahead of now")
    assert done.stderr.count("\n") == 1
    assert csv_rows(path)[-1]["timestamp"] == "2026-11-19T23:00:00Z"
    document = run_json("pull", "-o", path, *arguments, env=sandbox.env())
    assert document["end"] == "2026-11-19T23:00:00Z"  # five minutes behind, in whole buckets


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
        (["-o", "out.parquet", "--as-read", *QUERY], "not parquet"),
        (["-o", "out.csv", "--as-read", "--resume", *QUERY], "has no spool"),
        (["-o", "-", "--resume", *QUERY], "--spool FILE"),
        (["-o", "out.csv", "--skip-code", "256", *QUERY], "from 0 to 255"),
        (["-o", "out.csv", "--filter", "machineId", *QUERY], "is not NAME=VALUE"),
        (["-o", "out.csv", "--site", "S1", "--start", "2026-11-21"], "the range is empty"),
    ],
)
def test_a_wrong_command_line_is_refused_before_anything_is_sent(
    shared_sandbox, tmp_path, arguments, said
):
    done = run_command("pull", *arguments, env=shared_sandbox.env(), folder=tmp_path, status=2)
    assert said in done.stderr
    assert shared_sandbox.stats["requests"]["token"] == {}
    assert os.listdir(tmp_path) == []


@systems.MODES
def test_a_device_is_never_replaced(sandbox):
    done = run_command("pull", "-o", "/dev/null", "--format", "csv", *QUERY, status=2)
    assert "not a regular file" in done.stderr
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@systems.MODES
def test_the_file_that_is_replaced_keeps_its_mode_and_the_link_to_it(sandbox, tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "out.csv"
    real.write_text("old", encoding="utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    run_command("pull", "-o", link, *QUERY, env=sandbox.env())
    assert link.is_symlink()
    assert len(csv_rows(real)) == 1002
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@systems.ROOT
def test_root_leaves_the_file_that_it_replaces_to_its_owner(sandbox, tmp_path):
    path = tmp_path / "out.csv"
    path.touch()
    os.chown(path, 65534, 65534)
    run_command("pull", "-o", path, *QUERY, env=sandbox.env())
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


@pytest.mark.once
@systems.PROC
def test_memory_does_not_grow_with_the_range(sandbox, tmp_path):
    def growth(end):
        arguments = ["--site", "S1", "--interval", "10s", "--page-size", "10000"]
        arguments += ["--start", "2026-11-01", "--end", end]
        arguments += ["-o", tmp_path / "out.csv"]
        return int(run_without("pull", *arguments, env=sandbox.env())[-1])

    short, long = growth("2026-11-01T12:00Z"), growth("2026-11-03")  # 50,000 and 200,000 points
    assert short < 60
    assert long < short + 25  # a list of the records more would take over 60 MB


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_disk_that_polars_finds_full_is_no_fault_of_siteline(sandbox, tmp_path):
    pytest.importorskip("polars.io.plugins")
    feed = siteline.Feed("line-2", site="S1", line="L2", interval="5m", since="2026-11-18T00:00Z")
    with sandbox.client() as client, siteline.Store(tmp_path / "plant") as store:
        client.sync(feed, store)
        with pytest.raises(OSError, match="/dev/full") as raised:
            parquet._by_polars(store.points("line-2", unread="keep"), COLUMNS, "/dev/full")
    assert status_of(raised.value) is Exit.TEMPORARY
