//! Reads of a store: a selection, fixed to what the store has now.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::warn;
use crate::bridge::process::guarded;
use crate::convert::asked_time::{asked_range, clock_of, instant_before};
use crate::convert::values::refuse;
use crate::frame::Frame;
use crate::frame::stored::Stored;
use crate::store::PyStore;
use crate::store::feed::feed_name;
use crate::store::series::{SeriesArgs, series_filter};
use siteline_core::data::{AskedRange, AskedTime};
use siteline_core::error::Kind;
use siteline_core::store::{Choice as _, Flagged, View};
use siteline_core::sync::{ReadSpec, Unread, fixed_range, read_state};

const SINCE: &str = "a siteline.SyncReport, a page number, or a time";

impl PyStore {
    /// The newest instant of a feed that was read, from which relative times count.
    pub(crate) fn newest(&self, py: Python<'_>, feed: &str) -> PyResult<Timestamp> {
        let now = AskedRange { start: Some(AskedTime::Before(Duration::ZERO)), end: None };
        let (newest, _) = self.work(py, |store| fixed_range(store, feed, now, View::Latest))?;
        newest.ok_or_else(|| refuse(py, Kind::InternalError, "a relative time is no instant"))
    }

    /// The sequence number of `as_of=` or `since=`.
    fn place(
        &self,
        feed: &str,
        given: &Bound<'_, PyAny>,
        name: &str,
        tz: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        if let Some(sequence) = self.sequence(feed, given, name)? {
            return Ok(sequence);
        }
        if !given.is_instance_of::<PyString>() && !given.hasattr("isoformat")? {
            return Err(refuse(given.py(), Kind::QueryError, format!("{name}= is {SINCE}.")));
        }
        // A relative time counts from the newest page, and is rounded down to a second.
        let newest = || {
            let times = self.work(given.py(), |store| store.page_times(feed))?;
            let newest = times.last().map_or(0, |at| at.saturating_add(999_999));
            Ok(Timestamp::from_microsecond(newest).unwrap_or_default())
        };
        let at = instant_before(given, name, clock_of(tz)?.as_ref(), newest)?;
        self.work(given.py(), |store| {
            read_state(store, feed)?;
            store.sequence_at(feed, at)
        })
    }
}

#[pymethods]
impl PyStore {
    /// The frame of `Store.read()`, or with `since` of `Store.changes()`.
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives it by value")]
    fn _frame(
        &self,
        py: Python<'_>,
        feed: &Bound<'_, PyAny>,
        bounds: [Option<Bound<'_, PyAny>>; 2],
        tz: Option<&Bound<'_, PyAny>>,
        series: [Option<Bound<'_, PyAny>>; 6],
        settled_only: bool,
        as_of: Option<&Bound<'_, PyAny>>,
        since: Option<&Bound<'_, PyAny>>,
        withdrawn: &str,
        unread: &str,
    ) -> PyResult<Frame> {
        let feed = feed_name(feed)?;
        if settled_only && (as_of.is_some() || since.is_some()) {
            let message = "final= is for the points of now: it is not known what was settled at an earlier \
                           sync. Leave final= or as_of= out.";
            return Err(refuse(py, Kind::QueryError, message));
        }
        let view = match (as_of, since) {
            (Some(as_of), _) => View::AsOf(self.place(&feed, as_of, "as_of", tz)?),
            (None, Some(since)) => View::ChangedSince(self.place(&feed, since, "since", tz)?),
            (None, None) => View::Latest,
        };
        let asked = asked_range(bounds[0].as_ref(), bounds[1].as_ref(), tz)?;
        let flagged = Flagged::parse(withdrawn).or_raise()?;
        let unread = Unread::parse(unread).or_raise()?;
        let args: SeriesArgs<'_, '_> = series.each_ref().map(Option::as_ref);
        let series = series_filter(args)?;
        let range = self.work(py, |store| fixed_range(store, &feed, asked, view))?;
        let spec = ReadSpec::new(feed, range, view).or_raise()?;
        let spec = ReadSpec { settled_only, flagged, unread, series, ..spec };
        let (read, warning) = self.work(py, |store| spec.pin(store))?;
        guarded(|| warn(py, warning.as_slice()))?;
        Ok(Frame::of_store(Stored { store: Arc::clone(&self.0), read }))
    }
}
