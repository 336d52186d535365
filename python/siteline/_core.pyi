"""The Rust core of siteline. Everything public is exported by the package ``siteline``."""

from asyncio import Future
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from os import PathLike
from pathlib import Path
from types import GenericAlias, TracebackType
from typing import (
    Any,
    Generic,
    Literal,
    Protocol,
    Required,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    final,
    overload,
)

import pandas as pd
import polars as pl
import pyarrow as pa

from siteline._awaiting import AsyncTarget
from siteline._display.protocols import FeedOverview, Preview
from siteline.aio import AsyncClient
from siteline.allowance import Allowance
from siteline.catalogue import Catalogue, DiscoveryShape, SeriesIds
from siteline.coverage import Coverage
from siteline.discovery import Discovery
from siteline.frames import Record
from siteline.gathered import Gathered
from siteline.lateness import Lateness
from siteline.maintenance import Freed
from siteline.notes import RequestNote
from siteline.plots import Plot
from siteline.progress import Progress, StoreProgress
from siteline.reports import (
    AgentStateDict,
    PageReport,
    PublicJwk,
    SandboxStats,
    ScanReport,
    TableReport,
)
from siteline.sync import FeedReport, Plan, SyncReport
from siteline.targets import AsyncStoreTarget, StoreTarget

__version__: str
"""The version of this package."""
HAS_SANDBOX: bool

__all__ = [
    "HAS_SANDBOX",
    "Agent",
    "Bookmark",
    "Client",
    "Clock",
    "Completeness",
    "Credential",
    "Difference",
    "Feed",
    "MutualTls",
    "Page",
    "PageIterator",
    "Points",
    "PrivateKey",
    "Query",
    "Rebucketed",
    "RecordIterator",
    "Sandbox",
    "Scan",
    "Shape",
    "Store",
    "SyncPages",
    "Table",
    "Wide",
    "__version__",
]

_Duration: TypeAlias = float | timedelta | str
_Instant: TypeAlias = datetime | date | str
_Zone: TypeAlias = str | tzinfo | None
_Ids: TypeAlias = Literal["str", "category"]
_Jwk: TypeAlias = Mapping[str, Any]
_Bytes: TypeAlias = bytes | bytearray | memoryview
_KeySource: TypeAlias = str | PathLike[str] | _Bytes | _Jwk | PrivateKey
_Filter: TypeAlias = str | int | Sequence[str | int]
_ProgressArg: TypeAlias = bool | Callable[[Progress], object] | None
_StoreProgressArg: TypeAlias = bool | Callable[[StoreProgress], object] | None
_Feeds: TypeAlias = Feed | Iterable[Feed]
_Range: TypeAlias = tuple[_Instant, _Instant]
_IdsArg: TypeAlias = str | Iterable[str] | None
_SeriesIds: TypeAlias = tuple[str | None, str | None, str | None, str | None, str | None]
_SeriesArg: TypeAlias = _SeriesIds | Iterable[_SeriesIds] | None
_Gaps: TypeAlias = Literal["explicit"] | None
_Labels: TypeAlias = (
    bool
    | Catalogue
    | Mapping[str, str]
    | Mapping[tuple[str | None, ...], str]
    | Callable[[SeriesIds], str | None]
    | None
)
_PlotLabels: TypeAlias = bool | Catalogue | Mapping[Any, Any] | Callable[[SeriesIds], Any] | None
_Measure: TypeAlias = Literal["value", "minimum", "maximum", "sample_count"]
_Reduction: TypeAlias = Literal["mean", "sum", "first", "last"]
_Flagged: TypeAlias = Literal["keep", "drop", "only"]
_Unread: TypeAlias = Literal["error", "warn", "keep"]
_Since: TypeAlias = SyncReport | FeedReport | int
_Row_co = TypeVar("_Row_co", covariant=True)

def _instrument(instrument: _Instrument | None) -> None: ...
def _paths() -> dict[str, str | None]: ...
def _refusal(number: int | None) -> tuple[str, str | None]: ...
def _profile_members() -> list[str]: ...
def _restore(
    backup: str | PathLike[str],
    store: str | PathLike[str],
    *,
    progress: _StoreProgressArg = None,
) -> bool: ...
def _sources(profile: str | None = None) -> dict[str, Any]: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class PrivateKey:
    def __new__(
        cls,
        source: _KeySource,
        *,
        passphrase: str | bytes | None = None,
        strict: bool = False,
    ) -> Self: ...
    @staticmethod
    def generate(bits: int = 3072) -> PrivateKey: ...
    @staticmethod
    def load(
        path: str | PathLike[str],
        *,
        passphrase: str | bytes | None = None,
        strict: bool = False,
    ) -> PrivateKey: ...
    def save(
        self,
        path: str | PathLike[str],
        *,
        passphrase: str | bytes | None = None,
        overwrite: bool = False,
    ) -> None: ...
    @property
    def public_jwk(self) -> PublicJwk: ...
    @property
    def thumbprint(self) -> str: ...
    @property
    def bits(self) -> int: ...
    def __copy__(self) -> PrivateKey: ...
    def __deepcopy__(self, memo: Any) -> PrivateKey: ...

@final
class Credential:
    def __new__(
        cls,
        subject: str,
        private_key: _KeySource | None = None,
        *,
        signer: Callable[[bytes], bytes] | Callable[[bytes], Awaitable[bytes]] | None = None,
        public_jwk: _Jwk | str | bytes | None = None,
        passphrase: str | bytes | None = None,
        password_command: str | Sequence[str] | None = None,
        kid: str | None = None,
        strict: bool = False,
    ) -> Self: ...
    @property
    def subject(self) -> str: ...
    @property
    def kid(self) -> str: ...
    @property
    def public_jwk(self) -> PublicJwk: ...
    @property
    def _key_file(self) -> Path | None: ...
    def __copy__(self) -> Credential: ...
    def __deepcopy__(self, memo: Any) -> Credential: ...

@final
class MutualTls:
    def __new__(
        cls,
        certificate: str | PathLike[str] | _Bytes,
        *,
        key: str | PathLike[str] | _Bytes | PrivateKey | None = None,
        passphrase: str | bytes | None = None,
        password_command: str | Sequence[str] | None = None,
        client_id: str | None = None,
        strict: bool = False,
    ) -> Self: ...
    @property
    def subject(self) -> str: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def thumbprint(self) -> str: ...
    @property
    def not_before(self) -> datetime: ...
    @property
    def not_after(self) -> datetime: ...
    def __copy__(self) -> MutualTls: ...
    def __deepcopy__(self, memo: Any) -> MutualTls: ...

@final
class Clock:
    def __new__(cls, start: _Instant | None = None) -> Self: ...
    def now(self) -> datetime: ...
    def advance(self, by: _Duration) -> None: ...
    def step(self, by: timedelta) -> None: ...
    def machine(self, wall: _Instant) -> Clock: ...

@final
class Query:
    @property
    def site(self) -> str | None: ...
    @property
    def line(self) -> str | None: ...
    @property
    def start(self) -> datetime | None: ...
    @property
    def end(self) -> datetime | None: ...
    @property
    def interval_seconds(self) -> int | None: ...
    @property
    def page_size(self) -> int | None: ...
    @property
    def filters(self) -> dict[str, tuple[str, ...]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def _repr_html_(self) -> str: ...

@final
class Shape:
    def __new__(
        cls,
        *,
        array: str | None = None,
        timestamp: Literal["detect", "iso", "epoch_seconds", "epoch_milliseconds"] = "detect",
        missing_cursor: Literal["error", "end"] = "error",
        error_member: str = "error",
        points: str = "points",
        next_cursor: str = "nextCursor",
        identity: Sequence[str] | None = None,
        timestamp_member: str = "timestamp",
        value: str = "value",
        minimum: str = "minimum",
        maximum: str = "maximum",
        sample_count: str = "sampleCount",
    ) -> Self: ...
    @property
    def array(self) -> str | None: ...
    @property
    def timestamp(self) -> str: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Bookmark:
    @classmethod
    def from_bytes(cls, data: bytes) -> Self: ...
    def to_bytes(self) -> bytes: ...
    def __bytes__(self) -> bytes: ...
    @property
    def pages(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class RecordIterator(Generic[_Row_co]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Row_co: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def _fill(self) -> Awaitable[None]: ...
    def _report(self) -> None: ...
    def _end(self) -> None: ...
    def _take(self) -> tuple[_Row_co | None, bool]: ...

@final
class PageIterator:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Page: ...
    def _fill(self) -> Awaitable[None]: ...
    def _report(self) -> None: ...
    def _end(self) -> None: ...
    def _take(self) -> tuple[Page | None, bool]: ...

@final
class Page:
    def __len__(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def first_sequence(self) -> int: ...
    @property
    def feed(self) -> str | None: ...
    @property
    def is_last(self) -> bool: ...
    @property
    def is_whole(self) -> bool: ...
    def against(self, stored: _ArrowStream) -> Difference: ...
    @property
    def query(self) -> Query: ...
    @property
    def bookmark(self) -> Bookmark | None: ...
    @property
    def report(self) -> PageReport: ...
    @property
    def raw(self) -> bytes | None: ...
    def to_pandas(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pd.DataFrame: ...
    def to_polars(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pl.DataFrame: ...
    def to_arrow(
        self, *, tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pa.Table: ...
    @overload
    def records(self, *, named: Literal[False] = False) -> RecordIterator[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True]) -> RecordIterator[Record]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def _ipc(self) -> Iterator[bytes]: ...
    def _columns(self) -> list[tuple[Any, ...]]: ...
    def _series_ids(self) -> list[tuple[str | None, ...]]: ...
    def _shown(self, labels: Any, gaps: bool) -> Any: ...
    def _provenance(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...
    def _preview(self) -> Preview: ...

@final
class Difference:
    @property
    def inserted(self) -> Page: ...
    @property
    def changed(self) -> Page: ...
    @property
    def unchanged(self) -> Page: ...
    @property
    def missing(self) -> Page: ...

@final
class Table:
    def __len__(self) -> int: ...
    @property
    def report(self) -> TableReport: ...
    def to_pandas(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pd.DataFrame: ...
    def to_polars(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pl.DataFrame: ...
    def to_arrow(
        self, *, tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pa.Table: ...
    @overload
    def records(self, *, named: Literal[False] = False) -> RecordIterator[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True]) -> RecordIterator[Record]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def _ipc(self) -> Iterator[bytes]: ...
    def _discovery(self) -> bytes | None: ...
    def _columns(self) -> list[tuple[Any, ...]]: ...
    def _series_ids(self) -> list[tuple[str | None, ...]]: ...
    def _shown(self, labels: Any, gaps: bool) -> Any: ...
    def _provenance(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...
    def _preview(self) -> Preview: ...
    def wide(
        self, value: _Measure = "value", *, labels: _Labels = None, gaps: _Gaps = None
    ) -> Wide: ...
    def completeness(
        self,
        by: _Duration = "1d",
        *,
        tz: str | tzinfo = "UTC",
        origin: str | date | time | None = None,
    ) -> Completeness: ...
    def plot(
        self,
        value: _Measure = "value",
        *,
        tz: _Zone = None,
        labels: _PlotLabels = None,
        title: str | None = None,
        width: int = 900,
        panels: int = 12,
    ) -> Plot: ...
    def rebucket(
        self,
        interval: _Duration,
        *,
        value: _Reduction | None = None,
        tz: str | tzinfo = "UTC",
        origin: str | date | time | None = None,
    ) -> Rebucketed: ...
    @staticmethod
    def _together(tables: tuple[Table, ...]) -> Table: ...
    def __copy__(self) -> Table: ...
    def __deepcopy__(self, memo: Any) -> Table: ...

@final
class Completeness:
    def __len__(self) -> int: ...
    def to_pandas(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pd.DataFrame: ...
    def to_polars(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pl.DataFrame: ...
    def to_arrow(
        self, *, tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pa.Table: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def _columns(self) -> list[tuple[Any, ...]]: ...
    def _series_ids(self) -> list[tuple[str | None, ...]]: ...
    def _shown(self, labels: Any, gaps: bool) -> Any: ...
    def _provenance(self) -> dict[str, Any]: ...

@final
class Rebucketed:
    def __len__(self) -> int: ...
    def to_pandas(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pd.DataFrame: ...
    def to_polars(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pl.DataFrame: ...
    def to_arrow(
        self, *, tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pa.Table: ...
    def wide(self, value: _Measure = "value", *, labels: _Labels = None) -> Wide: ...
    def plot(
        self,
        value: _Measure = "value",
        *,
        tz: _Zone = None,
        labels: _PlotLabels = None,
        title: str | None = None,
        width: int = 900,
        panels: int = 12,
    ) -> Plot: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def _discovery(self) -> bytes | None: ...
    def _columns(self) -> list[tuple[Any, ...]]: ...
    def _series_ids(self) -> list[tuple[str | None, ...]]: ...
    def _shown(self, labels: Any, gaps: bool) -> Any: ...
    def _provenance(self) -> dict[str, Any]: ...

@final
class Wide:
    @property
    def value(self) -> _Measure: ...
    @property
    def series(self) -> list[_SeriesIds]: ...
    def __len__(self) -> int: ...
    @property
    def labels(self) -> list[str] | None: ...
    def to_pandas(self, *, flat: bool = False, tz: _Zone = None) -> pd.DataFrame: ...
    def to_polars(self, *, tz: _Zone = None) -> pl.DataFrame: ...
    def to_arrow(self, *, tz: _Zone = None) -> pa.Table: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def _columns(self) -> tuple[Any, str, Any, bytearray | None]: ...
    def _names(self) -> list[str]: ...
    def _series_ids(self) -> list[tuple[str | None, ...]]: ...
    def _provenance(self) -> dict[str, Any]: ...

@final
class Scan:
    @property
    def query(self) -> Query: ...
    @property
    def report(self) -> ScanReport: ...
    def pages(self) -> PageIterator: ...
    @overload
    def records(
        self, *, named: Literal[False] = False, fresh: bool = False
    ) -> RecordIterator[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True], fresh: bool = False) -> RecordIterator[Record]: ...
    def collect(self) -> Table: ...
    def _collect(self) -> Awaitable[Table]: ...
    def _is_told(self) -> bool: ...
    def _is_collected_first(self) -> bool: ...
    def _progress_callback(self) -> Callable[[Progress], object] | None: ...
    def _collecting(self) -> _Collecting: ...
    def _wait(self, collecting: _Collecting) -> Progress | Table: ...
    def _step(self, collecting: _Collecting) -> Awaitable[Progress | Table]: ...
    def _end(self, collecting: _Collecting) -> None: ...
    def resume(self, bookmark: Bookmark, *, onto: Table | None = None) -> Scan: ...
    def split(self, by: int | str | timedelta, /) -> list[Scan]: ...
    def to_pandas(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pd.DataFrame: ...
    def to_polars(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pl.DataFrame: ...
    def to_arrow(
        self, *, tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pa.Table: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __copy__(self) -> Scan: ...
    def __deepcopy__(self, memo: Any) -> Scan: ...
    def _shown(self, labels: Any, gaps: bool) -> Any: ...
    def _repr_html_(self) -> str: ...
    def _known(self) -> Table | None: ...

@final
class Feed:
    def __new__(
        cls,
        name: str,
        *,
        since: _Instant,
        site: str | int | None = None,
        line: str | int | None = None,
        interval: _Duration | None = None,
        page_size: int | None = None,
        filters: Mapping[str, _Filter] | None = None,
        settle_lag: _Duration | None = "5m",
        overlap: _Duration | None = "1h",
        lateness: _Duration | None = "1d",
        window: _Duration | None = "1d",
        audit_pages: int = 0,
    ) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def site(self) -> str | None: ...
    @property
    def line(self) -> str | None: ...
    @property
    def interval(self) -> timedelta | None: ...
    @property
    def since(self) -> datetime: ...
    @property
    def page_size(self) -> int | None: ...
    @property
    def filters(self) -> dict[str, tuple[str, ...]]: ...
    @property
    def settle_lag(self) -> timedelta: ...
    @property
    def overlap(self) -> timedelta: ...
    @property
    def lateness(self) -> timedelta: ...
    @property
    def window(self) -> timedelta: ...
    @property
    def audit_pages(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def _repr_html_(self) -> str: ...
    def _asks(self) -> str: ...

@final
class Store:
    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        read_only: bool = False,
        share: Literal["group-read", "group"] | None = None,
    ) -> Self: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, bool]]: ...
    @property
    def path(self) -> Path: ...
    @property
    def feeds(self) -> dict[str, Feed]: ...
    def points(
        self,
        feed: Feed | str,
        start: _Instant | None = None,
        end: _Instant | None = None,
        *,
        tz: _Zone = None,
        machine: _IdsArg = None,
        device: _IdsArg = None,
        tag: _IdsArg = None,
        series: _SeriesArg = None,
        settled_only: bool = False,
        flagged: _Flagged = "keep",
        unread: _Unread = "error",
    ) -> Points: ...
    def scan(
        self,
        feed: Feed | str,
        *,
        settled_only: bool = False,
        flagged: _Flagged = "keep",
        unread: _Unread = "error",
    ) -> pl.LazyFrame: ...
    def changes(
        self,
        feed: Feed | str,
        since: _Since,
        start: _Instant | None = None,
        end: _Instant | None = None,
        *,
        tz: _Zone = None,
        machine: _IdsArg = None,
        device: _IdsArg = None,
        tag: _IdsArg = None,
        series: _SeriesArg = None,
        unread: _Unread = "error",
    ) -> Points: ...
    def as_of(
        self,
        feed: Feed | str,
        at: _Since | _Instant,
        start: _Instant | None = None,
        end: _Instant | None = None,
        *,
        tz: _Zone = None,
        machine: _IdsArg = None,
        device: _IdsArg = None,
        tag: _IdsArg = None,
        series: _SeriesArg = None,
        flagged: _Flagged = "keep",
        unread: _Unread = "error",
    ) -> Points: ...
    def coverage(self, feed: Feed | str, now: _Instant | None = None) -> Coverage: ...
    @staticmethod
    def _coverage_of(state: bytes, now: _Instant | None) -> Coverage: ...
    @staticmethod
    def _settled_of(state: bytes) -> list[tuple[datetime, datetime]]: ...
    @staticmethod
    def _lateness_of(state: bytes) -> Lateness: ...
    @staticmethod
    def _without_cursors(state: bytes) -> bytes: ...
    def lateness(self, feed: Feed | str) -> Lateness: ...
    def redefine(self, feed: Feed) -> None: ...
    def state(self, feed: Feed | str) -> bytes | None: ...
    def apply(self, feed: Feed | str, page: Page | None, state: bytes) -> tuple[int, int, int]: ...
    def forget(
        self, feed: Feed | str, before: _Instant, *, progress: _StoreProgressArg = None
    ) -> Freed: ...
    def compact(
        self,
        feed: Feed | str | Iterable[Feed | str] | None = None,
        *,
        progress: _StoreProgressArg = None,
    ) -> Freed: ...
    def backup(self, path: str | PathLike[str], *, progress: _StoreProgressArg = None) -> None: ...
    def check(self, *, progress: _StoreProgressArg = None) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None = None,
        exception: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...
    def __copy__(self) -> Store: ...
    def __deepcopy__(self, memo: Any) -> Store: ...
    def _repr_html_(self) -> str: ...
    def _page_times(self, feed: str) -> list[int]: ...
    def _overview(self) -> list[FeedOverview]: ...

@final
class Points:
    def __len__(self) -> int: ...
    def wide(
        self, value: _Measure = "value", *, labels: _Labels = None, gaps: _Gaps = None
    ) -> Wide: ...
    def completeness(
        self,
        by: _Duration = "1d",
        *,
        tz: str | tzinfo = "UTC",
        origin: str | date | time | None = None,
    ) -> Completeness: ...
    def plot(
        self,
        value: _Measure = "value",
        *,
        tz: _Zone = None,
        labels: _PlotLabels = None,
        title: str | None = None,
        width: int = 900,
        panels: int = 12,
    ) -> Plot: ...
    def rebucket(
        self,
        interval: _Duration,
        *,
        value: _Reduction | None = None,
        tz: str | tzinfo = "UTC",
        origin: str | date | time | None = None,
    ) -> Rebucketed: ...
    def to_pandas(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pd.DataFrame: ...
    def to_polars(
        self, *, ids: _Ids = "str", tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pl.DataFrame: ...
    def to_arrow(
        self, *, tz: _Zone = None, labels: _Labels = None, gaps: _Gaps = None
    ) -> pa.Table: ...
    @overload
    def records(self, *, named: Literal[False] = False) -> RecordIterator[dict[str, Any]]: ...
    @overload
    def records(self, *, named: Literal[True]) -> RecordIterator[Record]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def _ipc(self) -> Iterator[bytes]: ...
    def _series_ids(self) -> list[tuple[str | None, ...]]: ...
    def _batches(self) -> _Batches: ...
    def _repr_html_(self) -> str: ...
    def _preview(
        self,
    ) -> tuple[str, Preview, RecordIterator[dict[str, Any]], int, bool, str, bool]: ...

class _Batches:
    def series(self) -> object: ...
    def keep(self, places: Sequence[int]) -> None: ...
    def next(self, rows: int, columns: Sequence[int]) -> object | None: ...

class _Run:
    def _progress_callback(self) -> Callable[[Progress], object] | None: ...
    def _fetch(self) -> Awaitable[bool]: ...
    def _tell(self) -> None: ...
    def _apply(self) -> Future[Progress]: ...
    def _report(self) -> Future[SyncReport]: ...
    def _end(self) -> Future[None] | None: ...

_Handed: TypeAlias = tuple[Page | None, dict[str, bytes]]

@final
class SyncPages:
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Handed: ...
    def applied(self, inserted: int, revised: int, unchanged: int, flagged: int = 0) -> None: ...
    @property
    def report(self) -> SyncReport: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None = None,
        exception: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...
    def _fetch(self) -> Awaitable[bool]: ...
    def _take(self, is_more: bool) -> _Handed | None: ...
    def _is_over(self) -> bool: ...

class _Collecting: ...

class _Gathering:
    def _wanted(self) -> list[tuple[bool | Callable[[Progress], object] | None, str]]: ...
    def _wait(self, reported: list[bool]) -> tuple[int, Progress] | None: ...
    def _step(self, reported: list[bool]) -> Awaitable[tuple[int, Progress] | None]: ...
    def _tables(self) -> list[Table]: ...
    def _end(self) -> None: ...

class _Way(TypedDict):
    proxy: str | None
    service: str
    addresses: list[str]
    connected: str | None
    trust: str | None
    tls: _Handshake | None
    failed: Literal["proxy", "name", "tcp", "tls"] | None

class _Handshake(TypedDict):
    version: str
    issuer: str | None
    not_after: str | None

class _PlanOptions(TypedDict, total=False):
    until: _Instant | None
    now: _Instant | None
    reread: _Range | Iterable[_Range] | None

class _PullOptions(_PlanOptions, total=False):
    shape: Shape | None
    progress: _ProgressArg
    deadline: _Duration | None
    concurrency: int | None
    max_pages: int | None

class _SyncOptions(_PullOptions, total=False):
    wait: _Duration | None
    batch: int | Literal["chain"] | None

class _BaseOptions(TypedDict, total=False):
    scopes: str | Sequence[str] | None
    audience: str | None
    daily_allowance: int | None
    allowance_resets: str | time | None
    ledger: str | PathLike[str] | None
    agent: str | None
    settle_lag: _Duration | None
    assertion_lifetime: _Duration | None
    clock_tolerance: _Duration | None
    typ: bool
    max_retry_after: _Duration | None
    tries: int | None
    connect_timeout: _Duration | None
    response_timeout: _Duration | None
    idle_timeout: _Duration | None
    max_connections: int | None
    max_body_bytes: int | None
    application: str | None
    allow_http: bool
    ca_bundle: str | PathLike[str] | _Bytes | None
    proxy: str | None
    clock: Clock | None
    on_request: Callable[[RequestNote], object] | None

class _ClientOptions(_BaseOptions, total=False):
    credential: Credential | MutualTls | None

class _OutsideOptions(_ClientOptions, total=False):
    base_url: str

class _DataOptions(TypedDict, total=False):
    start: Required[_Instant | None]
    site: str | int | None
    line: str | int | None
    end: _Instant | None
    tz: _Zone
    interval: _Duration | None
    page_size: int | None
    filters: Mapping[str, _Filter] | None
    lag: _Duration | None
    shape: Shape | None
    extra_columns: Iterable[str] | None
    max_pages: int | None
    deadline: _Duration | None
    keep_raw: bool
    progress: _ProgressArg
    store: Store | None

def _forbid_core_dumps() -> None: ...
def _give_all_back() -> None: ...

@final
class Agent:
    def __new__(
        cls,
        client: Client,
        *,
        listen: str | None = None,
        allow_uids: Sequence[int] = (),
        tls_certificate: str | PathLike[str] | None = None,
        tls_key: str | PathLike[str] | None = None,
        client_authority: str | PathLike[str] | None = None,
        names: Sequence[str] = (),
    ) -> Self: ...
    @property
    def address(self) -> str: ...
    @property
    def state(self) -> AgentStateDict: ...
    def env(self) -> dict[str, str]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = ...,
        value: BaseException | None = ...,
        trace: TracebackType | None = ...,
    ) -> None: ...
    def _wait(self, seconds: float) -> None: ...

class _Instrument(Protocol):
    def request(self, note: RequestNote) -> None: ...
    def revised(self, feeds: Sequence[tuple[str, int]], /) -> None: ...

@final
class Client:
    def __new__(
        cls,
        base_url: str,
        *,
        credential: Credential | MutualTls | None = None,
        scopes: str | Sequence[str] | None = ("customer.discovery.read", "customer.data.read"),
        audience: str | None = None,
        daily_allowance: int | None = None,
        allowance_resets: str | time | None = None,
        ledger: str | PathLike[str] | None = None,
        agent: str | None = None,
        settle_lag: _Duration | None = "5m",
        assertion_lifetime: _Duration | None = "2m",
        clock_tolerance: _Duration | None = "0s",
        typ: bool = False,
        max_retry_after: _Duration | None = "1m",
        tries: int | None = 4,
        connect_timeout: _Duration | None = "5s",
        response_timeout: _Duration | None = "30s",
        idle_timeout: _Duration | None = "15s",
        max_connections: int | None = 64,
        max_body_bytes: int | None = 67108864,
        application: str | None = None,
        allow_http: bool = False,
        ca_bundle: str | PathLike[str] | _Bytes | None = None,
        proxy: str | None = None,
        clock: Clock | None = None,
        on_request: Callable[[RequestNote], object] | None = None,
    ) -> Self: ...
    @classmethod
    def from_env(cls, **options: Unpack[_OutsideOptions]) -> Client: ...
    @classmethod
    def from_profile(cls, name: str, **options: Unpack[_OutsideOptions]) -> Client: ...
    @property
    def base_url(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def allowance(self) -> Allowance: ...
    @property
    def clock_skew(self) -> float | None: ...
    def discover(self) -> Discovery: ...
    def replace_credential(self, credential: Credential | MutualTls) -> None: ...
    def _discover(self) -> Awaitable[Discovery]: ...
    def series(self, *, shape: DiscoveryShape | None = None) -> Catalogue: ...
    def _series(self, shape: DiscoveryShape | None) -> Awaitable[Catalogue]: ...
    def scan(
        self,
        *,
        start: _Instant | None,
        site: str | int | None = None,
        line: str | int | None = None,
        end: _Instant | None = None,
        tz: _Zone = None,
        interval: _Duration | None = None,
        page_size: int | None = None,
        filters: Mapping[str, _Filter] | None = None,
        lag: _Duration | None = None,
        shape: Shape | None = None,
        extra_columns: Iterable[str] | None = (),
        max_pages: int | None = None,
        deadline: _Duration | None = None,
        keep_raw: bool = False,
        progress: _ProgressArg = None,
        store: Store | None = None,
    ) -> Scan: ...
    def sync(
        self,
        feeds: _Feeds,
        store: Store | StoreTarget,
        *,
        until: _Instant | None = None,
        now: _Instant | None = None,
        reread: _Range | Iterable[_Range] | None = None,
        shape: Shape | None = None,
        progress: _ProgressArg = None,
        deadline: _Duration | None = None,
        wait: _Duration | None = None,
        concurrency: int | None = 1,
        max_pages: int | None = None,
        batch: int | Literal["chain"] | None = None,
    ) -> SyncReport: ...
    def sync_pages(
        self,
        feeds: _Feeds,
        states: Mapping[str, bytes] | None = None,
        *,
        until: _Instant | None = None,
        now: _Instant | None = None,
        reread: _Range | Iterable[_Range] | None = None,
        shape: Shape | None = None,
        progress: _ProgressArg = None,
        deadline: _Duration | None = None,
        concurrency: int | None = 1,
        max_pages: int | None = None,
    ) -> SyncPages: ...
    def _begin(
        self,
        feeds: _Feeds,
        store: Store | StoreTarget | AsyncStoreTarget | AsyncTarget,
        options: dict[str, Any],
    ) -> Future[_Run]: ...
    def gather(self, scans: Iterable[Scan], *, concurrency: int | None = 8) -> Gathered: ...
    def _gathering(self, given: Iterable[Scan], concurrency: int | None) -> _Gathering: ...
    def plan(
        self,
        feeds: _Feeds | Scan | Iterable[Scan],
        store: Store | StoreTarget | None = None,
        *,
        until: _Instant | None = None,
        now: _Instant | None = None,
        reread: _Range | Iterable[_Range] | None = None,
    ) -> Plan: ...
    def close(self) -> None: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]: ...
    def __copy__(self) -> Client: ...
    def __deepcopy__(self, memo: Any) -> Client: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None = None,
        exception: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...
    def _repr_html_(self) -> str: ...
    def _instrument(self, instrument: _Instrument | None) -> None: ...
    def _is_closed(self) -> bool: ...
    @staticmethod
    def _once(base_url: str, **options: Unpack[_ClientOptions]) -> Client: ...
    @staticmethod
    def _once_from(profile: str | None = None, **options: Unpack[_OutsideOptions]) -> Client: ...
    def _sending_once(self) -> Client: ...
    @property
    def _credential(self) -> Credential | MutualTls: ...
    def _settings(self) -> dict[str, Any]: ...
    def _agent_state(self) -> AgentStateDict: ...
    def _own_assertion(self) -> dict[str, Any] | None: ...
    def _token_once(self) -> dict[str, Any] | None: ...
    def _skew_error(self) -> float | None: ...
    def _planned_path(self) -> _Way: ...
    def _walk_path(self) -> tuple[_Way, Exception | None]: ...
    def _look_at_ledger(self) -> bool | None: ...

@final
class Sandbox:
    def __new__(
        cls,
        *,
        port: int | None = None,
        seed: int = 7,
        now: _Instant | None = None,
        daily_allowance: int | None = None,
        token_rate: int = 30,
        approved: bool = True,
        late: bool = True,
        record_wire: bool = False,
        tls: bool | Literal["1.2", "1.3"] = False,
        mutual_tls: Literal["data", "token"] | None = None,
        certificate_refusal: Literal["page", "alert"] = "page",
        page_size: int = 1000,
        max_page_size: int = 10000,
        interval: _Duration = "1m",
        max_interval: _Duration = "1d",
        max_range: _Duration = "366d",
        array: str = "series",
        timestamps: Literal["iso", "iso_offset", "iso_fraction", "epoch_s", "epoch_ms"] = "iso",
        order: Literal["series", "time"] = "series",
        page_counts: Literal["points", "envelopes"] = "points",
        envelope_points: int = 60,
        end_inclusive: bool = False,
        invalid_client_status: int = 401,
        unavailable_status: int = 503,
        error_body: Literal["oauth", "problem"] = "oauth",
        extra_members: bool = False,
        integer_ids: bool = False,
        omit_nulls: bool = False,
        omit_last_cursor: bool = False,
        spaced: bool = False,
    ) -> Self: ...
    @property
    def base_url(self) -> str: ...
    @property
    def clock(self) -> Clock: ...
    def client(self, **options: Unpack[_ClientOptions]) -> Client: ...
    def async_client(self, **options: Unpack[_ClientOptions]) -> AsyncClient: ...
    def env(self) -> dict[str, str]: ...
    @property
    def ca(self) -> bytes: ...
    def certificate(
        self,
        name: str = "plant",
        *,
        lifetime: _Duration = "30d",
        begins: _Instant | None = None,
        client_auth: bool = True,
        trusted: bool = True,
        registered: bool = True,
        chain: bool = False,
    ) -> bytes: ...
    def unregister(self, name: str) -> None: ...
    def enroll(self, public_jwk: _Jwk | str, scopes: Sequence[str] | None = None) -> str: ...
    def approve(self, subject: str) -> None: ...
    def revoke(self, subject: str) -> None: ...
    def replace_key(self, subject: str, public_jwk: _Jwk | str) -> None: ...
    def load(
        self,
        frame: pd.DataFrame | _ArrowStream,
        *,
        bucket: _Duration | None = None,
        site: str | None = "S1",
        line: str | None = "L1",
        machine: str | None = "M1",
        device: str | None = "D1",
        tag: str | None = "T1",
    ) -> int: ...
    def revise(
        self,
        timestamp: _Instant,
        value: float | None,
        *,
        minimum: float | None = None,
        maximum: float | None = None,
        sample_count: int | None = None,
        at: _Instant | None = None,
        site: str | None = "S1",
        line: str | None = "L1",
        machine: str | None = "M1",
        device: str | None = "D1",
        tag: str | None = "T1",
    ) -> None: ...
    def withdraw(
        self,
        timestamp: _Instant,
        *,
        at: _Instant | None = None,
        site: str | None = "S1",
        line: str | None = "L1",
        machine: str | None = "M1",
        device: str | None = "D1",
        tag: str | None = "T1",
    ) -> None: ...
    def truth(
        self,
        *,
        site: str | None = None,
        line: str | None = None,
        start: _Instant | None = None,
        end: _Instant | None = None,
        interval: _Duration | None = None,
        filters: Mapping[str, _Filter] | None = None,
        at: _Instant | None = None,
    ) -> Table: ...
    @property
    def stats(self) -> SandboxStats: ...
    @property
    def wire(self) -> list[str]: ...
    def fault(
        self,
        *,
        on: Literal["token", "discovery", "data"],
        nth: int | None = None,
        every: int | None = None,
        times: int | None = None,
        skip: int = 0,
        chance: float | None = None,
        seed: int = 0,
        status: int | None = None,
        error: str | None = None,
        body: str | bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
        retry_after: int | str | None = None,
        unavailable: bool = False,
        members: Mapping[str, Any] | None = None,
        drop: Sequence[str] | None = None,
        delay: _Duration | None = None,
        cut: int | None = None,
        stall: int | None = None,
        hang: bool = False,
        reset: bool = False,
        raw: str | bytes | None = None,
        repeat_cursor: bool = False,
        cycle_cursors: int | None = None,
        empty_page: bool = False,
        forget_cursors: bool = False,
        forget_tokens: bool = False,
        grant: Sequence[str] | None = None,
    ) -> None: ...
    def clear_faults(self) -> None: ...
    def forget_tokens(self) -> None: ...
    def forget_cursors(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
