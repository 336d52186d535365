use jiff::tz::TimeZone;

use crate::client::query::{AskedQuery, query_input};
use crate::convert::asked_time::asked_time;
use crate::prelude::*;
use siteline_core::sync::{Feed, FeedInput};

/// Checks a feed, and returns its struct. `times`: settle lag, overlap, lateness and window.
#[pyfunction]
pub(crate) fn _feed<'py>(
    py: Python<'py>,
    name: Text<'_>,
    start: &Object<'py>,
    query: AskedQuery<'py>,
    times: [Given<'py>; 4],
    audit_pages: &Object<'py>,
) -> PyResult<Object<'py>> {
    let mut asked = query_input(query)?;
    let start = asked_time(start, "start", &TimeZone::UTC)?;
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
    dict(py, &feed)
}

fn pages(value: &Object<'_>) -> PyResult<u32> {
    value.extract().map_err(|_| {
        let shown = quoted(value);
        let message =
            format!("audit_pages={shown} is not a whole number of 0 or more pages a day.");
        refuse(value.py(), Kind::QueryError, message)
    })
}
