"""The package with an extension that has no sandbox, against a sandbox in this process.

`make lint` compiles that extension. Here a finder removes the sandbox from the usual one.
"""

import pytest
from kit.command import run_process
from kit.interpreter import run_script

pytestmark = pytest.mark.once

# Python imports it before anything else.
WITHOUT = """
import importlib.abc, importlib.machinery, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "siteline._core":
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


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """The variables of an interpreter that uses the finder."""
    folder = tmp_path_factory.mktemp("without")
    (folder / "sitecustomize.py").write_text(WITHOUT)
    return {"PYTHONPATH": str(folder)}


def test_reads_and_syncs_work(siteline_sandbox, tmp_path, without):
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
    printed = run_script(script, environment={**siteline_sandbox.env(), **without})
    assert printed.split() == [points, "True", points]


def test_the_sandbox_says_why_it_is_missing(without):
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
    printed = run_script(script, environment=without).split()
    assert printed == ["refused", "refused", "None", "False", "True"]


def test_the_command_says_why_there_is_no_sandbox(without):
    done = run_process("sandbox", env=without, status=2)
    assert done.stdout == ""
    assert "This build of siteline has no sandbox" in done.stderr
