"""The package with an extension that has no sandbox, against a sandbox in this process.

`make lint` compiles that extension. Here a finder removes the sandbox from the usual one.
"""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.once

# Python imports it before anything else.
WITHOUT = """
import importlib.abc, importlib.machinery, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in ("siteline._core", "siteline._core"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            module.HAS_SANDBOX = False
            for one in [one for one in vars(module) if one.startswith("Sandbox")]:
                delattr(module, one)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory):
    """Puts the finder on the path of the processes."""
    global FOLDER
    FOLDER = tmp_path_factory.mktemp("without")
    (FOLDER / "sitecustomize.py").write_text(WITHOUT)


def run(*arguments, variables=None):
    """Runs the interpreter without the sandbox."""
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), **(variables or {})}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def run_script(script, variables=None):
    """Returns the output. The script must succeed."""
    done = run("-W", "error", "-c", textwrap.dedent(script), variables=variables)
    assert not done.stderr, done.stderr
    return done.stdout.split()


def test_reads_and_syncs_work(siteline_sandbox, tmp_path):
    day = {"site": "S1", "line": "L2", "start": "2026-11-18", "end": "2026-11-19"}
    script = f"""
        import siteline

        feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h", start="2026-11-18")
        with siteline.Client() as client, siteline.Store({str(tmp_path / "s")!r}) as store:
            print(len(client.scan(**{day}, interval="1h").collect()))
            print(client.sync(feed, store).complete)
            print(len(store.read("line-2", {day["start"]!r}, {day["end"]!r}).to_pandas()))
    """
    points = str(len(siteline_sandbox.expected(**day, interval="1h")))
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
        print("Sandbox" in dir(siteline), "Store" in dir(siteline))
    """
    assert run_script(script) == ["refused", "refused", "None", "False", "True"]


def test_the_command_says_why_there_is_no_sandbox():
    done = run("-m", "siteline", "sandbox")
    assert (done.returncode, done.stdout) == (2, "")
    assert "This build of siteline has no sandbox" in done.stderr
