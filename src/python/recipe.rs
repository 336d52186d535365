//! From the arguments of `client.data` to a scan.

use pyo3::prelude::*;

use crate::client::scan::{ReadSettings, Scan};
use crate::data::{DecodeSettings, Query, Shape};
use crate::error::Kind;
use crate::python::client::PyClient;
use crate::python::conversions::{count, duration};
use crate::python::errors::{raise, warn};
use crate::python::progress::Audience;
use crate::python::query::{Arguments, END_HINT, ahead, names};
use crate::python::scan::PyScan;
use crate::python::shape::PyShape;

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
        let audience = Audience::from_argument(self.progress)?;
        let mut input = arguments.input()?;
        let lag = self.lag.map(|lag| duration(lag, "lag")).transpose()?;
        let extra_columns = self.extra_columns.map(names).transpose()?.unwrap_or_default();
        let most = self.max_pages.map(|most| count(most, "max_pages", Kind::Query));
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
        Ok(PyScan::new(scan, client.clone().unbind(), audience))
    }
}
