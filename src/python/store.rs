//! `siteline.Store`: one file that holds feeds.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyString, PyTuple};

use crate::error::{Kind, Result};
use crate::python::conversions::{html_sync, instant, path_of, refuse};
use crate::python::coverage::{Covered, Late, state};
use crate::python::errors::raise;
use crate::python::feed::{PyFeed, feed_name};
use crate::python::page::PyPage;
use crate::python::points::PyPoints;
use crate::python::runtime::{guarded, step};
use crate::python::selected::{Selected, flagged_named};
use crate::store::{Delivery, Store, Target as _, View};
use crate::sync::State;

const AT: &str = "a siteline.SyncReport or a sequence number";

/// A store: one file that holds every version of every point of some feeds, and how far each has
/// been read.
///
/// - ``path``: the file; made where there is none. It must lie on a local disk
///
/// :meth:`Client.sync` writes to it: each page with its bookmark and checkpoint in one transaction,
/// so it can be killed at any moment (§4.5.2). Any number of threads and processes may read meanwhile,
/// each a snapshot; one writes a feed at a time, and a second gets :class:`StoreBusy` at once. A
/// forked child goes on with it. It is pickled as its path; copies are the store itself.
///
/// ``feed`` is a :class:`Feed` or its name everywhere. Raises :class:`StoreError` naming the path
/// where it is no store, lies on a network filesystem or was made by a newer siteline,
/// :class:`StoreCorrupt` where what is stored is not what was written, :class:`StoreFull`.
///
/// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
/// ...                      since="2026-11-15T00:00Z")
/// >>> with siteline.Store("plant.siteline") as store:
/// ...     report = client.sync(feed, store)
/// ...     frame = store.points("line-2").to_pandas()
/// >>> list(frame.columns)[5:7], report.complete
/// (['timestamp', 'value'], True)
#[pyclass(frozen, name = "Store", module = "siteline")]
pub(crate) struct PyStore(pub(crate) Arc<Store>);

impl PyStore {
    fn work<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Store) -> Result<T> + Send,
    ) -> PyResult<T> {
        let store = &self.0;
        guarded(|| step(py, || work(store))?.map_err(|error| raise(py, &error)))
    }

    /// A sequence number that the feed has reached, from a number or a report.
    fn sequence(&self, feed: &str, given: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<u64>> {
        let py = given.py();
        let number = given.is_instance_of::<PyInt>() && !given.is_instance_of::<PyBool>();
        let sequence: u64 = if number {
            given.extract().map_err(|_| {
                refuse(py, Kind::Query, format!("{name}= is not a sequence number: 0 or more."))
            })?
        } else if given.hasattr("_sequence_of")? {
            given.call_method1("_sequence_of", (feed,))?.extract()?
        } else {
            return Ok(None);
        };
        let reached = self.work(py, |store| {
            state(store, feed)?;
            store.sequence(feed)
        })?;
        if sequence > reached {
            let message = format!(
                "{name}={sequence} lies ahead: the feed {feed:?} of this store has reached {reached}."
            );
            return Err(refuse(py, Kind::Query, message));
        }
        Ok(Some(sequence))
    }
}

#[pymethods]
impl PyStore {
    #[new]
    fn new(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Self> {
        let path = path_of(path, "path")?;
        let open = || Store::open(&std::path::absolute(&path).unwrap_or(path));
        let store = guarded(|| step(py, open)?.map_err(|error| raise(py, &error)))?;
        Ok(Self(Arc::new(store)))
    }

    /// The file, a ``pathlib.Path``.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path().to_path_buf()
    }

    /// The feeds that it holds, as it knows them: name to :class:`Feed`, sorted by name.
    #[getter]
    fn feeds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let feeds = self.work(py, |store| {
            let names = store.feeds()?;
            names
                .into_iter()
                .map(|name| Ok((state(store, &name)?, name)))
                .collect::<Result<Vec<_>>>()
        })?;
        let dict = PyDict::new(py);
        for (state, name) in feeds {
            dict.set_item(name, PyFeed(state.feed().clone()))?;
        }
        Ok(dict)
    }

    /// The points of a feed as they are known now: :class:`Points`, read when they are asked for.
    ///
    /// - ``start``, ``end``: bucket timestamps, half-open; either may be left out
    /// - ``settled_only``: only what is settled: read to its end, by a read that began after the
    ///   lateness (§4.5.5)
    /// - ``flagged``: points that a later complete read of their range did not bring: ``"keep"`` them
    ///   as all others, ``"drop"`` them, or ``"only"`` them
    #[pyo3(signature = (feed, start=None, end=None, *, settled_only=false, flagged="keep"),
        text_signature = "($self, feed, start=None, end=None, *, settled_only=False, \
        flagged='keep')")]
    fn points(
        slf: &Bound<'_, Self>,
        feed: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        settled_only: bool,
        flagged: &str,
    ) -> PyResult<PyPoints> {
        let flagged = flagged_named(slf.py(), flagged)?;
        let selected = selected(feed_name(feed)?, (start, end), slf, View::Latest)?;
        let selected = Selected { settled_only, flagged, ..selected };
        Ok(PyPoints { store: slf.clone().unbind(), selected })
    }

    /// What is new or revised since a sync: :class:`Points` with a column ``change``.
    ///
    /// - ``since``: the :class:`SyncReport` of that sync, or a sequence number (``report.feeds[…]
    ///   .sequence``; 0 for everything). By sequence, not by time: nothing is missed or given twice,
    ///   a value that went and came back (A, B, A) included
    ///
    /// Each point once, as it is now. A :class:`QueryError` where the report is not of that feed or
    /// lies ahead.
    ///
    /// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    /// ...                      since="2026-11-15T00:00Z")
    /// >>> store = siteline.Store("plant.siteline")
    /// >>> first = client.sync(feed, store)
    /// >>> sandbox.clock.advance("6h")
    /// >>> second = client.sync(feed, store)
    /// >>> set(store.changes("line-2", since=first).to_pandas()["change"]) <= {"new", "revised"}
    /// True
    #[pyo3(signature = (feed, since, start=None, end=None),
        text_signature = "($self, feed, since, start=None, end=None)")]
    fn changes(
        slf: &Bound<'_, Self>,
        feed: &Bound<'_, PyAny>,
        since: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyPoints> {
        let feed = feed_name(feed)?;
        let Some(since) = slf.get().sequence(&feed, since, "since")? else {
            return Err(refuse(slf.py(), Kind::Query, format!("since= is {AT}.")));
        };
        let selected = selected(feed, (start, end), slf, View::ChangedSince(since))?;
        Ok(PyPoints { store: slf.clone().unbind(), selected })
    }

    /// The points as they were known at a sync, or at a time: :class:`Points`, the same for ever.
    ///
    /// - ``at``: a :class:`SyncReport`, a sequence number, or a time (the service's, at which pages
    ///   were read)
    ///
    /// A training set is made again from its report, whatever has been revised since.
    #[pyo3(signature = (feed, at, start=None, end=None, *, flagged="keep"),
        text_signature = "($self, feed, at, start=None, end=None, *, flagged='keep')")]
    fn as_of(
        slf: &Bound<'_, Self>,
        feed: &Bound<'_, PyAny>,
        at: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        flagged: &str,
    ) -> PyResult<PyPoints> {
        let (py, name) = (slf.py(), feed_name(feed)?);
        let sequence = match slf.get().sequence(&name, at, "at")? {
            Some(sequence) => sequence,
            None if at.is_instance_of::<PyString>() || at.hasattr("utcoffset")? => {
                let at = instant(at, "at")?;
                slf.get().work(py, |store| {
                    state(store, &name)?;
                    store.sequence_at(&name, at)
                })?
            }
            None => {
                return Err(refuse(
                    py,
                    Kind::Query,
                    format!("at= is {AT}, or a time with a zone."),
                ));
            }
        };
        let flagged = flagged_named(py, flagged)?;
        let selected = selected(name, (start, end), slf, View::AsOf(sequence))?;
        let selected = Selected { flagged, ..selected };
        Ok(PyPoints { store: slf.clone().unbind(), selected })
    }

    /// Which windows were never read, may still change, wait to be read for their final values, or
    /// are settled: :class:`Coverage`.
    ///
    /// - ``now``: at which time; this machine's by default, or the newest reading where that is later
    #[pyo3(signature = (feed, now=None), text_signature = "($self, feed, now=None)")]
    fn coverage<'py>(
        &self,
        feed: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = feed.py();
        let name = feed_name(feed)?;
        let now = now.map(|now| instant(now, "now")).transpose()?;
        self.work(py, |store| Covered::read(store, &name, now))?.object(py)
    }

    /// How late points and revisions came, and which lateness that suggests: :class:`Lateness`.
    fn lateness<'py>(&self, feed: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = feed.py();
        let name = feed_name(feed)?;
        self.work(py, |store| Late::read(store, &name))?.object(py)
    }

    /// Keep a feed under another definition from now on: other times, page size or window.
    ///
    /// What is asked may not change: a :class:`FeedChanged` names it. Chains that were begun and not
    /// ended are given up, and their ranges read anew. :class:`StoreBusy` while a sync runs.
    fn redefine(&self, feed: &Bound<'_, PyFeed>) -> PyResult<()> {
        let new = &feed.get().0;
        self.work(feed.py(), |store| {
            let name = &new.input().name;
            state(store, name)?;
            let _held = store.lock(name)?;
            // Read again: it may have been written since.
            let redefined = state(store, name)?.redefine(new)?;
            store.apply(name, None, &redefined.to_bytes()).map(drop)
        })
    }

    /// The state that was applied last for a feed: a store is a :class:`StoreTarget` itself.
    ///
    /// Opaque, and as secret as a bookmark. ``None`` for a feed that is not there.
    #[pyo3(name = "state")]
    fn known_state<'py>(
        &self,
        py: Python<'py>,
        feed: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let name = feed_name(feed)?;
        let state = self.work(py, |store| store.state(&name))?;
        Ok(state.map(|state| PyBytes::new(py, &state)))
    }

    /// Put a page in that :meth:`Client.sync` gave to a :class:`StoreTarget`, and its state, in one
    /// transaction: for a target that keeps a store beside its own. Gives (inserted, revised,
    /// unchanged).
    ///
    /// A :class:`QueryError` for a page of a scan: nobody knows which range its chain has read.
    fn apply(
        &self,
        py: Python<'_>,
        feed: &Bound<'_, PyAny>,
        page: Option<&Bound<'_, PyPage>>,
        state: &[u8],
    ) -> PyResult<(u64, u64, u64)> {
        let name = feed_name(feed)?;
        let delivery = page.map(|page| delivery(py, page.get())).transpose()?;
        let applied = self.work(py, |store| store.apply(&name, delivery.as_ref(), state))?;
        Ok((applied.inserted, applied.revised, applied.unchanged))
    }

    /// Copy the store to another path, while it is in use. A :class:`StoreError` where something is
    /// there already.
    fn backup(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let path = path_of(path, "path")?;
        self.work(py, |store| store.backup(&std::path::absolute(&path).unwrap_or(path)))
    }

    /// Read everything and hold it against its checksums: :class:`StoreCorrupt` where it differs.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.work(py, Store::check)
    }

    /// Close its connections: later calls raise :class:`ClosedError`. Twice is fine.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.work(py, |store| {
            store.close();
            Ok(())
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    /// What ``pickle`` makes points again with.
    fn _points(
        slf: &Bound<'_, Self>,
        feed: String,
        start: Option<i64>,
        end: Option<i64>,
        settled_only: bool,
        flagged: &str,
        view: &Bound<'_, PyTuple>,
    ) -> PyResult<PyPoints> {
        let (view, sequence): (String, u64) = view.extract()?;
        let view = match view.as_str() {
            "latest" => View::Latest,
            "as_of" => View::AsOf(sequence),
            _ => View::ChangedSince(sequence),
        };
        let flagged = flagged_named(slf.py(), flagged)?;
        let selected = Selected { feed, start, end, settled_only, flagged, view };
        Ok(PyPoints { store: slf.clone().unbind(), selected })
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let path = slf.get().path().into_os_string();
        Ok((slf.get_type().into_any(), (path,).into_pyobject(slf.py())?))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!("<Store {}>", self.0.path().display())
    }

    /// What notebooks show.
    #[pyo3(name = "_repr_html_")]
    fn repr_html<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html_sync(slf.as_any(), "store")
    }

    /// What :mod:`siteline.html_sync` shows of each feed: it, how far it is settled and read, and its
    /// sequence number.
    fn _overview<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let feeds = self.work(py, |store| {
            let names = store.feeds()?;
            let of = |name: String| Ok((state(store, &name)?, store.sequence(&name)?));
            names.into_iter().map(of).collect::<Result<Vec<_>>>()
        })?;
        feeds.iter().map(|(state, sequence)| overview(py, state, *sequence)).collect()
    }
}

fn overview<'py>(py: Python<'py>, state: &State, sequence: u64) -> PyResult<Bound<'py, PyTuple>> {
    let at = |at: Option<jiff::Timestamp>| {
        at.map(|at| crate::python::conversions::datetime(py, at)).transpose()
    };
    let settled = at(state.settled_through())?;
    (PyFeed(state.feed().clone()), settled, at(state.read_through())?, sequence).into_pyobject(py)
}

fn selected(
    feed: String,
    (start, end): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    store: &Bound<'_, PyStore>,
    view: View,
) -> PyResult<Selected> {
    let start = start.map(|start| instant(start, "start")).transpose()?;
    let end = end.map(|end| instant(end, "end")).transpose()?;
    Selected::new(store.py(), feed, (start, end), view)
}

/// A page as a target is given it.
fn delivery<'a>(py: Python<'_>, page: &'a PyPage) -> PyResult<Delivery<'a>> {
    let PyPage { page, provenance, chain } = page;
    let Some(chain) = *chain else {
        let message = "page= is of a scan: give one that client.sync() gave to a store of yours.";
        return Err(refuse(py, Kind::Query, message));
    };
    let interval_seconds = provenance.query.interval_seconds();
    Ok(Delivery { page, read_at: provenance.read_at, chain, interval_seconds })
}
