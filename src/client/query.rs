//! `Client.scan`.

use crate::client::PyClient;
use crate::client::scan::{PyScan, cut};
use crate::convert::asked_time::{asked_range, zone};
use crate::prelude::*;
use siteline_core::auth::Checked;
use siteline_core::client::{ReadSettings, ScanInput};
use siteline_core::data::{Ids, Levels, QueryInput, Selection, bucket_width};

/// Site, line, interval, page size and filters.
pub(crate) type AskedQuery<'py> = (
    Vec<String>,
    Vec<String>,
    Option<Object<'py>>,
    Option<Object<'py>>,
    Vec<(String, Vec<String>)>,
);

pub(crate) fn query_input(
    (site, line, interval, page_size, filters): AskedQuery<'_>,
) -> PyResult<QueryInput> {
    let interval_seconds = optional(interval.as_ref(), "interval", interval_seconds)?;
    let page_size = optional(page_size.as_ref(), "page_size", size)?;
    Ok(QueryInput { site, line, interval_seconds, page_size, filters, ..QueryInput::default() })
}

fn interval_seconds(interval: &Object<'_>, name: &str) -> PyResult<u32> {
    bucket_width(name, duration(interval, name)?, || quoted(interval)).or_raise()
}

fn size(size: &Object<'_>, name: &str) -> PyResult<u32> {
    let refused =
        |_| refuse(size.py(), Kind::QueryError, format!("{name}= is more than 4,294,967,295."));
    u32::try_from(count(size, name, Kind::QueryError)?).map_err(refused)
}

#[pymethods]
impl PyClient {
    /// `bounds`: start, end, zone. `limits`: pages, deadline, concurrency.
    #[expect(clippy::too_many_arguments, reason = "each is a part of a scan")]
    fn scan<'py>(
        slf: &Bound<'py, Self>,
        query: AskedQuery<'py>,
        selection: Option<(Levels, Vec<Ids>, [Option<String>; 3])>,
        bounds: (Given<'py>, Given<'py>, Object<'py>),
        limits: [Given<'py>; 3],
        split: Option<&Object<'py>>,
        settle_lag: Option<&Object<'py>>,
        extra_columns: Vec<String>,
        keep_raw: bool,
    ) -> PyResult<PyScan> {
        let pages = |most: &Object<'_>, name: &str| count(most, name, Kind::QueryError);
        guarded(|| {
            let (py, client) = (slf.py(), slf.get());
            let (start, end, tz) = bounds;
            let [most, deadline, concurrency] = limits.each_ref().map(Option::as_ref);
            let (levels, series, parameters) = selection.unwrap_or_default();
            let selection = Selection { levels, series, parameters };
            let query = QueryInput { selection, ..query_input(query)? };
            let (_, zone) = zone(&tz)?;
            let range = asked_range([start.as_ref(), end.as_ref()], &zone)?;
            let lag = optional(settle_lag, "settle_lag", duration)?;
            let max_pages = optional(most, "max_pages", pages)?;
            let deadline = optional(deadline, "deadline", duration)?;
            let concurrency = optional(concurrency, "concurrency", pages)?;
            let concurrency = concurrency.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
            let settings = ReadSettings { max_pages, deadline, keep_raw, concurrency };
            let (split, shape) = (optional(split, "split", cut)?, client.shape.clone());
            let form = None;
            let input = ScanInput { query, shape, extra_columns, settings, split, form };
            let made = input.scan_from_now(&client.client, range, lag, Some(&zone));
            let Checked { value, warnings } = made.or_raise()?;
            warn(py, &warnings)?;
            Ok(PyScan::new(value, slf.clone().unbind()))
        })
    }
}
