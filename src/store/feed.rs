use jiff::tz::TimeZone;

use crate::client::query::{AskedQuery, query_input};
use crate::convert::asked_time::asked_time;
use crate::prelude::*;
use siteline_core::sync::{Feed, FeedInput};

#[pyclass(frozen, eq, hash, module = "siteline._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct FeedHandle(pub(crate) Feed);

#[pymethods]
impl FeedHandle {
    /// `times`: settle lag, overlap, lateness and window.
    #[new]
    fn new<'py>(
        py: Python<'py>,
        name: Text<'_>,
        start: &Object<'py>,
        query: AskedQuery<'py>,
        times: [Given<'py>; 4],
        audit_pages: &Object<'py>,
    ) -> PyResult<Self> {
        let mut asked = query_input(query)?;
        let start = asked_time(start, "start", Some(&TimeZone::UTC))?;
        let (now, width) = (Clock::system().wall(), asked.interval_seconds);
        let start = start.resolve("start", now, width).or_raise()?;
        let mut input = FeedInput::new(name.0, start);
        let [settle_lag, overlap, lateness, window] = times;
        for (name, given, time) in [
            ("settle_lag", settle_lag, &mut input.settle_lag),
            ("overlap", overlap, &mut input.overlap),
            ("lateness", lateness, &mut input.lateness),
            ("window", window, &mut input.window),
        ] {
            if let Some(given) = given {
                *time = duration(&given, name)?;
            }
        }
        input.site = asked.site.pop();
        input.line = asked.line.pop();
        input.filters = asked.filters;
        input.interval_seconds = asked.interval_seconds;
        input.page_size = asked.page_size;
        input.audit_pages = pages(audit_pages)?;
        let feed = guarded(|| Feed::new(input).or_raise())?;
        warn(py, feed.warning().as_slice())?;
        Ok(Self(feed))
    }

    #[staticmethod]
    fn restore(state: &Object<'_>) -> PyResult<Self> {
        let input = restore(state)?;
        guarded(|| Ok(Self(Feed::new(input).or_raise()?)))
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        dict(py, self.0.input())
    }

    /// Start, the times, and the query parameters.
    fn parts(&self) -> (Timestamp, [Duration; 4], String) {
        let FeedInput { since, settle_lag, overlap, lateness, window, .. } = *self.0.input();
        (since, [settle_lag, overlap, lateness, window], self.0.parameters())
    }
}

fn pages(value: &Object<'_>) -> PyResult<u32> {
    value.extract().map_err(|_| {
        let shown = quoted(value);
        let message =
            format!("audit_pages={shown} is not a whole number of 0 or more pages a day.");
        refuse(value.py(), Kind::QueryError, message)
    })
}
