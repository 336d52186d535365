"""Modules, files and threads that importing siteline and running pytest load or open."""

import os
import sys
import textwrap
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.command import run_program
from kit.interpreter import run_script
from siteline import signers


@systems.PROC
def test_importing_siteline_loads_and_opens_nothing_of_the_sandbox():
    script = """
        import os
        import sys

        def threads():
            return len(os.listdir("/proc/self/task"))

        def open_files():
            return {number: os.readlink(f"/proc/self/fd/{number}") for number in map(str, range(64))
                    if os.path.islink(f"/proc/self/fd/{number}")}

        def loaded():
            modules = {"_siteline_pytest", "pytest", "siteline.sandbox", "siteline.testing"}
            return sorted(modules & set(sys.modules)), "Sandbox" in vars(siteline)

        before = threads(), open_files()
        import siteline
        assert (threads(), open_files()) == before
        assert loaded() == ([], False)
        assert siteline.Sandbox.__module__ == "siteline.sandbox"
        assert loaded() == (["siteline.sandbox", "siteline.testing"], True)
        with siteline.Sandbox() as sandbox:
            assert threads() > before[0] and open_files() != before[1]
    """
    run_script(script)


def test_importing_siteline_reads_no_certificates():
    with siteline.Sandbox(tls=True) as sandbox:
        environment = sandbox.env()
        file = Path(environment["SSL_CERT_FILE"])

        def is_read_by(read):
            os.utime(file, (0, 1))  # with relatime, the next read updates the access time
            read()
            return file.stat().st_atime != 0

        if not is_read_by(file.read_bytes):
            pytest.skip("the filesystem does not note when a file is read")
        reading = "import siteline; siteline.Client().discover()"
        assert is_read_by(lambda: run_script(reading, environment=environment))
        assert not is_read_by(lambda: run_script("import siteline", environment=environment))


def run_pytest(folder, test, *options):
    """Runs pytest on this test in an empty folder. Returns its output."""
    (folder / "test_theirs.py").write_text(textwrap.dedent(test))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers"]
    command += ["-p", "no:hypothesispytest"]  # loading it is slow
    done = run_program(*command, *options, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_run_of_pytest_without_the_fixtures_does_not_load_siteline(tmp_path):
    test = """
        import sys

        def test_of_somebody_else(request):
            assert request.config.pluginmanager.has_plugin("siteline")
            assert "_siteline_pytest" in sys.modules
            assert not [name for name in sys.modules if name.split(".")[0] == "siteline"]
    """
    assert "1 passed" in run_pytest(tmp_path, test)


@pytest.mark.parametrize("options", [(), ("-p", "no:siteline")], ids=["both", "by_name"])
def test_the_fixtures_load_siteline_and_the_mark_is_known(tmp_path, options):
    test = """
        import sys
        import pytest

        @pytest.mark.siteline_sandbox(daily_allowance=2)
        def test_of_a_customer(siteline_client, siteline_sandbox):
            import siteline
            from siteline.testing import NOW

            assert isinstance(siteline_client, siteline.Client)
            assert siteline_sandbox.clock.now().isoformat() == NOW.replace("Z", "+00:00")
    """
    assert "1 passed" in run_pytest(tmp_path, test, *options, "-p", "siteline.testing")


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("deltalake", "delta", lambda: siteline.targets.Delta("plant")),
        ("duckdb", "duckdb", lambda: siteline.targets.DuckDB("plant")),
        ("adbc_driver_postgresql", "postgres", lambda: siteline.targets.Postgres("postgresql:///")),
        ("altair", "plot", lambda: siteline.plots.coverage(())),
        ("boto3", "aws", lambda: signers.AwsKms("alias/plant")),
    ],
)
def test_a_missing_package_names_its_extra(monkeypatch, package, extra, use):
    for name in [
        one for one in sys.modules if one.startswith(("siteline.plots", "siteline._plots"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(vars(siteline), "plots", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"'siteline\[{extra}\]'"):
        use()


@pytest.mark.parametrize(
    ("module", "package", "words"),
    [
        ("dlt", "dlt", "needs dlt, which is not installed: pip install 'siteline[dlt]'"),
        ("otel", "opentelemetry", "opentelemetry-api: pip install siteline[otel]"),
        ("spark", "pyspark", ""),
    ],
)
def test_optional_packages_are_imported_only_when_needed(module, package, words):
    script = f"""
        import sys, siteline
        with siteline.Sandbox() as sandbox:
            sandbox.client(on_request=str).discover()
        assert not [name for name in sys.modules if "{package}" in name or ".{module}" in name]
        sys.modules["{package}"] = sys.modules["pyarrow"] = None
        try:
            import siteline.{module}
        except ImportError as error:
            print(error)
    """
    printed = run_script(script)
    assert words in printed
    assert bool(printed) == bool(words)


def test_importing_siteline_loads_no_drawing_and_no_doors():
    script = """
        import sys
        import siteline

        def loaded():
            late = ("siteline._display", "siteline._plots", "altair", "numpy")
            late += ("siteline.mcp", "siteline.signers", "mcp", "pydantic")
            return {name for name in sys.modules if name.startswith(late)}

        for name in siteline.__all__:
            getattr(siteline, name)
        assert not loaded(), loaded()
        feed = siteline.Feed("line-2", site="S1", start="2026-11-15T00:00Z")
        assert "Feed" in feed._repr_html_()
        assert "siteline._display.sync_html" in loaded()
    """
    run_script(script)
