//! `siteline.Query`: what is asked, immutable.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyMapping, PyString, PyTuple};

use crate::data::{Query, QueryInput};
use crate::error::{Error, Kind};
use crate::python::conversions::{datetime, duration, instant};
use crate::python::errors::raise;

/// What a scan asks: immutable, printable, hashable; equal when it asks the same (§4.3).
///
/// Made by ``client.data(...)``. What was not set is ``None`` and is not sent.
#[pyclass(frozen, eq, hash, name = "Query", module = "siteline")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyQuery(pub(crate) Query);

#[pymethods]
impl PyQuery {
    /// The site filter, ``siteId`` on the wire.
    #[getter]
    fn site(&self) -> Option<&str> {
        self.0.input().site.as_deref()
    }

    /// The line filter, ``lineId`` on the wire.
    #[getter]
    fn line(&self) -> Option<&str> {
        self.0.input().line.as_deref()
    }

    /// Start of the range, an aware ``datetime`` in UTC; ``from`` on the wire.
    #[getter]
    fn start<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.start().map(|at| datetime(py, at)).transpose()
    }

    /// End of the range, an aware ``datetime`` in UTC; ``to`` on the wire.
    #[getter]
    fn end<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.end().map(|at| datetime(py, at)).transpose()
    }

    /// The bucket width in seconds; ``aggregationIntervalSeconds`` on the wire.
    #[getter]
    fn interval_seconds(&self) -> Option<u32> {
        self.0.interval_seconds()
    }

    /// Items asked for on each page; ``pageSize`` on the wire.
    #[getter]
    fn page_size(&self) -> Option<u32> {
        self.0.input().page_size
    }

    /// Further filters: parameter name to the tuple of its values.
    #[getter]
    fn filters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, values) in &self.0.input().filters {
            dict.set_item(name, PyTuple::new(py, values)?)?;
        }
        Ok(dict)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Query {}>", self.0)
    }
}

/// The arguments of `client.data` that make up a query, as Python gave them.
pub(crate) struct Arguments<'a, 'py> {
    pub(crate) site: Option<String>,
    pub(crate) line: Option<String>,
    pub(crate) start: Option<&'a Bound<'py, PyAny>>,
    pub(crate) end: Option<&'a Bound<'py, PyAny>>,
    pub(crate) interval: Option<&'a Bound<'py, PyAny>>,
    pub(crate) page_size: Option<&'a Bound<'py, PyAny>>,
    pub(crate) filters: Option<&'a Bound<'py, PyMapping>>,
}

impl Arguments<'_, '_> {
    /// The input of a query, `end` as it was given.
    pub(crate) fn input(self) -> PyResult<QueryInput> {
        Ok(QueryInput {
            site: self.site,
            line: self.line,
            start: self.start.map(|start| instant(start, "start")).transpose()?,
            end: self.end.map(|end| instant(end, "end")).transpose()?,
            interval_seconds: self.interval.map(interval_seconds).transpose()?,
            page_size: self.page_size.map(page_size).transpose()?,
            filters: self.filters.map(filters).transpose()?.unwrap_or_default(),
        })
    }
}

fn interval_seconds(interval: &Bound<'_, PyAny>) -> PyResult<u32> {
    let width = duration(interval, "interval")?;
    if width.subsec_nanos() != 0 || width.is_zero() {
        let text = interval.str()?;
        return Err(refuse(
            interval.py(),
            format!(
                "interval={text} is not a bucket width: it is a whole number of seconds, 1 or more."
            ),
        ));
    }
    u32::try_from(width.as_secs())
        .map_err(|_| refuse(interval.py(), "interval= is longer than 136 years.".to_owned()))
}

fn page_size(size: &Bound<'_, PyAny>) -> PyResult<u32> {
    match size.extract::<u32>() {
        Ok(number) if !size.is_instance_of::<PyBool>() => Ok(number),
        _ => {
            let text = size.repr()?;
            Err(refuse(
                size.py(),
                format!("page_size={text} is not a page size: it is a whole number, 1 or more."),
            ))
        }
    }
}

fn filters(filters: &Bound<'_, PyMapping>) -> PyResult<Vec<(String, Vec<String>)>> {
    filters
        .items()?
        .iter()
        .map(|item| {
            let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
            let values = if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
                value.try_iter()?.map(|one| filter_text(&name, &one?)).collect::<PyResult<_>>()?
            } else {
                vec![filter_text(&name, &value)?]
            };
            Ok((name, values))
        })
        .collect()
}

fn filter_text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    if !value.is_instance_of::<PyBool>()
        && let Ok(number) = value.extract::<i64>()
    {
        return Ok(number.to_string());
    }
    let kind = value.get_type().name()?;
    Err(refuse(
        value.py(),
        format!(
            "The filter {name} has a {kind} as value: give text, a whole number, or a list of these."
        ),
    ))
}

fn refuse(py: Python<'_>, message: String) -> PyErr {
    raise(py, &Error::new(Kind::Query, message))
}
