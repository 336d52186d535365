pub(crate) mod feed;
pub(crate) mod maintenance;
mod read;

use std::collections::BTreeMap;
use std::path::absolute;

use jiff::tz::TimeZone;
use pyo3::IntoPyObjectExt as _;

use crate::convert::asked_time::{instant_before, zone};
use crate::frame::{Frame, PageSource, Synced};
use crate::prelude::*;
use siteline_core::store::{Applied, Delivery, Share, Store, StoreOptions, Target as _, resolve};
use siteline_core::sync::{Feed, FeedCoverage, FeedLateness, FeedState, read_states, redefine};

#[pyclass(frozen, module = "siteline._core")]
pub(crate) struct StoreHandle(pub(crate) Arc<Store>);

/// How far a feed has been read.
#[derive(IntoPyObject)]
struct FeedOverview<'py> {
    feed: Object<'py>,
    settled_through: Option<Timestamp>,
    read_through: Option<Timestamp>,
    newest: Option<Timestamp>,
    /// The number of the newest page.
    sequence: u64,
}

impl StoreHandle {
    pub(crate) fn work<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Store) -> Result<T> + Send,
    ) -> PyResult<T> {
        let store = &self.0;
        guarded(|| step(py, || work(store))?.or_raise())
    }
}

#[pymethods]
impl StoreHandle {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, read_only: bool, share: Option<&str>) -> PyResult<Self> {
        let share = share.map(Share::parse).transpose().or_raise()?;
        let options = StoreOptions { read_only, share };
        let open = || Store::open_with(&path, options);
        guarded(|| Ok(Self(Arc::new(step(py, open)?.or_raise()?))))
    }

    fn feeds<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let states = self.work(py, read_states)?.into_iter();
        let feeds = states.map(|(name, state)| (name, state.feed().clone()));
        dict(py, &feeds.collect::<BTreeMap<_, _>>())
    }

    fn coverage<'py>(
        &self,
        py: Python<'py>,
        feed: Text<'_>,
        now: Option<Object<'py>>,
        tz: &Object<'py>,
    ) -> PyResult<Object<'py>> {
        let (_, zone) = zone(tz)?;
        let now = now
            .map(|now| instant_before(&now, "now", &zone, || self.service_time(py, feed.0)))
            .transpose()?;
        dict(py, &self.work(py, |store| FeedCoverage::read(store, feed.0, now))?)
    }

    fn lateness<'py>(&self, py: Python<'py>, feed: Text<'_>) -> PyResult<Object<'py>> {
        dict(py, &self.work(py, |store| FeedLateness::read(store, feed.0))?)
    }

    /// In microseconds since the Unix epoch.
    fn page_times(&self, py: Python<'_>, feed: &str) -> PyResult<Vec<i64>> {
        self.work(py, |store| store.page_times(feed))
    }

    /// Copies of the store have the same id.
    fn id(&self, py: Python<'_>) -> PyResult<String> {
        self.work(py, Store::id)
    }

    /// Discovery responses, newest first: time, body, shape as JSON, and the error of the newest request.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<NamesRow>> {
        let names = self.work(py, Store::names)?.into_iter();
        Ok(names.map(|one| (one.asked_at, one.body, one.shape, one.refusal)).collect())
    }

    fn redefine(&self, py: Python<'_>, feed: &Object<'_>) -> PyResult<()> {
        let feed: Feed = restore(feed)?;
        self.work(py, |store| redefine(store, &feed))
    }

    fn state(&self, py: Python<'_>, feed: Text<'_>) -> PyResult<Option<Vec<u8>>> {
        self.work(py, |store| store.state(feed.0))
    }

    fn apply(
        &self,
        py: Python<'_>,
        feed: Text<'_>,
        page: Option<&Object<'_>>,
        state: &[u8],
    ) -> PyResult<(u64, u64, u64, u64)> {
        let handle = page.map(handle_of::<Frame>).transpose()?.flatten();
        let handle = handle.filter(|frame| frame.get().page().is_some());
        if page.is_some() && handle.is_none() {
            return Err(PyTypeError::new_err("page= is a siteline.Page, or None."));
        }
        let frame = handle.as_ref().map(Bound::get);
        let delivery = frame.map(|frame| delivery(py, frame)).transpose()?;
        let is_of_feed = match FeedState::from_bytes(state) {
            Ok(known) => known.feed().name() == feed.0,
            Err(error) if error.kind() == Kind::StoreCorrupt => false,
            Err(error) => return Err(error.into_py_err()),
        };
        if !is_of_feed {
            let error = Error::new(Kind::QueryError, "state= is not a state of this feed.");
            return Err(error.with_hint("Pass the bytes that came with the page.")).or_raise();
        }
        let applied = self.work(py, |store| store.apply(feed.0, delivery.as_ref(), state))?;
        let Applied { inserted, revised, unchanged, flagged } = applied;
        Ok((inserted, revised, unchanged, flagged))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.work(py, |store| {
            store.close();
            Ok(())
        })
    }

    fn overview<'py>(&self, py: Python<'py>) -> PyResult<Vec<FeedOverview<'py>>> {
        let read = |store: &Store| -> Result<Vec<_>> {
            let states = read_states(store)?.into_iter();
            states.map(|(name, state)| Ok((state, store.sequence(&name)?))).collect()
        };
        let overview = |(state, sequence): (FeedState, u64)| {
            Ok(FeedOverview {
                feed: dict(py, state.feed())?,
                settled_through: state.settled_through(),
                read_through: state.read_through(),
                newest: state.newest(),
                sequence,
            })
        };
        self.work(py, read)?.into_iter().map(overview).collect()
    }
}

type NamesRow = (i64, Option<Vec<u8>>, Option<String>, Option<String>);

/// The absolute path of a store, which need not exist.
#[pyfunction]
pub(crate) fn _store_path(path: &Object<'_>) -> PyResult<PathBuf> {
    let (py, path) = (path.py(), path_of(path, "path")?);
    let path = absolute(&path).unwrap_or(path);
    guarded(|| step(py, || resolve(&path))?.or_raise())
}

/// Returns a part of the state of a feed from a target: its coverage, its lateness, its settled ranges, joined,
/// or the state without its cursors, because others can read the states of dlt.
#[pyfunction]
#[pyo3(signature = (part, state, now=None))]
pub(crate) fn _of_state<'py>(
    py: Python<'py>,
    part: &str,
    state: &[u8],
    now: Given<'py>,
) -> PyResult<Object<'py>> {
    let state = guarded(|| FeedState::from_bytes(state).or_raise())?;
    let utc = |now: &Object<'_>, name: &str| {
        instant_before(now, name, &TimeZone::UTC, || Ok(Clock::system().wall()))
    };
    match part {
        "coverage" => {
            let now = optional(now.as_ref(), "now", utc)?;
            dict(py, &FeedCoverage::of_state(&state, now))
        }
        "lateness" => dict(py, &FeedLateness::of_state(&state)),
        "settled" => state.settled().instants().into_bound_py_any(py),
        _ => Ok(PyBytes::new(py, &state.without_cursors().to_bytes()).into_any()),
    }
}

fn delivery(py: Python<'_>, frame: &Frame) -> PyResult<Delivery> {
    let PageSource { page, provenance, synced } = frame.known_page(py)?;
    let message = "page= is of a scan: give one that client.sync() gave to a store of yours, or one \
                   that client.sync_pages() handed over.";
    let synced = synced.as_ref().ok_or_else(|| refuse(py, Kind::QueryError, message))?;
    let Synced { chain, batch_first, is_only_chain, .. } = *synced;
    let (read_at, interval_seconds) = (provenance.read_at, provenance.query.interval_seconds());
    let page = Arc::new(page.clone());
    Ok(Delivery { page, batch_first, read_at, chain, interval_seconds, is_only_chain })
}
