//! `siteline.types.Query`: the parameters of a read, immutable; and the arguments that they are made from.

use jiff::Timestamp;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyBool, PyBytes, PyDict, PyList, PyMapping, PyString, PyTuple};

use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::convert::state::{Reduced, reduce, restore};
use crate::convert::values::{count, described, duration, html, optional, refuse, text};
use siteline_core::data::{Query, QueryInput, bucket_width};
use siteline_core::error::{Error, Kind};

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
        known_filters(py, &self.0.input().filters)
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

/// An optional argument of a Python method.
pub(crate) type Argument<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The input of a query without its range, from the arguments of `Client.scan` and `Feed`.
pub(crate) fn query_input(
    [site, line, interval, page_size, filters]: [Argument<'_, '_>; 5],
) -> PyResult<QueryInput> {
    Ok(QueryInput {
        site: optional(site, "site", ids)?.unwrap_or_default(),
        line: optional(line, "line", ids)?.unwrap_or_default(),
        interval_seconds: optional(interval, "interval", interval_seconds)?,
        page_size: optional(page_size, "page_size", size)?,
        filters: filters.map(filter_values).transpose()?.unwrap_or_default(),
        ..QueryInput::default()
    })
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

fn filter_values(filters: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Vec<String>)>> {
    let py = filters.py();
    let Ok(filters) = filters.cast::<PyMapping>() else {
        let message = "filters= is a mapping of parameter names to values, such as \
                       {\"machineId\": [\"M1\", \"M2\"]}.";
        return Err(refuse(py, Kind::QueryError, message));
    };
    filters
        .items()?
        .iter()
        .map(|item| {
            let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let Ok(name) = name.cast::<PyString>() else {
                let message = format!("filters= has the name {}: a name is text.", name.repr()?);
                return Err(refuse(py, Kind::QueryError, message));
            };
            let name = text(name, "filters", Kind::QueryError)?;
            let what = format!("filters[{name:?}]");
            let values = if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
                value.try_iter()?.map(|one| one_value(&one?, &what)).collect::<PyResult<_>>()?
            } else {
                vec![one_value(&value, &what)?]
            };
            Ok((name, values))
        })
        .collect()
}

/// One id, or an iterable of ids.
fn ids(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<String>> {
    let is_one = given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.cast::<PyMapping>().is_ok()
        || !given.hasattr(intern!(given.py(), "__iter__"))?;
    if is_one {
        return Ok(vec![one_value(given, name)?]);
    }
    let ids: Vec<String> =
        given.try_iter()?.map(|id| one_value(&id?, name)).collect::<PyResult<_>>()?;
    if ids.is_empty() {
        let error = Error::new(Kind::QueryError, format!("{name}= is empty."));
        return Err(error.with_hint(format!("Leave {name}= out to read all.")).into_py_err());
    }
    Ok(ids)
}

/// One value of a parameter: text, or a whole number (J17: ids may be integers).
fn one_value(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    if let Ok(string) = value.cast::<PyString>() {
        return text(string, name, Kind::QueryError);
    }
    if !value.is_instance_of::<PyBool>()
        && let Ok(number) = value.extract::<i64>()
    {
        return Ok(number.to_string());
    }
    let message = format!(
        "{name}= is {}: give text or a whole number, or a list of these.",
        described(value)
    );
    Err(refuse(value.py(), Kind::QueryError, message))
}

/// The names of extra columns.
pub(crate) fn names(names: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let refused = || {
        let message = "extra_columns= is a list of member names, such as [\"quality\"].";
        refuse(names.py(), Kind::QueryError, message)
    };
    let name = |name: PyResult<Bound<'_, PyAny>>| {
        let name = name?.cast_into::<PyString>().map_err(|_| refused())?;
        text(&name, "extra_columns", Kind::QueryError)
    };
    if names.is_instance_of::<PyString>() {
        return Err(refused());
    }
    names.try_iter().map_err(|_| refused())?.map(name).collect()
}

/// The filters as a `dict` from the parameter's name to the tuple of its values.
pub(crate) fn known_filters<'py>(
    py: Python<'py>,
    filters: &[(String, Vec<String>)],
) -> PyResult<Bound<'py, PyDict>> {
    let tuples = filters.iter().map(|(name, values)| Ok((name, PyTuple::new(py, values)?)));
    tuples.collect::<PyResult<Vec<_>>>()?.into_py_dict(py)
}
