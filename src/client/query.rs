//! `siteline.types.Query`, and the arguments that a query is made from.

use crate::convert::state::record;
use crate::prelude::*;
use siteline_core::data::{Query, QueryInput, bucket_width};

/// The `siteline.types.Query` of a query.
pub(crate) fn query_object<'py>(py: Python<'py>, query: &Query) -> PyResult<Bound<'py, PyAny>> {
    record(py, ("siteline._records.query", "Query"), query.input(), [])
}

/// The sites, lines, interval, page size and filters of `siteline._selection.query`.
pub(crate) type AskedQuery<'py> = (
    Vec<String>,
    Vec<String>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Vec<(String, Vec<String>)>,
);

/// The input of a query without its range.
pub(crate) fn query_input(
    (site, line, interval, page_size, filters): AskedQuery<'_>,
) -> PyResult<QueryInput> {
    let interval_seconds = optional(interval.as_ref(), "interval", interval_seconds)?;
    let page_size = optional(page_size.as_ref(), "page_size", size)?;
    Ok(QueryInput { site, line, interval_seconds, page_size, filters, ..QueryInput::default() })
}

fn interval_seconds(interval: &Bound<'_, PyAny>, name: &str) -> PyResult<u32> {
    let shown = interval.repr()?.to_string();
    bucket_width(name, duration(interval, name)?, &shown).or_raise()
}

fn size(size: &Bound<'_, PyAny>, name: &str) -> PyResult<u32> {
    let refused =
        |_| refuse(size.py(), Kind::QueryError, format!("{name}= is more than 4,294,967,295."));
    u32::try_from(count(size, name, Kind::QueryError)?).map_err(refused)
}
