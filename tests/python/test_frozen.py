"""Frozen applications (PyInstaller and others) contain the modules that are imported by name."""

import json
import os
import subprocess
import sys
import types
from importlib import metadata
from modulefinder import ModuleFinder
from pathlib import Path

import pytest
import siteline
from siteline import _passphrase
from siteline._pyinstaller import hook_folders
from siteline.cli.summaries import SUMMARIES

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "python"

PROGRAM = """
import asyncio, json, pickle, sys, warnings
import siteline
from siteline.cli import main

def read(client):
    scan = client.scan(site="S1", line="L1", start="2026-11-19", end="2026-11-20", interval="1h")
    table = scan.collect()
    repr(table), table._repr_html_(), list(table.records())
    str(scan.split(2)[0].head()), str(client.discover()), str(client.allowance)
    client.scan(site="S1", start="2026-11-19", end="2030-01-01")
    pickle.loads(pickle.dumps(table))

def sync(client, store):
    feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start="2026-11-15T00:00Z")
    report = client.sync(feed, store, progress=str)
    for one in (report, client.plan(feed, store), store.coverage("line-2")):
        str(one), one._repr_html_()
    str(store.lateness("line-2")), list(store.read("line-2").records()), store.compact()
    list(client.sync_pages(feed, {}))

async def read_async(sandbox):
    async with sandbox.async_client() as client:
        await client.discover()

warnings.simplefilter("ignore")
with siteline.Sandbox(now="2026-11-20T00:00Z") as sandbox:
    read(sandbox.client())
    sync(sandbox.client(), siteline.Store(sys.argv[1]))
    asyncio.run(read_async(sandbox))
    str(siteline.doctor(sandbox.client()))
    try:
        sandbox.client(http=siteline.types.Http(tries=0))
    except siteline.errors.ConfigError as error:
        pickle.loads(pickle.dumps(error))
main(["completion", "bash"])
names = sorted(name for name in sys.modules if name.partition(".")[0] == "siteline")
print(json.dumps(names), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The modules that a freezer finds through the imports of a program."""
    program = tmp_path_factory.mktemp("program") / "program.py"
    program.write_text("import siteline\nfrom siteline.cli import main\n")
    finder = ModuleFinder(path=[str(PYTHON)])
    finder.run_script(str(program))
    return {name for name in finder.modules if name.startswith("siteline.")}


def test_a_freezer_sees_what_the_package_imports_by_name(seen):
    assert {f"siteline.{name}" for name in siteline._MODULES} - seen == set()
    assert {f"siteline.cli.{name}" for name in SUMMARIES} - seen == set()


def test_a_freezer_sees_what_a_program_imports(seen, tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "plant.siteline")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    imported = set(json.loads(ran.stderr.splitlines()[-1]))
    assert imported - seen - {"siteline", "siteline._core"} == set()


def test_the_hook_brings_the_files_that_are_no_modules(monkeypatch):
    points = metadata.entry_points(group="pyinstaller40", name="hook-dirs")
    assert "siteline._pyinstaller:hook_folders" in {point.value for point in points}
    [folder] = hook_folders()
    source = (Path(folder) / "hook-siteline.py").read_text(encoding="utf-8")
    hooks = types.SimpleNamespace(
        collect_data_files=lambda name: [("data", name)],
        copy_metadata=lambda name: [("metadata", name)],
    )
    for name in ("PyInstaller", "PyInstaller.utils", "PyInstaller.utils.hooks"):
        monkeypatch.setitem(sys.modules, name, hooks)
    found = {}
    exec(compile(source, "hook-siteline.py", "exec"), found)
    assert found["datas"] == [("data", "siteline"), ("metadata", "siteline")]


@pytest.mark.parametrize("original", [None, "/opt/lib"])
def test_a_command_has_the_libraries_of_the_system(monkeypatch, original):
    monkeypatch.setattr(sys, "_MEIPASS", "/bundle", raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/bundle")
    if original is not None:
        monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", original)
    show = [sys.executable, "-c", "import os; print(os.environ.get('LD_LIBRARY_PATH'))"]
    failed, line, _ = _passphrase.run(show, 300)
    assert (failed, line.decode()) == (None, str(original))


@pytest.mark.campaign
def test_a_frozen_program_reads_and_syncs(tmp_path):
    pytest.importorskip("PyInstaller")
    (tmp_path / "app.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level=WARN"]
    excluded = ("pandas", "polars", "pyarrow", "duckdb", "numpy", "tqdm", "dlt", "pyspark")
    options = [f"--exclude-module={name}" for name in excluded]
    subprocess.run([*command, *options, "app.py"], cwd=tmp_path, check=True, timeout=600)
    app = tmp_path / "dist" / "app" / "app"
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    ran = subprocess.run(
        [app, tmp_path / "plant.siteline"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
