"""Import statements for the modules that are imported by name.

PyInstaller, cx_Freeze, py2app and Nuitka include a module only if an import statement names it.
Nothing calls the function below.
"""

from __future__ import annotations

__all__: list[str] = []


def _imports() -> None:
    import asyncio
    import atexit
    import contextvars
    import importlib.util
    import json
    import os.path
    import threading

    import siteline._core
    from siteline import (
        _arguments,
        _awaiting,
        _doctor,
        _labels,
        _lazy,
        _logs,
        _pandas_load,
        _passphrase,
        _series,
        _warn,
        agent,
        aio,
        client,
        credentials,
        errors,
        feed,
        frames,
        page,
        plots,
        progress,
        sandbox,
        scan,
        shapes,
        store,
        table,
        targets,
        testing,
        types,
    )
    from siteline._display import html, series_html, sync_html
