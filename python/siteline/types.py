"""The records and iterators that siteline returns.

A record is a frozen dataclass or a named tuple. Its ``to_dict()`` returns JSON values.

>>> report = client.sync(siteline.Feed("line-2", site="S1", interval="1h", start="2026-11-19"),
...                      siteline.Store("plant.siteline"))
>>> isinstance(report, siteline.types.SyncReport), report.to_dict()["complete"]
(True, True)
"""

from siteline._points import RecordIterator
from siteline._records.allowance import AgentState, Allowance
from siteline._records.bookmark import Bookmark
from siteline._records.coverage import Coverage, CoverageWindow
from siteline._records.diagnosis import Check, Diagnosis
from siteline._records.differences import DiscoveryDiff
from siteline._records.discovery import Discovery
from siteline._records.http import Http
from siteline._records.lateness import Delays, Lateness
from siteline._records.plan import Plan
from siteline._records.query import Query
from siteline._records.requests import Progress, RequestEvent
from siteline._records.series import Record, SeriesIds
from siteline._records.store import Freed, StoreProgress, StoreShare
from siteline._records.sync import FeedReport, SkippedRange, SyncReport, Task
from siteline._records.tables import ReadReport, SeriesReport, StoreReport
from siteline.errors import Attempt
from siteline.page import PageDiff
from siteline.scan import PageIterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from siteline.aio import AsyncPages, AsyncRecords, AsyncScan
    from siteline.sync import AsyncSyncPages, SyncPages

__all__ = ["AgentState", "Allowance", "AsyncPages", "AsyncRecords", "AsyncScan"]
__all__ += ["AsyncSyncPages", "Attempt", "Bookmark", "Check", "Coverage", "CoverageWindow"]
__all__ += ["Delays", "Diagnosis", "Discovery", "DiscoveryDiff", "FeedReport", "Freed", "Http"]
__all__ += ["Lateness", "PageDiff", "PageIterator", "Plan", "Progress", "Query", "ReadReport"]
__all__ += ["Record", "RecordIterator", "RequestEvent", "SeriesIds", "SeriesReport"]
__all__ += ["SkippedRange", "StoreProgress", "StoreReport", "StoreShare", "SyncPages"]
__all__ += ["SyncReport", "Task"]

# asyncio takes longer to import than everything else here.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from importlib import import_module

        module = "sync" if name.endswith("SyncPages") else "aio"
        return getattr(import_module(f"siteline.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
