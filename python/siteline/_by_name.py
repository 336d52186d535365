"""Import statements for the modules that only the core or the package imports, by name.

PyInstaller, cx_Freeze, py2app and Nuitka include a module only if an import statement names it.
These modules import all others. Nothing calls the function below.
"""

from __future__ import annotations


def _imports() -> None:
    import atexit
    import importlib.util

    from siteline import _doctor, _pandas_load, agent, sandbox, shapes, targets
    from siteline._display import sync_html
