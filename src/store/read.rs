//! Reads of a store.

use jiff::tz::TimeZone;
use pyo3::types::{PyBool, PyInt};

use crate::convert::asked_time::{asked_range, instant_before, zone};
use crate::frame::Frame;
use crate::frame::stored::Stored;
use crate::prelude::*;
use crate::store::StoreHandle;
use siteline_core::data::{AskedRange, AskedTime, Choice as _};
use siteline_core::store::{Flagged, SeriesFilter, SeriesIds, View};
use siteline_core::sync::{ReadSpec, Unread, fixed_range, read_state, service_time};

/// The ids of the five levels, and of whole series.
type Picked = ([Option<Vec<String>>; 5], Option<Vec<SeriesIds>>);

/// The arguments of a read.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Asked<'py> {
    feed: String,
    tz: Object<'py>,
    bounds: [Given<'py>; 2],
    picked: Picked,
    #[pyo3(default)]
    r#final: bool,
    #[pyo3(default)]
    as_of: Given<'py>,
    #[pyo3(default)]
    since: Given<'py>,
    withdrawn: String,
    unread: String,
}

impl StoreHandle {
    /// `as_of=`, `since=` and `now=` count from it.
    pub(crate) fn service_time(&self, py: Python<'_>, feed: &str) -> PyResult<Timestamp> {
        self.work(py, |store| Ok(service_time(&read_state(store, feed)?)))
    }

    /// The newest read instant, from which ranges of points count.
    pub(crate) fn newest(&self, py: Python<'_>, feed: &str) -> PyResult<Timestamp> {
        let now = AskedRange { start: Some(AskedTime::Before(Duration::ZERO)), end: None };
        let (newest, _) = self.work(py, |store| fixed_range(store, feed, now, View::LATEST))?;
        newest.ok_or_else(|| refuse(py, Kind::InternalError, "a relative time is no instant"))
    }

    /// The page number of `as_of=` or `since=`.
    fn place(&self, feed: &str, given: &Object<'_>, name: &str, zone: &TimeZone) -> PyResult<u64> {
        let py = given.py();
        let refused = |what: &str| refuse(py, Kind::QueryError, format!("{name}={what}"));
        if given.is_instance_of::<PyInt>() && !given.is_instance_of::<PyBool>() {
            let not_a_number = |_| refused(" is not a sequence number: 0 or more.");
            let sequence: u64 = given.extract().map_err(not_a_number)?;
            let reached = self.work(py, |store| {
                read_state(store, feed)?;
                store.sequence(feed)
            })?;
            if sequence > reached {
                return Err(refused(&format!(
                    "{sequence} does not exist yet: the newest page of feed {feed:?} is {reached}."
                )));
            }
            return Ok(sequence);
        }
        if !given.is_instance_of::<PyString>() && !given.hasattr("isoformat")? {
            return Err(refused(" is a siteline.types.SyncReport, a page number, or a time."));
        }
        // A relative time is rounded down to a second: "now" includes the pages of this second.
        let now = || self.service_time(py, feed).map(|now| now + Duration::from_micros(999_999));
        let at = instant_before(given, name, zone, now)?;
        self.work(py, |store| {
            read_state(store, feed)?;
            store.sequence_at(feed, at)
        })
    }
}

#[pymethods]
impl StoreHandle {
    fn frame(&self, py: Python<'_>, asked: Asked<'_>) -> PyResult<Frame> {
        let Asked { feed, r#final: settled_only, as_of, since, .. } = asked;
        if settled_only && (as_of.is_some() || since.is_some()) {
            let message = "final= is for the points of now: it is not known what was settled at an earlier \
                           sync. Leave final= or as_of= out.";
            return Err(refuse(py, Kind::QueryError, message));
        }
        let zone = &zone(&asked.tz)?.1;
        let view = match (as_of, since) {
            (Some(as_of), _) => View::as_of(self.place(&feed, &as_of, "as_of", zone)?),
            (None, Some(since)) => View::changed_since(self.place(&feed, &since, "since", zone)?),
            (None, None) => View::LATEST,
        };
        let flagged = Flagged::parse(&asked.withdrawn).or_raise()?;
        let unread = Unread::parse(&asked.unread).or_raise()?;
        let (ids, series) = asked.picked;
        let asked = asked_range(asked.bounds.each_ref().map(Option::as_ref), zone)?;
        let series = SeriesFilter { ids, series };
        let range = self.work(py, |store| fixed_range(store, &feed, asked, view))?;
        let spec = ReadSpec::new(feed, range, view).or_raise()?;
        let spec = ReadSpec { settled_only, flagged, unread, series, ..spec };
        let (_, read, warning) = self.work(py, |store| spec.open(store))?;
        guarded(|| warn(py, warning.as_slice()))?;
        Ok(Frame::of_store(Stored { store: Arc::clone(&self.0), read }))
    }
}
