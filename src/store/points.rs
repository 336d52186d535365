//! `siteline.Points`: points of a store, read when they are asked for.

use std::sync::Arc;

use arrow_array::RecordBatch;
use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyString, PyTuple};

use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::{raise, warn};
use crate::bridge::process::{detached, guarded};
use crate::bridge::runtime::step;
use crate::convert::asked_time::{asked_range, clock_of, instant_on};
use crate::convert::capsule::{reader_capsule, schema_capsule};
use crate::convert::completeness::PyCompleteness;
use crate::convert::frames::{FrameArgs, call_frames, is_explicit};
use crate::convert::holder::frame_methods;
use crate::convert::ipc::IpcStream;
use crate::convert::labels::ids_of_points;
use crate::convert::patching::methods_can_be_replaced;
use crate::convert::plots::{PlotArgs, PlotGrid, call_plot, plot_method};
use crate::convert::rebucketed::{PyRebucketed, RebucketArgs};
use crate::convert::rows::RecordIterator;
use crate::convert::state::{Reduced, dict, restore};
use crate::convert::values::{html_sync, refuse};
use crate::convert::wide::PyWide;
use crate::store::PyStore;
use crate::store::feed::feed_name;
use crate::store::scan::PyBatches;
use crate::store::series::{SeriesArgs, series_filter};
use crate::store::snapshot::{BatchStream, PySnapshot, StoredPoints, next_batch};
use siteline_core::data::PointColumns;
use siteline_core::data::reshape::Measure;
use siteline_core::error::{Error, Kind};
use siteline_core::preview::Preview;
use siteline_core::store::{Choice as _, Flagged, View};
use siteline_core::sync::{ReadSpec, Snapshot, Unread, fixed_range, read_state};

const AT: &str = "a SyncReport or a sequence number";
/// Notebooks draw at most this many points: the first ones.
const SHOWN: usize = 1 << 17;

/// Points of a store: a recipe, which is read anew each time that its points are needed.
///
/// The columns are those of :class:`Table`; those of :meth:`Store.changes` have one more, ``change``:
/// ``"new"``, ``"revised"``, ``"absent"`` (flagged since) or ``"returned"`` (no longer flagged). Rows
/// are sorted by series, then time; each point once, with the values of the latest page request that
/// brought it (§4.5.3).
///
/// It is an Arrow stream that reads while it is consumed (``pl.DataFrame(points)``,
/// ``duckdb.sql("from points")``, ``pyarrow.RecordBatchReader.from_stream(points)``); each consumer
/// reads a snapshot of its own, which no sync in another process changes. ``len()`` reads the blocks
/// alone that it cannot count by the store's directory. ``frame.attrs["siteline"]`` says what was
/// read: ``store``, ``feed``, ``query``, ``sequence`` (give it to :meth:`Store.as_of` for the same
/// points again), ``start``, ``end``, ``machine``, ``device``, ``tag``, ``series`` (``None`` for all,
/// else lists), ``settled_only``, ``flagged``, ``unread``, ``coverage`` (a dict: what
/// of the range has been read from the service), and ``since`` for changes. The schema of the Arrow
/// stream has the coverage as JSON, under ``siteline.coverage``.
///
/// Raises :class:`UnreadRange` where a named range is not wholly read (see :meth:`Store.points`),
/// :class:`StoreError` where the store has no such feed or cannot be read,
/// :class:`StoreCorrupt` where it is damaged. A consumer that raises its own exception instead
/// (DuckDB) says the same in its text.
///
/// >>> store = siteline.Store("plant.siteline")
/// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
/// ...                      since="2026-11-15T00:00Z")
/// >>> report = client.sync(feed, store)
/// >>> points = store.points("line-2", "2026-11-16T00:00Z", "2026-11-17T00:00Z")
/// >>> len(points) == len(points.to_pandas()) > 0
/// True
#[pyclass(dict, frozen, weakref, name = "Points", module = "siteline")]
pub(crate) struct PyPoints {
    store: Py<PyStore>,
    spec: ReadSpec,
}

impl PyPoints {
    /// Opens a snapshot, and warns of what is missing from it.
    fn open(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let store = &*self.store.get().0;
        let snapshot = step(py, || self.spec.open(store))?.or_raise()?;
        warn(py, snapshot.warning.as_slice())?;
        Ok(snapshot)
    }

    /// A new snapshot, for one frame.
    fn snapshot(&self, py: Python<'_>) -> PyResult<PySnapshot> {
        PySnapshot::new(py, self.open(py)?, &self.spec, self.store.get().0.path())
    }

    fn batches(&self, py: Python<'_>) -> PyResult<BatchStream> {
        Ok(BatchStream::new(self.open(py)?))
    }

    /// A frame of a new snapshot. Where the consumer of its stream fails because the read failed, the
    /// error of the read is raised instead of the consumer's.
    fn frame<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        ids: Option<&str>,
        args: FrameArgs<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let snapshot = Bound::new(py, slf.get().snapshot(py)?)?;
        call_frames(snapshot.as_any(), name, ids, args).map_err(|error| {
            let failure = snapshot.get().failure.get();
            failure.map_or(error, |failure| raise(py, failure))
        })
    }

    /// A picture of a new snapshot.
    fn draw<'py>(slf: &Bound<'py, Self>, args: &PlotArgs<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, spec) = (slf.py(), &slf.get().spec);
        guarded(|| {
            if matches!(spec.view, View::ChangedSince(_)) {
                let message =
                    "changes are a part of the points: a picture would show gaps that are none.";
                let error = Error::new(Kind::QueryError, message);
                return Err(error
                    .with_hint("Plot store.points(...) of their range.")
                    .into_py_err());
            }
            let [start, end] = [spec.start, spec.end].map(|at| at.map(Timestamp::as_microsecond));
            let snapshot = Bound::new(py, slf.get().snapshot(py)?)?;
            let seconds = snapshot.get().interval_seconds;
            let interval = seconds.map(|seconds| i64::from(seconds) * 1_000_000);
            call_plot(snapshot.as_any(), PlotGrid { start, end, interval, zone: None }, args)
        })
    }
}

frame_methods!(PyPoints, PyPoints::frame);
plot_method!(PyPoints, PyPoints::draw);

methods_can_be_replaced!(PyPoints);

#[pymethods]
impl PyPoints {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let mut batches = self.batches(py)?;
        step(py, || batches.count_points())?.or_raise()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let store = &*self.store.get().0;
        let coverage = step(py, || self.spec.coverage(store));
        let read =
            coverage.and_then(|coverage| coverage.map(|read| format!("; {read}")).or_raise());
        format!("<Points {}{}>", self.spec, read.unwrap_or_default())
    }

    /// The points with a column for each series and a row for each bucket: :class:`Wide`, which is read
    /// now; see :meth:`Table.wide`.
    ///
    /// - ``value``: what the cells hold: ``"value"``, ``"minimum"``, ``"maximum"`` or ``"sample_count"``
    /// - ``labels``: names of the columns, as of :meth:`Table.wide`; a store has no discovery response for
    ///   ``True``: give ``client.series()``
    /// - ``gaps``: with ``"explicit"`` there is a row for each bucket of what was read
    #[pyo3(signature = (value="value", *, labels=None, gaps=None),
        text_signature = "($self, value='value', *, labels=None, gaps=None)")]
    fn wide(
        &self,
        py: Python<'_>,
        value: &str,
        labels: Option<&Bound<'_, PyAny>>,
        gaps: Option<&str>,
    ) -> PyResult<PyWide> {
        guarded(|| {
            Measure::parse(value).or_raise()?;
            let (gaps, snapshot) = (is_explicit(gaps).or_raise()?, self.snapshot(py)?);
            let points = if gaps { snapshot.filled(py)? } else { snapshot.points(py)? };
            PyWide::new(py, &points, value, "UTC", snapshot.provenance(py))?.labelled(labels, None)
        })
    }

    /// The points in larger buckets, such as local days: :class:`Rebucketed`, which is read now; see
    /// :meth:`Table.rebucket`. A :class:`QueryError` for the points of :meth:`Store.changes`.
    #[pyo3(signature = (interval, *, value=None, tz=None, origin=None),
        text_signature = "($self, interval, *, value=None, tz='UTC', origin=None)")]
    fn rebucket(
        &self,
        py: Python<'_>,
        interval: &Bound<'_, PyAny>,
        value: Option<&str>,
        tz: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyRebucketed> {
        guarded(|| {
            if matches!(self.spec.view, View::ChangedSince(_)) {
                let message = "changes are a part of the points: a larger bucket of them is wrong.";
                let error = Error::new(Kind::QueryError, message);
                return Err(error
                    .with_hint("Rebucket store.points(...) of their range.")
                    .into_py_err());
            }
            let args = RebucketArgs::new(interval, "interval", value, (tz, origin))?;
            let snapshot = self.snapshot(py)?;
            let own = snapshot.interval_seconds;
            let provenance = snapshot.provenance(py);
            PyRebucketed::new(py, &snapshot.points(py)?, own, args, provenance, None)
        })
    }

    /// How much of what was asked for is there, by series and period: :class:`Completeness`, which is read
    /// now; see :meth:`Table.completeness`.
    ///
    /// - ``by``: the length of a period: ``"1d"``, ``"8h"``, a ``timedelta``, seconds
    /// - ``tz``, ``origin``: the clock that periods keep to, and where they begin: as of :meth:`rebucket`
    ///
    /// What was never read to the end of a chain is ``unread``, not ``missing`` (with ``unread="warn"`` or
    /// ``"keep"``; where a part of a named range is, ``"error"`` is an :class:`UnreadRange` here too).
    ///
    /// >>> store = siteline.Store("plant.siteline")
    /// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    /// ...                      since="2026-11-15T00:00Z")
    /// >>> report = client.sync(feed, store)
    /// >>> store.points("line-2", "2026-11-14", "2026-11-16", unread="keep").completeness()
    /// <Completeness 6 series, 1d in UTC, 50.0 % there, 0 missing, 144 unread>
    #[pyo3(signature = (by=None, *, tz=None, origin=None),
        text_signature = "($self, by='1d', *, tz='UTC', origin=None)")]
    fn completeness(
        &self,
        py: Python<'_>,
        by: Option<&Bound<'_, PyAny>>,
        tz: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyCompleteness> {
        guarded(|| {
            let args = RebucketArgs::by(py, by, tz, origin)?;
            let snapshot = self.snapshot(py)?;
            let (expected, points) = (snapshot.expected().or_raise()?, snapshot.points(py)?);
            PyCompleteness::new(py, &points, &expected, args, snapshot.provenance(py), None)
        })
    }

    /// The series that have points, for :class:`Catalogue`: reads them all.
    fn _series_ids<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        guarded(|| ids_of_points(py, &self.snapshot(py)?.points(py)?))
    }

    /// What notebooks show: the first points.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html_sync(slf.as_any(), "points")
    }

    /// What ``siteline._display.sync_html`` shows: what is asked, the preview of the first points,
    /// these one by one, how many they are, whether there are more, what has been read, and whether that is all.
    fn _preview<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let store = &*self.store.get().0;
        let snapshot = step(py, || self.spec.without_error().open(store))?.or_raise()?;
        let (read, wholly) = (snapshot.coverage.to_string(), snapshot.coverage.complete);
        let (range, width) = (self.spec.bounds(), snapshot.feed.input().interval_seconds);
        let mut batches = BatchStream::new(snapshot);
        let first = next_batch(py, &mut batches, SHOWN)?;
        let more = first.is_some() && next_batch(py, &mut batches, 1)?.is_some();
        let first = first.unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(&batches.schema)));
        let rows = first.num_rows();
        let (first, drawn) = detached(py, || {
            let first = Arc::new(PointColumns::from_batch(&first));
            let drawn = Preview::from_points(&first, range, width);
            (first, drawn)
        })?;
        let records = RecordIterator::over(first, false);
        let spec = self.spec.to_string();
        (spec, dict(py, &drawn)?, records, rows, more, read, wholly).into_pyobject(py)
    }

    /// The points one by one, as plain dicts, or as :class:`Record` tuples with ``named=True``, which
    /// have the ten columns alone: ``change`` is in the dicts.
    #[pyo3(signature = (*, named=false))]
    fn records(&self, py: Python<'_>, named: bool) -> PyResult<RecordIterator> {
        Ok(RecordIterator::reading(Box::new(StoredPoints::new(self.batches(py)?)), named))
    }

    /// The Arrow PyCapsule interface: each call begins to read anew, batch after batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        reader_capsule(py, Box::new(self.batches(py)?))
    }

    /// The Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.spec.view.schema())
    }

    /// An iterator of ``bytes``, which joined are one Arrow IPC stream; it reads while it is consumed.
    fn _ipc(&self, py: Python<'_>) -> PyResult<IpcStream> {
        let mut batches = self.batches(py)?;
        let schema = Arc::clone(&batches.schema);
        IpcStream::new(&schema, Box::new(move |rows| batches.next_batch(rows))).or_raise()
    }

    /// A snapshot for ``siteline._lazy``.
    fn _batches(&self, py: Python<'_>) -> PyResult<PyBatches> {
        Ok(PyBatches::new(self.batches(py)?))
    }

    /// The recipe is pickled, with the path of the store.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        Ok((self.store.bind(py).getattr("_points")?, (dict(py, &self.spec)?,)))
    }
}

fn points(
    store: &Bound<'_, PyStore>,
    feed: String,
    [start, end, tz]: [Option<&Bound<'_, PyAny>>; 3],
    series: SeriesArgs<'_, '_>,
    view: View,
    (flagged, unread): (&str, &str),
) -> PyResult<PyPoints> {
    let asked = asked_range(start, end, tz)?;
    let (flagged, unread) =
        (Flagged::parse(flagged).or_raise()?, Unread::parse(unread).or_raise()?);
    let series = series_filter(series)?;
    let range = store.get().work(store.py(), |store| fixed_range(store, &feed, asked, view))?;
    let spec = ReadSpec { flagged, unread, series, ..ReadSpec::new(feed, range, view).or_raise()? };
    Ok(PyPoints { store: store.clone().unbind(), spec })
}

#[pymethods]
impl PyStore {
    /// The points of a feed as they are known now: :class:`Points`, read when they are asked for.
    ///
    /// - ``start``, ``end``: bucket timestamps, half-open: a bucket belongs to the range in which it begins.
    ///   ``"-7d"`` counts from the newest instant that was read of the feed, because a store knows no other
    ///   clock, is rounded down to a bucket, and is fixed by this call
    /// - ``tz``: the zone on whose clock dates and times without an offset are meant, as of
    ///   :meth:`Client.scan`; ``None`` is UTC, for dates alone
    /// - ``machine``, ``device``, ``tag``: only series with this id, or with one of these: a text or a list
    ///   of texts
    /// - ``series``: only this series, or these: tuples of the five ids in the order of the columns, ``None``
    ///   where a series has none, as ``frame[columns].itertuples(index=False)`` gives them
    /// - ``settled_only``: only what is settled: read to its end, by a read that began after the
    ///   lateness (§4.5.5)
    /// - ``flagged``: points that a later complete read of their range did not bring: ``"keep"`` them
    ///   as all others, ``"drop"`` them, or ``"only"`` them
    /// - ``unread``: what to do where a part of the range was never read to the end of a chain:
    ///   ``"error"``, ``"warn"`` (leave such parts out) or ``"keep"`` (the points of them that have
    ///   arrived, perhaps a few of the series)
    ///
    /// What is picked by ids costs what these series have, not what all have. An id that no series of the
    /// feed has is a :class:`QueryError` when the points are read: it may be misspelt, and a frame
    /// without points would hide that. Ids that no series has together give no points.
    ///
    /// By default a range that was named, and is not wholly read up to the newest instant that was read,
    /// is an :class:`UnreadRange`, raised when the points are read; one that goes on past that instant
    /// ends there, with a :class:`SitelineWarning`. Where no range is named, unread parts are left out,
    /// with a warning. The frame's ``attrs``, the Arrow schema's metadata and ``repr()`` say what was read.
    ///
    /// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    /// ...                      since="2026-11-15T00:00Z")
    /// >>> store = siteline.Store("plant.siteline")
    /// >>> report = client.sync(feed, store)
    /// >>> store.points("line-2", "2026-11-14T00:00Z", "2026-11-16T00:00Z").to_pandas()
    /// Traceback (most recent call last):
    ///     ...
    /// siteline.errors.UnreadRange: feed "line-2": unread: 2026-11-14T00:00:00Z to 2026-11-15T00:00:00Z
    /// ...
    #[pyo3(signature = (feed, start=None, end=None, *, tz=None, machine=None, device=None, tag=None,
        series=None, settled_only=false, flagged="keep", unread="error"))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    fn points(
        slf: &Bound<'_, Self>,
        feed: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        tz: Option<&Bound<'_, PyAny>>,
        machine: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        tag: Option<&Bound<'_, PyAny>>,
        series: Option<&Bound<'_, PyAny>>,
        settled_only: bool,
        flagged: &str,
        unread: &str,
    ) -> PyResult<PyPoints> {
        let (options, series) = ((flagged, unread), [machine, device, tag, series]);
        let all = points(slf, feed_name(feed)?, [start, end, tz], series, View::Latest, options)?;
        Ok(PyPoints { spec: ReadSpec { settled_only, ..all.spec }, ..all })
    }

    /// What is new or revised since a sync: :class:`Points` with a column ``change``.
    ///
    /// - ``since``: the :class:`SyncReport` of that sync, or a sequence number (``report.feeds[…]
    ///   .sequence``; 0 for everything). By sequence, not by time: nothing is missed or given twice,
    ///   a value that went and came back (A, B, A) included
    ///
    /// Each point comes once, with its present values. A :class:`QueryError` where the report is of
    /// another feed, or of pages that the store has not.
    ///
    /// ``start``, ``end``, ``tz``, ``machine``, ``device``, ``tag``, ``series`` are those of :meth:`points`, and
    /// so is ``unread``, but no points are left out: those of a chain that has not ended are given too, with a warning,
    /// because the next changes begin after them.
    ///
    /// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    /// ...                      since="2026-11-15T00:00Z")
    /// >>> store = siteline.Store("plant.siteline")
    /// >>> first = client.sync(feed, store)
    /// >>> sandbox.clock.advance("6h")
    /// >>> second = client.sync(feed, store)
    /// >>> set(store.changes("line-2", since=first).to_pandas()["change"]) <= {"new", "revised"}
    /// True
    #[pyo3(signature = (feed, since, start=None, end=None, *, tz=None, machine=None, device=None, tag=None,
        series=None, unread="error"))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    fn changes(
        slf: &Bound<'_, Self>,
        feed: &Bound<'_, PyAny>,
        since: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        tz: Option<&Bound<'_, PyAny>>,
        machine: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        tag: Option<&Bound<'_, PyAny>>,
        series: Option<&Bound<'_, PyAny>>,
        unread: &str,
    ) -> PyResult<PyPoints> {
        let feed = feed_name(feed)?;
        let Some(since) = slf.get().sequence(&feed, since, "since")? else {
            return Err(refuse(slf.py(), Kind::QueryError, format!("since= is {AT}.")));
        };
        let (options, series) = (("keep", unread), [machine, device, tag, series]);
        points(slf, feed, [start, end, tz], series, View::ChangedSince(since), options)
    }

    /// The points as they were known at a sync, or at a time: :class:`Points` that never change.
    ///
    /// - ``at``: a :class:`SyncReport`, a sequence number, or a time (the service's, at which pages
    ///   were read)
    /// - ``start``, ``end``, ``tz`` (which holds for ``at`` too), ``machine``, ``device``, ``tag``, ``series``, ``flagged``, ``unread``: as of :meth:`points`; what had
    ///   been read by then counts
    ///
    /// So a training set can be made again from its report, whatever has been revised since.
    #[pyo3(signature = (feed, at, start=None, end=None, *, tz=None, machine=None, device=None, tag=None,
        series=None, flagged="keep", unread="error"))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    fn as_of(
        slf: &Bound<'_, Self>,
        feed: &Bound<'_, PyAny>,
        at: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        tz: Option<&Bound<'_, PyAny>>,
        machine: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        tag: Option<&Bound<'_, PyAny>>,
        series: Option<&Bound<'_, PyAny>>,
        flagged: &str,
        unread: &str,
    ) -> PyResult<PyPoints> {
        let (py, name) = (slf.py(), feed_name(feed)?);
        let sequence = match slf.get().sequence(&name, at, "at")? {
            Some(sequence) => sequence,
            None if at.is_instance_of::<PyString>() || at.hasattr("isoformat")? => {
                let at = instant_on(at, "at", clock_of(tz)?.as_ref())?;
                slf.get().work(py, |store| {
                    read_state(store, &name)?;
                    store.sequence_at(&name, at)
                })?
            }
            None => {
                let message = format!("at= is {AT}, or a time: aware, or a date.");
                return Err(refuse(py, Kind::QueryError, message));
            }
        };
        let (options, series) = ((flagged, unread), [machine, device, tag, series]);
        points(slf, name, [start, end, tz], series, View::AsOf(sequence), options)
    }

    /// Makes points from their pickled state.
    fn _points(slf: &Bound<'_, Self>, state: &Bound<'_, PyAny>) -> PyResult<PyPoints> {
        Ok(PyPoints { store: slf.clone().unbind(), spec: restore(state)? })
    }
}
