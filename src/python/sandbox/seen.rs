//! `sandbox.stats`: what the service has seen, as plain Python.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::python::conversions::datetime;
use crate::sandbox::{Endpoint, Stats};

pub(super) fn stats<'py>(py: Python<'py>, seen: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let stats = PyDict::new(py);
    stats.set_item("token_requests", seen.token_requests)?;
    stats.set_item("tokens_issued", seen.tokens_issued)?;
    stats.set_item("discovery_requests", seen.discovery_requests)?;
    stats.set_item("data_requests", seen.data_requests)?;
    let by_day = PyDict::new(py);
    for (day, count) in &seen.data_requests_by_day {
        by_day.set_item(day.to_string(), count)?;
    }
    stats.set_item("data_requests_by_day", by_day)?;
    stats.set_item("points_sent", seen.points_sent)?;
    stats.set_item("requests", requests(py, seen)?)?;
    stats.set_item("jtis", &seen.jtis)?;
    stats.set_item("refusals", &seen.refusals)?;
    stats.set_item("user_agents", seen.user_agents.iter().collect::<Vec<_>>())?;
    stats.set_item("log", log(py, seen)?)?;
    Ok(stats)
}

/// Endpoint to status to count; every endpoint is there.
fn requests<'py>(py: Python<'py>, seen: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let requests = PyDict::new(py);
    for endpoint in [Endpoint::Token, Endpoint::Discovery, Endpoint::Data] {
        requests.set_item(endpoint.name(), PyDict::new(py))?;
    }
    for ((endpoint, status), count) in &seen.requests {
        let by_status = match requests.get_item(endpoint)? {
            Some(by_status) => by_status.cast_into::<PyDict>()?,
            None => PyDict::new(py),
        };
        by_status.set_item(status, count)?;
        requests.set_item(endpoint, by_status)?;
    }
    Ok(requests)
}

fn log<'py>(py: Python<'py>, seen: &Stats) -> PyResult<Bound<'py, PyList>> {
    let log = PyList::empty(py);
    for exchange in &seen.log {
        let line = PyDict::new(py);
        line.set_item("at", datetime(py, exchange.at)?)?;
        line.set_item("method", &exchange.method)?;
        line.set_item("path", &exchange.path)?;
        line.set_item("query", &exchange.query)?;
        line.set_item("status", exchange.status)?;
        log.append(line)?;
    }
    Ok(log)
}
