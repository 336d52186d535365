"""`siteline read` and `siteline store export`: the points, formats, shapes, and early errors."""

import csv
import json
import os
import stat

import pytest
import siteline
from kit import systems
from kit.command import run_command, run_json, run_process
from kit.doctor import sandbox_profile
from siteline.cli import read as cli_read
from siteline.types import Record

RANGE = {"site": "S1", "line": "L2", "start": "2026-11-01T00:00Z", "end": "2026-11-08T00:00Z"}
QUERY = [part for name, value in RANGE.items() for part in (f"--{name}", value)]
QUERY += ["--interval", "1h", "--page-size", "100"]
PAGES = 11


def with_texts(rows):
    """The rows with times as the files have them."""
    return [{**row, "timestamp": f"{row['timestamp']:%Y-%m-%dT%H:%M:%SZ}"} for row in rows]


def true_rows(sandbox, **options):
    """The points of the range as a list of dicts, by series, then time; times as text."""
    return with_texts(sandbox.expected(**{**RANGE, "interval": "1h", **options}).records())


NUMBERS = {"value": float, "minimum": float, "maximum": float, "sample_count": int}


def parsed(lines):
    """The rows of CSV, with numbers as numbers."""
    return [
        {name: NUMBERS.get(name, str)(text) if text else None for name, text in row.items()}
        for row in csv.DictReader(lines)
    ]


def rows_of(path):
    """The rows of a file without labels, with numbers as numbers and times as text."""
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    elif path.suffix == ".csv":
        with open(path, encoding="utf-8", newline="") as file:
            rows = parsed(file)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        is_arrow = path.suffix == ".arrow"
        table = (
            pa.ipc.open_stream(path.read_bytes()).read_all() if is_arrow else pq.read_table(path)
        )
        rows = with_texts(table.to_pylist())
    return [{name: row[name] for name in Record._fields} for row in rows]


@pytest.mark.parametrize("format", ["csv", "jsonl", "arrow", "parquet"])
def test_each_format_has_the_points(shared_sandbox, tmp_path, format):
    before, path = shared_sandbox.stats.data_requests, tmp_path / f"out.{format}"
    document = run_json("read", "-o", path, *QUERY, env=shared_sandbox.env())
    assert rows_of(path) == true_rows(shared_sandbox)
    assert os.listdir(tmp_path) == [path.name]
    assert shared_sandbox.stats.data_requests - before == PAGES
    expected = {
        **{"pages": PAGES, "requests": PAGES, "points": 1002, "rows": 1002, "format": format},
        **{"start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00Z"},
        **{"output": str(path), "bytes": path.stat().st_size, "resumed_after_pages": 0},
    }
    assert document | expected == document
    assert document["report"]["not_listed"] == []
    assert document["allowance"]["used"] == PAGES
    if format == "csv":
        assert path.read_bytes().startswith(b"site_id,line_id,")
        assert b"\r" not in path.read_bytes()


def test_a_missing_package_costs_nothing(sandbox, tmp_path, monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    missing = {"pyarrow", "openpyxl"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else real(name)
    )
    for name, extra in (("out.parquet", "pyarrow"), ("out.xlsx", "excel")):
        done = run_command("read", "-o", tmp_path / name, *QUERY, env=sandbox.env(), status=2)
        assert f"pip install 'siteline[{extra}]'" in done.stderr
    assert sandbox.stats.requests["token"] == {}


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl"])
def test_missing_numbers_and_odd_ids(sandbox, tmp_path, name):
    import pyarrow as pa

    at = [siteline.testing.Clock(f"2026-11-01T0{hour}:00Z").now() for hour in (0, 1)]
    columns = {"timestamp": at, "value": [0.1, None], "minimum": [1e-7, None]}
    ids = {"site": 'a,"b"', "line": "Straße\n1", "machine": None, "device": "None"}
    sandbox.load(pa.table({**columns, "maximum": [1e22, None]}), bucket="1h", **ids)
    query = ["--site", 'a,"b"', "--start", "2026-11-01", "--end", "2026-11-02", "--interval", "1h"]
    truth = true_rows(sandbox, site='a,"b"', line=None, end="2026-11-02T00:00Z")
    assert truth[1]["value"] is None
    path = tmp_path / name
    run_command("read", "-o", path, *query, env=sandbox.env())
    assert rows_of(path) == truth


@pytest.mark.parametrize("more", [[], ["-o", "-"]])
def test_stdout_has_only_the_rows(shared_sandbox, more):
    words = ("read", "--format", "jsonl", "--labels", "none", *QUERY, *more)
    done = run_process(*words, env=shared_sandbox.env())
    assert [json.loads(line) for line in done.stdout.splitlines()] == true_rows(shared_sandbox)
    assert done.stderr == ""


@pytest.mark.sandbox(variant=siteline.testing.Variant(order="time"))
def test_unmerged_keeps_the_order_of_pages(sandbox, tmp_path):
    path, truth = tmp_path / "out.csv", true_rows(sandbox)
    document = run_json("read", "--unmerged", "-o", path, *QUERY, env=sandbox.env())
    pages = sandbox.client().scan(**RANGE, interval="1h", page_size=100).pages()
    assert rows_of(path) == with_texts(record for page in pages for record in page.records())
    assert rows_of(path) != truth
    assert document["rows"] == len(rows_of(path)) == len(truth)
    assert document["pages"] == document["requests"] == PAGES
    assert os.listdir(tmp_path) == ["out.csv"]


def test_names_select_series(sandbox, tmp_path):
    # The client knows the names of the parameters, so that only matching pages are paid for.
    env = sandbox_profile(sandbox, tmp_path, "plant")
    with (tmp_path / "config.toml").open("a") as file:
        file.write('[plant.filter_names]\nmachine = "machineId"\n')
    told = run_command("read", *QUERY, "--machine", "M3", env=sandbox.env()).stderr
    assert "state how in [NAME.filter_names] of a profile." in told
    before = len(sandbox.stats.log)
    words = ("--profile", "plant", *QUERY, "--machine", "M3", "--machine", "M4", "--tag", "speed")
    path = tmp_path / "out.csv"
    document = run_json("read", "-o", path, *words, env=env)
    truth = sandbox.client().read(**RANGE, interval="1h", machine=["M3", "M4"], tag="speed")
    assert rows_of(path) == with_texts(truth.records())
    log = sandbox.stats.log[before:]
    data = [entry.query for entry in log if entry.query][: document["pages"]]
    assert all("machineId=M3" in query or "machineId=M4" in query for query in data)


def test_find_selects_series(shared_sandbox):
    env = shared_sandbox.env()
    found = parsed(run_command("read", *QUERY, "--find", "temp", env=env).stdout.splitlines())
    assert {row["label"] for row in found} == {
        "M3 / D31 / temperature [degC]",
        "M4 / D41 / temperature [degC]",
    }
    before = shared_sandbox.stats.data_requests
    done = run_command("read", *QUERY, "--find", "nothing", env=env, status=2)
    assert "No series contains 'nothing'. No page was requested." in done.stderr
    done = run_command("read", *QUERY, "--find", "temprature", env=env, status=2)
    assert "Nearest: 'temperature'. siteline series lists all series." in done.stderr
    wrong = run_command("read", *QUERY, "--tag", "sped", env=env, status=2).stderr
    assert "Nearest: 'speed'." in wrong
    assert "siteline series lists all" in wrong
    assert "No page was read" not in wrong, "it says that none was requested"
    assert shared_sandbox.stats.data_requests == before


def test_shapes_are_those_of_tables(shared_sandbox):
    words = ("read", *QUERY, "--find", "pieces", "--pivot", "--tz", "Europe/Berlin")
    words += ("--resample", "1d", "--agg", "last", "--labels", "line")
    done = run_command(*words, env=shared_sandbox.env())
    client = shared_sandbox.client(tz="Europe/Berlin")
    series = client.series().find("pieces")
    table = client.read(**RANGE, interval="1h", series=series, labels="line")
    with pytest.warns(siteline.SitelineWarning, match="not read completely"):
        truth = table.resample("1d", "last").pivot()
    rows = list(csv.reader(done.stdout.splitlines()))
    assert rows[0] == truth.columns
    assert len(rows) == len(truth) + 1
    assert rows[2][0] == "2026-11-02T00:00:00+01:00"
    assert float(rows[2][1]) == truth.to_polars()[truth.columns[1]][1]


def test_a_store_gives_settled_data(sandbox, tmp_path):
    words = ("read", *QUERY, "--store", tmp_path / "plant.siteline", "-o", tmp_path / "out.csv")
    assert run_json(*words, env=sandbox.env())["pages"] >= PAGES
    # The last day is not settled, so a later read needs its pages.
    recent, poor = [*words, "--end", "2026-11-20T00:00Z"], {"SITELINE_DAILY_ALLOWANCE": "1"}
    run_command(*recent, env=sandbox.env())
    planned = run_json(*recent, "--dry-run", env={**sandbox.env(), **poor}, status=5)
    assert (planned["pages"] > 1, planned["fits"]) == (True, False)
    assert run_json(*words, env=sandbox.env())["pages"] == 0
    assert rows_of(tmp_path / "out.csv") == true_rows(sandbox)
    planned = run_json(*words, "--dry-run", env=sandbox.env())
    assert (planned["pages"], planned["fits"]) == (0, True)


def test_a_dry_run_sends_nothing(shared_sandbox, tmp_path):
    env, before = shared_sandbox.env(), shared_sandbox.stats
    words = ("read", *QUERY, "--dry-run", "-o", tmp_path / "out.csv")
    document = run_json(*words, env=env)
    assert (document["kind"], document["pages"], document["fits"]) == ("scan", None, None)
    (task,) = document["tasks"]
    assert (task["start"], task["end"]) == ("2026-11-01T00:00:00Z", "2026-11-08T00:00:00Z")
    assert "number of pages unknown" in run_command(*words, env=env).stdout
    assert shared_sandbox.stats == before
    assert os.listdir(tmp_path) == []


def test_an_empty_result_has_a_reason(sandbox, tmp_path):
    words = ["read", "-o", tmp_path / "out.csv", "--start", "2026-11-01T00:00Z"]
    words += ["--end", "2026-11-01T01:00Z", "--interval", "1h", "--site"]
    empty = run_command(*words, "S9", env=sandbox.env())
    assert empty.stdout.endswith('\nDiscovery does not list site "S9".\n')
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").count("\n") == 1
    none = run_command(*words, "S1", "--filter", "machineId=none", env=sandbox.env()).stdout
    assert none.splitlines()[0].startswith(f"{tmp_path / 'out.csv'}: 0 points, ")


def test_a_list_of_causes_ends_before_the_next_sentence(shared_sandbox, tmp_path):
    env = {**shared_sandbox.env(), "SITELINE_SUBJECT": "another"}
    words = ("read", "-o", tmp_path / "out.csv", *QUERY)
    lines = run_command(*words, env=env, status=3).stderr.splitlines()
    assert lines[1].endswith(" Compare:")
    assert lines[2].startswith("  - kid ")
    assert lines[-2].startswith("  - ")
    assert lines[-1] == "  No page was read."
    assert not any("\\n" in line for line in lines)


def test_a_hint_that_is_no_sentence_has_its_own_line():
    error = siteline.errors.TransportError("no connection", hint="check the host and port")
    cli_read._explain(error, "No page was read.")
    assert error.hint == "check the host and port\nNo page was read."


def test_a_refused_request_is_reported_once(shared_sandbox, tmp_path):
    words = ("read", "-o", tmp_path / "out.csv", *QUERY, "--filter", "colour=red")
    message, kept = run_command(*words, env=shared_sandbox.env(), status=3).stderr.splitlines()
    assert message.endswith('unknown parameter "colour"')
    assert kept.endswith(" pageSize is --page-size. No page was read.")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "out.csv"], "--start is missing"),
        (["-o", "out.csv", "--resume", "--site", "S1"], "--start is missing"),
        (["-o", "out.csv", "--resume"], "no earlier read of out.csv to resume"),
        (["-o", "out.txt", *QUERY], "the ending belongs to no format"),
        (["--json", *QUERY], "stdout has the data"),
        (["-o", "none/out.csv", *QUERY], "there is no such folder"),
        (["-o", ".", "--format", "csv", *QUERY], "is a folder"),
        (["-o", "/dev/null", "--format", "csv", *QUERY], "not a regular file"),
        (["-o", "out.parquet", "--unmerged", *QUERY], "not parquet"),
        (["--unmerged", "--pivot", *QUERY], "--unmerged writes points as sent"),
        (["-o", "out.csv", "--unmerged", "--resume", *QUERY], "with --unmerged"),
        (["-o", "out.csv", "--split", "2", "--resume", *QUERY], "with --split"),
        (["--resume", *QUERY], "--resume needs -o FILE or --spool FOLDER"),
        (["--resample", "1d", *QUERY], "--resample needs --agg"),
        (["--agg", "mean", *QUERY], "--agg needs --resample"),
        (["-o", "out.csv", "--skip-code", "256", *QUERY], "from 0 to 255"),
        (["-o", "out.csv", "--filter", "machineId", *QUERY], "is not NAME=VALUE"),
        (["-o", "out.csv", "--site", "S1", "--start", "2026-11-21"], "The range is empty"),
    ],
)
def test_a_wrong_line_sends_nothing(shared_sandbox, tmp_path, arguments, said):
    before, env = shared_sandbox.stats.log, shared_sandbox.env()
    done = run_command("read", *arguments, env=env, folder=tmp_path, status=2)
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
    run_command("read", "-o", link, *QUERY, env=shared_sandbox.env())
    assert link.is_symlink()
    assert len(rows_of(real)) == 1002
    assert (stat.S_IMODE(real.stat().st_mode), real.stat().st_uid) == (0o640, owner)


@pytest.fixture(scope="module")
def plant(shared_sandbox, tmp_path_factory):
    """A store in which only the last day is not settled."""
    path = tmp_path_factory.mktemp("plant") / "plant.siteline"
    feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start="2026-11-17T00:00Z")
    with siteline.Store(path) as store:
        shared_sandbox.client(ledger="memory").sync(feed, store)
    return path


@pytest.mark.parametrize("format", ["csv", "jsonl", "arrow", "parquet"])
def test_an_export_is_the_feed(shared_sandbox, plant, tmp_path, format):
    before, path = shared_sandbox.stats.log, tmp_path / f"out.{format}"
    document = run_json("store", "export", plant, "line-2", "-o", path)
    with siteline.Store(plant, read_only=True) as store:
        assert rows_of(path) == with_texts(
            {name: row[name] for name in Record._fields} for row in store.read("line-2").records()
        )
    assert (document["command"], document["points"]) == ("store export", len(rows_of(path)))
    assert shared_sandbox.stats.log == before


def test_an_export_is_selected_and_shaped(plant):
    words = ("store", "export", plant, "line-2", "--final", "--tag", "speed", "--pivot")
    rows = list(csv.reader(run_command(*words, "--start", "-2d").stdout.splitlines()))
    with siteline.Store(plant, read_only=True) as store:
        with pytest.warns(siteline.SitelineWarning, match="not settled"):
            truth = store.read("line-2", "-2d", final=True).find(tag="speed").pivot()
        assert rows[0] == truth.columns == ["timestamp", *(row for row in rows[0][1:])]
        assert len(rows) == len(truth) + 1
        assert len(truth) < len(store.read("line-2", "-2d").find(tag="speed").pivot())
    done = run_command(*words, "--find", "nothing", status=2)
    assert done.stderr.splitlines()[0] == "siteline: No series of line-2 is selected."
    run_command("store", "export", plant, "line-9", status=2)
