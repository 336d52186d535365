//! From the arguments of `client.data` to a scan.

use pyo3::prelude::*;

use crate::client::ReadSettings;
use crate::client::scan::Scan;
use crate::data::{DecodeSettings, Query, Shape};
use crate::error::Kind;
use crate::python::bridge::errors::{raise, warn};
use crate::python::bridge::process::guarded;
use crate::python::client::PyClient;
use crate::python::client::progress::ProgressArg;
use crate::python::client::query::{Arguments, END_HINT, ahead, names};
use crate::python::client::scan::PyScan;
use crate::python::client::shape::PyShape;
use crate::python::convert::values::{count, duration};

/// How a scan is read, besides its query, as Python gave it.
pub(crate) struct Recipe<'a, 'py> {
    pub(crate) lag: Option<&'a Bound<'py, PyAny>>,
    pub(crate) shape: Option<&'a PyShape>,
    pub(crate) extra_columns: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_pages: Option<&'a Bound<'py, PyAny>>,
    pub(crate) deadline: Option<&'a Bound<'py, PyAny>>,
    pub(crate) keep_raw: bool,
    pub(crate) progress: Option<&'a Bound<'py, PyAny>>,
}

impl Recipe<'_, '_> {
    /// # Errors
    /// `QueryError` for a wrong argument.
    pub(crate) fn scan(
        self,
        client: &Bound<'_, PyClient>,
        arguments: Arguments<'_, '_>,
    ) -> PyResult<PyScan> {
        let (py, core) = (client.py(), &client.get().client);
        let progress = ProgressArg::from_argument(self.progress)?;
        let mut input = arguments.input()?;
        let lag = self.lag.map(|lag| duration(lag, "lag")).transpose()?;
        let extra_columns = self.extra_columns.map(names).transpose()?.unwrap_or_default();
        let most = self.max_pages.map(|most| count(most, "max_pages", Kind::QueryError));
        let deadline = self.deadline.map(|deadline| duration(deadline, "deadline")).transpose()?;
        let settings =
            ReadSettings { max_pages: most.transpose()?, deadline, keep_raw: self.keep_raw };
        let (left_out, start) = (input.end.is_none(), input.start);
        let end =
            core.end(input.end, lag, input.interval_seconds).map_err(|error| raise(py, &error))?;
        input.end = Some(end.at);
        let query = Query::new(input).map_err(|error| {
            let too_late = left_out && start.is_some_and(|start| start >= end.at);
            raise(py, &if too_late { error.with_hint(END_HINT) } else { error })
        })?;
        let shape = self.shape.map_or_else(Shape::default, |shape| shape.0.clone());
        let decode = DecodeSettings::for_query(&query, shape, extra_columns)
            .map_err(|error| raise(py, &error))?;
        warn(py, &Vec::from_iter(ahead(&end)))?;
        let scan = Scan::new(core.clone(), query, decode, settings);
        Ok(PyScan::new(scan, client.clone().unbind(), progress))
    }
}

#[pymethods]
impl PyClient {
    /// A lazy :class:`Scan` over the aggregate data (§4.3). Costs no request.
    ///
    /// - ``site``, ``line``: filters ``siteId`` and ``lineId``: text, or a whole number
    /// - ``start``, ``end``: the range, ``from`` and ``to``: aware datetimes, pandas timestamps or
    ///   ISO text with a zone, whole seconds. Without ``end`` it is now, by the service's time once
    ///   known, less the settle lag, floored to the bucket, fixed here and now
    /// - ``interval``: the bucket width: seconds, a ``timedelta`` or ``"1m"``
    /// - ``page_size``: items a page
    /// - ``filters``: further parameters by name; a list repeats the parameter
    /// - ``lag``: pull an ``end`` that lies ahead back to now less this
    /// - ``shape``: a :class:`Shape`, where you know what the document does not show
    /// - ``extra_columns``: members of points or series to keep, as JSON text
    /// - ``max_pages``: raise after so many pages of one read, never stop quietly
    /// - ``deadline``: bounds one whole read, waits and token exchange included
    /// - ``keep_raw``: keep each page's body in ``page.raw``
    /// - ``progress``: ``True`` for a bar (tqdm's where it is installed) in terminals and notebooks,
    ///   or a callable that is given a :class:`Progress` after each page
    ///
    /// What is not set is not sent, ``end`` excepted. A wrong argument is a :class:`QueryError`.
    ///
    /// >>> scan = client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-02T00:00Z",
    /// ...                    interval="1h", filters={"machineId": ("M1", "M2")})
    /// >>> scan.query.interval_seconds, scan.query.filters
    /// (3600, {'machineId': ('M1', 'M2')})
    #[pyo3(signature = (*, site=None, line=None, start=None, end=None, interval=None,
        page_size=None, filters=None, lag=None, shape=None, extra_columns=None, max_pages=None,
        deadline=None, keep_raw=false, progress=None),
        text_signature = "($self, *, site=None, line=None, start=None, end=None, interval=None, \
        page_size=None, filters=None, lag=None, shape=None, extra_columns=(), max_pages=None, \
        deadline=None, keep_raw=False, progress=None)")]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    fn data(
        slf: &Bound<'_, Self>,
        site: Option<&Bound<'_, PyAny>>,
        line: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        interval: Option<&Bound<'_, PyAny>>,
        page_size: Option<&Bound<'_, PyAny>>,
        filters: Option<&Bound<'_, PyAny>>,
        lag: Option<&Bound<'_, PyAny>>,
        shape: Option<&PyShape>,
        extra_columns: Option<&Bound<'_, PyAny>>,
        max_pages: Option<&Bound<'_, PyAny>>,
        deadline: Option<&Bound<'_, PyAny>>,
        keep_raw: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyScan> {
        let arguments = Arguments { site, line, start, end, interval, page_size, filters };
        let recipe = Recipe { lag, shape, extra_columns, max_pages, deadline, keep_raw, progress };
        guarded(|| recipe.scan(slf, arguments))
    }
}
