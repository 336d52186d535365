//! `siteline.types.Query`: the parameters of a read, immutable; and the arguments that they are made from.

use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyDict, PyTuple};

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::convert::state::{Reduced, reduce, restore};
use crate::convert::values::{count, duration, html, optional, refuse};
use siteline_core::data::{Query, QueryInput, bucket_width};
use siteline_core::error::Kind;

/// The parameters of a scan: immutable, printable, hashable; equal if all parameters are (§4.3).
///
/// Made by ``client.scan(...)``. A parameter that was not set is ``None`` and is not sent.
///
/// >>> query = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-02T00:00Z").query
/// >>> print(query)
/// siteId=S1 from=2026-11-01T00:00:00Z to=2026-11-02T00:00:00Z
#[pyclass(frozen, weakref, eq, hash, name = "Query", module = "siteline.types")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyQuery(pub(crate) Query);

#[pymethods]
impl PyQuery {
    /// The sites, empty for all; ``siteId`` on the wire.
    #[getter]
    fn site<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.input().site)
    }

    /// The lines, empty for all; ``lineId`` on the wire.
    #[getter]
    fn line<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.input().line)
    }

    /// The ids or names of machines, empty for all. They are also sent if the client has their parameter.
    #[getter]
    fn machine<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.input().selection.levels[0])
    }

    /// The ids or names of devices, empty for all.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.input().selection.levels[1])
    }

    /// The ids or names of tags, empty for all.
    #[getter]
    fn tag<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.input().selection.levels[2])
    }

    /// Start of the range, an aware ``datetime`` in UTC; ``from`` on the wire.
    #[getter]
    fn start(&self) -> Option<Timestamp> {
        self.0.start()
    }

    /// End of the range, an aware ``datetime`` in UTC; ``to`` on the wire.
    #[getter]
    fn end(&self) -> Option<Timestamp> {
        self.0.end()
    }

    /// The bucket width in seconds; ``aggregationIntervalSeconds`` on the wire.
    #[getter]
    fn interval_seconds(&self) -> Option<u32> {
        self.0.interval_seconds()
    }

    /// The requested number of items on a page; ``pageSize`` on the wire.
    #[getter]
    fn page_size(&self) -> Option<u32> {
        self.0.input().page_size
    }

    /// Further filters: parameter name to the tuple of its values.
    #[getter]
    fn filters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let filters = self.0.input().filters.iter();
        let tuples = filters.map(|(name, values)| Ok((name, PyTuple::new(py, values)?)));
        tuples.collect::<PyResult<Vec<_>>>()?.into_py_dict(py)
    }

    /// Makes the query again for ``pickle`` and ``copy``.
    #[staticmethod]
    fn _restore(state: &Bound<'_, PyAny>) -> PyResult<Self> {
        let input = restore(state)?;
        guarded(|| Ok(Self(Query::new(input).or_raise()?)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduce(slf, slf.get().0.input())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Query {}>", self.0)
    }

    /// What notebooks show.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "query")
    }
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
