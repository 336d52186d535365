"""siteline: aggregated time series of the Customer Data Service, in a DataFrame.

siteline signs the assertion, caches the token, follows the cursor to its end, merges series over
pages and counts every request against the daily allowance. A read is complete or it raises an
error.

>>> with siteline.Sandbox() as sandbox:          # a local copy of the service, for trying it out
...     client = sandbox.client()
...     scan = client.scan(site="S1", line="L1", start="2026-11-01T00:00:00Z",
...                        end="2026-11-01T06:00:00Z", interval="5m")
...     frame = scan.to_pandas()
>>> list(frame.columns)[5:8]
['timestamp', 'value', 'minimum']

Start with :class:`Client` and :class:`Credential`; :class:`PrivateKey` before enrollment;
:class:`MutualTls` in place of a credential for a platform-managed integration;
:class:`Feed` and :class:`Store` for data that stay up to date while the service revises them;
:class:`Agent` for many processes; :class:`Sandbox` for tests; pictures are made by
:mod:`siteline.plots`; all exceptions are in :mod:`siteline.errors`, the types of the dicts in
:mod:`siteline.reports`.
"""

from siteline import _interpreter as _interpreter
from siteline import _unpicklable
from siteline._core import HAS_SANDBOX as _HAS_SANDBOX
from siteline._core import (
    Agent,
    Bookmark,
    Clock,
    Completeness,
    Credential,
    Difference,
    Feed,
    MutualTls,
    Page,
    PageIterator,
    Points,
    PrivateKey,
    Query,
    Rebucketed,
    RecordIterator,
    Scan,
    Shape,
    Store,
    SyncPages,
    Table,
    Wide,
    __version__,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from siteline import errors
    from siteline import types as types
    from siteline._core import Sandbox
    from siteline._doctor import Check, Diagnosis, doctor
    from siteline.aio import AsyncClient, AsyncPages, AsyncRecords, AsyncScan, AsyncSyncPages
    from siteline.allowance import Allowance
    from siteline.catalogue import Catalogue, DiscoveryShape, SeriesIds, SeriesInfo
    from siteline.client import Client
    from siteline.coverage import Coverage, CoverageWindow
    from siteline.discovery import Differences, Discovery
    from siteline.errors import SitelineError, SitelineWarning
    from siteline.frames import Record
    from siteline.gathered import Gathered
    from siteline.lateness import Delays, Lateness
    from siteline.maintenance import Freed
    from siteline.notes import RequestNote
    from siteline.plots import Plot
    from siteline.progress import Progress, StoreProgress
    from siteline.reports import (
        AgentAllowanceDict,
        AgentStateDict,
        AllowanceDict,
        CatalogueReport,
        CheckDict,
        DiagnosisDict,
        FeedReportDict,
        PageReport,
        Provenance,
        PublicJwk,
        RangeCoverage,
        SandboxRequest,
        SandboxStats,
        ScanReport,
        SetAsideDict,
        StoreProvenance,
        StoreShareDict,
        SyncReportDict,
        TableReport,
        TaskDict,
    )
    from siteline.sync import FeedReport, Plan, SetAside, SyncReport, Task
    from siteline.targets import AsyncStoreTarget, StoreTarget

_unpicklable.register_refusals()

__all__ = [
    "Agent",
    "AgentAllowanceDict",
    "AgentStateDict",
    "Allowance",
    "AllowanceDict",
    "AsyncClient",
    "AsyncPages",
    "AsyncRecords",
    "AsyncScan",
    "AsyncStoreTarget",
    "AsyncSyncPages",
    "Bookmark",
    "Catalogue",
    "CatalogueReport",
    "Check",
    "CheckDict",
    "Client",
    "Clock",
    "Completeness",
    "Coverage",
    "CoverageWindow",
    "Credential",
    "Delays",
    "Diagnosis",
    "DiagnosisDict",
    "Difference",
    "Differences",
    "Discovery",
    "DiscoveryShape",
    "Feed",
    "FeedReport",
    "FeedReportDict",
    "Freed",
    "Gathered",
    "Lateness",
    "MutualTls",
    "Page",
    "PageIterator",
    "PageReport",
    "Plan",
    "Plot",
    "Points",
    "PrivateKey",
    "Progress",
    "Provenance",
    "PublicJwk",
    "Query",
    "RangeCoverage",
    "Rebucketed",
    "Record",
    "RecordIterator",
    "RequestNote",
    "Sandbox",
    "SandboxRequest",
    "SandboxStats",
    "Scan",
    "ScanReport",
    "SeriesIds",
    "SeriesInfo",
    "SetAside",
    "SetAsideDict",
    "Shape",
    "SitelineError",
    "SitelineWarning",
    "Store",
    "StoreProgress",
    "StoreProvenance",
    "StoreShareDict",
    "StoreTarget",
    "SyncPages",
    "SyncReport",
    "SyncReportDict",
    "Table",
    "TableReport",
    "Task",
    "TaskDict",
    "Wide",
    "__version__",
    "doctor",
    "errors",
]

# Each module is imported when one of its names is first used, so that importing siteline takes only
# about two milliseconds.
_MODULES = {
    "_doctor": ("Check", "Diagnosis", "doctor"),
    "_sandbox": ("Sandbox",),
    "aio": ("AsyncClient", "AsyncPages", "AsyncRecords", "AsyncScan", "AsyncSyncPages"),
    "allowance": ("Allowance",),
    "catalogue": ("Catalogue", "DiscoveryShape", "SeriesIds", "SeriesInfo"),
    "client": ("Client",),
    "coverage": ("Coverage", "CoverageWindow"),
    "discovery": ("Differences", "Discovery"),
    "frames": ("Record",),
    "gathered": ("Gathered",),
    "lateness": ("Delays", "Lateness"),
    "maintenance": ("Freed",),
    "notes": ("RequestNote",),
    "plots": ("Plot",),
    "progress": ("Progress", "StoreProgress"),
    "reports": (
        "AgentAllowanceDict",
        "AgentStateDict",
        "AllowanceDict",
        "CatalogueReport",
        "CheckDict",
        "DiagnosisDict",
        "FeedReportDict",
        "PageReport",
        "Provenance",
        "PublicJwk",
        "RangeCoverage",
        "SandboxRequest",
        "SandboxStats",
        "ScanReport",
        "SetAsideDict",
        "StoreProvenance",
        "StoreShareDict",
        "SyncReportDict",
        "TableReport",
        "TaskDict",
    ),
    "sync": ("FeedReport", "Plan", "SetAside", "SyncReport", "Task"),
    "targets": ("AsyncStoreTarget", "StoreTarget"),
    "errors": (),
    "types": (),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

# Type checkers use the imports above instead, and so report a name that does not exist.
if not TYPE_CHECKING:
    if not _HAS_SANDBOX:
        __all__.remove("Sandbox")

    def __getattr__(name: str) -> object:
        if not (name in _MODULES or name in _MODULE_OF or name in __all__):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"siteline.{name}")
        module = import_module(f"siteline.{_MODULE_OF.get(name, 'errors')}")
        found = globals()[name] = getattr(module, name)
        return found


def _imports_by_name() -> None:
    # Nothing calls this. Tools such as PyInstaller read its import statement.
    from siteline import _by_name as _by_name


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
