"""A build without the sandbox, against the sandbox of the usual build in this process.

`make test-no-sandbox` makes that build, unpacks it into `FOLDER`, and runs these tests. The usual
run leaves them out.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "target" / "no-sandbox" / "installed"
"""On the path of the processes below, before the usual build."""


def run(*arguments, variables=None):
    """Run the interpreter with the build without the sandbox."""
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), **(variables or {})}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def run_script(script, variables=None):
    """Its output; it must end well."""
    done = run("-W", "error", "-c", textwrap.dedent(script), variables=variables)
    assert not done.stderr, done.stderr
    return done.stdout.split()


def test_the_build_is_the_one_without_the_sandbox():
    script = "import siteline; print(siteline.__file__)"
    assert Path(*run_script(script)).is_relative_to(FOLDER)


def test_reads_and_syncs_work(siteline_sandbox, tmp_path):
    day = {"site": "S1", "line": "L2", "start": "2026-11-18", "end": "2026-11-19"}
    script = f"""
        import siteline

        feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", since="2026-11-18")
        with siteline.Client.from_env() as client, siteline.Store({str(tmp_path / "s")!r}) as store:
            print(len(client.data(**{day}, interval="1h").collect()))
            print(client.sync(feed, store).complete)
            print(len(store.points("line-2", {day["start"]!r}, {day["end"]!r}).to_pandas()))
    """
    points = str(len(siteline_sandbox.truth(**day, interval="1h")))
    assert run_script(script, siteline_sandbox.env()) == [points, "True", points]


def test_the_sandbox_says_why_it_is_missing():
    script = """
        import siteline

        def refused(use):
            try:
                use()
            except ImportError as error:
                assert "`sandbox`" in str(error), error
                assert error.name == "siteline"
                return "refused"

        def imported():
            from siteline import Sandbox

        def star():
            exec("from siteline import *")

        print(refused(lambda: siteline.Sandbox), refused(imported), refused(star))
        print("Sandbox" in dir(siteline), "SandboxStats" in dir(siteline))
    """
    assert run_script(script) == ["refused", "refused", "None", "False", "True"]


def test_help_and_all_public_names_are_whole():
    script = """
        import pydoc, siteline

        for name in siteline.__all__:
            getattr(siteline, name)
        text = pydoc.render_doc(siteline, renderer=pydoc.plaintext)
        print("class Client(" in text, "class Sandbox(" in text)
    """
    assert run_script(script) == ["True", "False"]


def test_the_fixtures_of_pytest_say_so_and_the_mark_is_known(tmp_path):
    test = tmp_path / "test_report.py"
    test.write_text(
        textwrap.dedent("""
            import pytest

            @pytest.mark.siteline_sandbox(seed=3)
            def test_a_report(siteline_client):
                pass

            def test_without_the_fixtures():
                pass
        """)
    )
    done = run("-m", "pytest", "--strict-markers", "-p", "no:cacheprovider", str(test))
    assert "1 passed, 1 error" in done.stdout, done.stdout
    assert "This build of siteline has no Sandbox" in done.stdout


def test_the_command_says_why_there_is_no_sandbox():
    done = run("-m", "siteline", "sandbox")
    assert (done.returncode, done.stdout) == (2, "")
    assert "This build of siteline has no sandbox" in done.stderr
