//! `siteline.Store`: one file that holds feeds.

pub(crate) mod feed;
pub(crate) mod maintenance;
mod read;
mod series;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{PathBuf, absolute};
use std::sync::Arc;

use jiff::Timestamp;
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use crate::bridge::errors::OrRaise as _;
use crate::bridge::modules::import_for_stores;
use crate::bridge::process::guarded;
use crate::bridge::runtime::step;
use crate::convert::patching::methods_can_be_replaced;
use crate::convert::state::{copies_are_itself, record};
use crate::convert::values::{html_sync, instant, optional, path_of, refuse};
use crate::frame::{Frame, PageSource, Synced, frame_of};
use crate::store::feed::{PyFeed, feed_name};
use siteline_core::error::{Kind, Result, escaped};
use siteline_core::store::{Delivery, Share, Store, StoreOptions, Target as _};
use siteline_core::sync::{
    FeedCoverage, FeedLateness, FeedState, read_state, read_states, redefine,
};

/// The base of `siteline.Store`, which is documented there.
#[pyclass(dict, frozen, subclass, weakref, name = "Store", module = "siteline._core")]
pub(crate) struct PyStore(pub(crate) Arc<Store>);

impl PyStore {
    pub(crate) fn work<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Store) -> Result<T> + Send,
    ) -> PyResult<T> {
        let store = &self.0;
        guarded(|| step(py, || work(store))?.or_raise())
    }

    /// A sequence number that the feed has reached, from a number or a report; `None` for other types.
    pub(crate) fn sequence(
        &self,
        feed: &str,
        given: &Bound<'_, PyAny>,
        name: &str,
    ) -> PyResult<Option<u64>> {
        let py = given.py();
        let number = given.is_instance_of::<PyInt>() && !given.is_instance_of::<PyBool>();
        let refused = |what: String| refuse(py, Kind::QueryError, format!("{name}={what}"));
        let sequence: u64 = if number {
            let refused = |_| refused(" is not a sequence number: 0 or more.".to_owned());
            given.extract().map_err(refused)?
        } else if given.hasattr("_sequence_of")? {
            given.call_method1("_sequence_of", (feed,))?.extract()?
        } else {
            return Ok(None);
        };
        let reached = self.work(py, |store| {
            read_state(store, feed)?;
            store.sequence(feed)
        })?;
        if sequence > reached {
            return Err(refused(format!(
                "{sequence} lies ahead: the feed {feed:?} of this store has reached {reached}."
            )));
        }
        Ok(Some(sequence))
    }
}

copies_are_itself!(PyStore);

methods_can_be_replaced!(PyStore);

#[pymethods]
impl PyStore {
    #[new]
    #[pyo3(signature = (path, *, read_only=false, share=None))]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        read_only: bool,
        share: Option<&str>,
    ) -> PyResult<Self> {
        import_for_stores(py)?;
        let path = path_of(path, "path")?;
        let share = share.map(Share::parse).transpose().or_raise()?;
        let options = StoreOptions { read_only, share };
        let open = || Store::open_with(&absolute(&path).unwrap_or(path), options);
        guarded(|| Ok(Self(Arc::new(step(py, open)?.or_raise()?))))
    }

    /// The file, a ``pathlib.Path``.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path().to_path_buf()
    }

    /// The feeds that it holds, as it knows them: name to :class:`Feed`, sorted by name.
    #[getter]
    fn feeds(&self, py: Python<'_>) -> PyResult<BTreeMap<String, PyFeed>> {
        let states = self.work(py, read_states)?.into_iter();
        Ok(states.map(|(name, state)| (name, PyFeed(state.feed().clone()))).collect())
    }

    /// Which windows were never read, may still change, wait to be read for their final values, or
    /// are settled: :class:`Coverage`.
    ///
    /// - ``now``: the time that it is for: this machine's by default, or that of a later read
    #[pyo3(signature = (feed, now=None))]
    fn coverage<'py>(
        &self,
        feed: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, name) = (feed.py(), feed_name(feed)?);
        let now = optional(now, "now", instant)?;
        coverage_object(py, &self.work(py, |store| FeedCoverage::read(store, &name, now))?)
    }

    /// The coverage that a state has, for ``Coverage.from_state``.
    #[staticmethod]
    fn _coverage_of<'py>(
        py: Python<'py>,
        state: &[u8],
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let now = optional(now, "now", instant)?;
        let coverage =
            guarded(|| Ok(FeedCoverage::of_state(&FeedState::from_bytes(state).or_raise()?, now)))?;
        coverage_object(py, &coverage)
    }

    /// The settled ranges that a state has, ascending and apart, for ``siteline.targets``.
    #[staticmethod]
    fn _settled_of(state: &[u8]) -> PyResult<Vec<(Timestamp, Timestamp)>> {
        guarded(|| Ok(FeedState::from_bytes(state).or_raise()?.settled_ranges()))
    }

    /// A state without its cursors, for ``siteline.dlt``: chains that have not ended begin again.
    #[staticmethod]
    fn _without_cursors(state: &[u8]) -> PyResult<Vec<u8>> {
        guarded(|| Ok(FeedState::from_bytes(state).or_raise()?.without_cursors().to_bytes()))
    }

    /// How late points and revisions came, and which lateness that suggests: :class:`Lateness`.
    fn lateness<'py>(&self, feed: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, name) = (feed.py(), feed_name(feed)?);
        lateness_object(py, &self.work(py, |store| FeedLateness::read(store, &name))?)
    }

    /// The lateness that a state shows, for ``Lateness.from_state``.
    #[staticmethod]
    fn _lateness_of<'py>(py: Python<'py>, state: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let lateness =
            guarded(|| Ok(FeedLateness::of_state(&FeedState::from_bytes(state).or_raise()?)))?;
        lateness_object(py, &lateness)
    }

    /// When the pages of a feed were read, in microseconds since the Unix epoch, for ``siteline.plots``.
    fn _page_times(&self, py: Python<'_>, feed: &str) -> PyResult<Vec<i64>> {
        self.work(py, |store| store.page_times(feed))
    }

    /// Keep a feed under another definition from now on: other times, page size or window, or an earlier
    /// ``since``.
    ///
    /// The query may not change, and ``since`` not become later (that is :meth:`forget`), nor earlier than
    /// what was forgotten: :class:`FeedChanged` names the difference. Chains that were begun and not ended
    /// are given up, and their ranges are read anew, unless only ``since`` changes. :class:`StoreBusy` while
    /// a sync runs.
    fn redefine(&self, feed: &Bound<'_, PyFeed>) -> PyResult<()> {
        let new = &feed.get().0;
        self.work(feed.py(), |store| redefine(store, new))
    }

    /// The state that was applied last for a feed: a store is a :class:`StoreTarget` itself.
    ///
    /// Opaque, and as secret as a bookmark. ``None`` for a feed that is not there.
    #[pyo3(name = "state")]
    fn known_state(&self, feed: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
        let name = feed_name(feed)?;
        self.work(feed.py(), |store| store.state(&name))
    }

    /// Apply a page that :meth:`Client.sync` gave to a :class:`StoreTarget`, and its state, in one
    /// transaction: for a target that also keeps a store. Gives (inserted, revised, unchanged).
    ///
    /// A :class:`QueryError` for a page of a scan: which range its chain has read is not known.
    fn apply(
        &self,
        py: Python<'_>,
        feed: &Bound<'_, PyAny>,
        page: Option<&Bound<'_, PyAny>>,
        state: &[u8],
    ) -> PyResult<(u64, u64, u64)> {
        let name = feed_name(feed)?;
        let handle = page.map(frame_of).transpose()?.flatten();
        if page.is_some() && handle.is_none() {
            return Err(PyTypeError::new_err("page= is a siteline.Page, or None."));
        }
        let frame = handle.as_ref().map(Bound::get);
        let delivery = frame.map(|frame| delivery(py, frame)).transpose()?;
        let applied = self.work(py, |store| store.apply(&name, delivery.as_ref(), state))?;
        Ok((applied.inserted, applied.revised, applied.unchanged))
    }

    /// Close its connections: later calls raise :class:`ClosedError`. Closing again does nothing.
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

    fn __getnewargs_ex__(&self) -> ((OsString,), HashMap<&'static str, bool>) {
        let read_only = [("read_only", self.0.options().read_only)];
        ((self.path().into_os_string(),), read_only.into())
    }

    fn __repr__(&self) -> String {
        let only = if self.0.options().read_only { ", read only" } else { "" };
        format!("<Store {}{only}>", escaped(&self.0.path().to_string_lossy()))
    }

    /// What notebooks show.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html_sync(slf.as_any(), "store")
    }

    /// What ``siteline._display.sync_html`` shows: a dict for each feed.
    fn _overview(&self, py: Python<'_>) -> PyResult<Vec<FeedOverview>> {
        self.work(py, |store| {
            let overview = |(name, state): (String, FeedState)| {
                Ok(FeedOverview {
                    settled_through: state.settled_through(),
                    read_through: state.read_through(),
                    newest: state.newest(),
                    sequence: store.sequence(&name)?,
                    feed: PyFeed(state.feed().clone()),
                })
            };
            read_states(store)?.into_iter().map(overview).collect()
        })
    }
}

/// A `siteline.types.Coverage`.
fn coverage_object<'py>(py: Python<'py>, coverage: &FeedCoverage) -> PyResult<Bound<'py, PyAny>> {
    let feed = PyFeed(coverage.feed.clone()).into_bound_py_any(py)?;
    record(py, ("siteline._records.coverage", "Coverage"), coverage, [("feed", feed)])
}

/// How far a feed has been read, as a dict.
#[derive(IntoPyObject)]
struct FeedOverview {
    feed: PyFeed,
    settled_through: Option<Timestamp>,
    read_through: Option<Timestamp>,
    newest: Option<Timestamp>,
    sequence: u64,
}

fn lateness_object<'py>(py: Python<'py>, lateness: &FeedLateness) -> PyResult<Bound<'py, PyAny>> {
    let feed = PyFeed(lateness.feed.clone()).into_bound_py_any(py)?;
    record(py, ("siteline._records.lateness", "Lateness"), lateness, [("feed", feed)])
}

/// A page as a target is given it.
fn delivery<'a>(py: Python<'_>, frame: &'a Frame) -> PyResult<Delivery<'a>> {
    let PageSource { page, provenance, synced } = frame.known_page(py)?;
    let message = "page= is of a scan: give one that client.sync() gave to a store of yours, or one \
                   that client.sync_pages() handed over.";
    let synced = synced.as_ref().ok_or_else(|| refuse(py, Kind::QueryError, message))?;
    let Synced { chain, batch_first, is_only_chain, .. } = *synced;
    let (read_at, interval_seconds) = (provenance.read_at, provenance.query.interval_seconds());
    Ok(Delivery { page, batch_first, read_at, chain, interval_seconds, is_only_chain })
}
