"""siteline: aggregated time series of the Customer Data Service, in a DataFrame.

siteline signs the assertion, caches the token, follows the cursor to its end, merges pages and
counts every request against the daily allowance. A read is complete, or it raises an error.

>>> with siteline.Sandbox() as sandbox:          # a local copy of the service, for trying it out
...     client = sandbox.client()
...     scan = client.scan(site="S1", line="L1", start="2026-11-01T00:00:00Z",
...                        end="2026-11-01T06:00:00Z", interval="5m")
...     frame = scan.to_pandas()
>>> list(frame.columns)[5:8]
['label', 'timestamp', 'value']

Start with :class:`Client` and :class:`Credential`. Before enrollment: :class:`PrivateKey`. For a
platform-managed integration: :class:`MutualTls`. For data that stays up to date: :class:`Feed` and
:class:`Store`. For many processes: :class:`Agent`. For tests: :class:`Sandbox`. Charts:
:mod:`siteline.plots`; exceptions: :mod:`siteline.errors`; records: :mod:`siteline.types`.
"""

from siteline import _interpreter as _interpreter
from siteline._core import HAS_SANDBOX as _HAS_SANDBOX
from siteline._core import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from siteline import errors
    from siteline._doctor import doctor
    from siteline.agent import Agent
    from siteline.aio import AsyncClient
    from siteline.client import Client
    from siteline.credentials import Credential, MutualTls, PrivateKey
    from siteline.errors import SitelineError, SitelineWarning
    from siteline.feed import Feed
    from siteline.page import Page
    from siteline.sandbox import Sandbox
    from siteline.scan import Scan
    from siteline.store import Store
    from siteline.table import Table


__all__ = ["Agent", "AsyncClient", "Client", "Credential", "Feed", "MutualTls", "Page"]
__all__ += ["PrivateKey", "Sandbox", "Scan", "SitelineError", "SitelineWarning", "Store", "Table"]
__all__ += ["__version__", "doctor", "errors"]

# Each module is imported when one of its names is first used, so that importing siteline is fast.
_MODULES = ("errors", "plots", "shapes", "targets", "testing", "types")
# The modules of other names have the name in small letters.
_MODULE_OF = {
    "AsyncClient": "aio",
    **dict.fromkeys(("Credential", "MutualTls", "PrivateKey"), "credentials"),
    **dict.fromkeys(("SitelineError", "SitelineWarning"), "errors"),
    "doctor": "_doctor",
}

# Type checkers use the imports above instead, and so report a name that does not exist.
if not TYPE_CHECKING:
    if not _HAS_SANDBOX:
        __all__.remove("Sandbox")

    def __getattr__(name: str) -> object:
        # A build without the sandbox says so when its module is imported.
        if name not in (*_MODULES, *__all__, "Sandbox"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"siteline.{name}")
        module = import_module(f"siteline.{_MODULE_OF.get(name, name.lower())}")
        found = globals()[name] = getattr(module, name)
        return found


def _imports_by_name() -> None:
    # Nothing calls this. PyInstaller, cx_Freeze, py2app and Nuitka include a module only if an
    # import statement names it. The core or the package imports these by name, and they import all
    # others.
    import atexit
    import importlib.util

    from siteline import _doctor, _pandas_load, agent, sandbox, shapes, targets
    from siteline._display import sync_html


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
