//! `Client.scan`: makes a scan from its arguments.

use pyo3::prelude::*;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::warn;
use crate::bridge::process::guarded;
use crate::client::PyClient;
use crate::client::query::{Argument, names, query_input};
use crate::client::scan::{PyScan, cut};
use crate::convert::asked_time::asked_range;
use crate::convert::values::{count, duration, optional};
use siteline_core::auth::Checked;
use siteline_core::client::{ReadSettings, ScanInput};
use siteline_core::data::RangeForm;
use siteline_core::error::Kind;

#[pymethods]
impl PyClient {
    #[pyo3(signature = (*, site=None, line=None, start=None, end=None, tz=None, interval=None,
        page_size=None, filters=None, settle_lag=None, extra_columns=None, max_pages=None,
        deadline=None, split=None, concurrency=None, keep_raw=false))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    fn scan(
        slf: &Bound<'_, Self>,
        site: Argument<'_, '_>,
        line: Argument<'_, '_>,
        start: Argument<'_, '_>,
        end: Argument<'_, '_>,
        tz: Argument<'_, '_>,
        interval: Argument<'_, '_>,
        page_size: Argument<'_, '_>,
        filters: Argument<'_, '_>,
        settle_lag: Argument<'_, '_>,
        extra_columns: Argument<'_, '_>,
        max_pages: Argument<'_, '_>,
        deadline: Argument<'_, '_>,
        split: Argument<'_, '_>,
        concurrency: Argument<'_, '_>,
        keep_raw: bool,
    ) -> PyResult<PyScan> {
        let pages = |most: &Bound<'_, PyAny>, name: &str| count(most, name, Kind::QueryError);
        guarded(|| {
            let (py, client) = (slf.py(), slf.get());
            let range = asked_range(start, end, tz)?;
            let query = query_input([site, line, interval, page_size, filters])?;
            let lag = optional(settle_lag, "settle_lag", duration)?;
            let extra_columns = extra_columns.map(names).transpose()?.unwrap_or_default();
            let max_pages = optional(max_pages, "max_pages", pages)?;
            let deadline = optional(deadline, "deadline", duration)?;
            let most = optional(concurrency, "concurrency", pages)?;
            let concurrency = most.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
            let settings = ReadSettings { max_pages, deadline, keep_raw, concurrency };
            let (split, shape) = (optional(split, "split", cut)?, client.shape(py)?);
            let form = RangeForm::default();
            let input = ScanInput { query, shape, extra_columns, settings, split, form };
            let Checked { value, warnings } =
                input.scan_from_now(&client.client, range, lag).or_raise()?;
            warn(py, &warnings)?;
            Ok(PyScan::new(value, slf.clone().unbind()))
        })
    }
}
