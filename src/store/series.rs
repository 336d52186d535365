//! The arguments that pick series: `site=` to `tag=`, and `series=`.

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};

use crate::convert::values::{described, refuse, text};
use siteline_core::error::Kind;
use siteline_core::store::{SeriesFilter, SeriesIds};

/// `site=`, `line=`, `machine=`, `device=`, `tag=` and `series=` as they are given.
pub(crate) type SeriesArgs<'a, 'py> = [Option<&'a Bound<'py, PyAny>>; 6];

/// The series that the arguments pick.
pub(crate) fn series_filter(
    [site, line, machine, device, tag, series]: SeriesArgs<'_, '_>,
) -> PyResult<SeriesFilter> {
    Ok(SeriesFilter {
        site: site.map(|given| ids(given, "site")).transpose()?,
        line: line.map(|given| ids(given, "line")).transpose()?,
        machine: machine.map(|given| ids(given, "machine")).transpose()?,
        device: device.map(|given| ids(given, "device")).transpose()?,
        tag: tag.map(|given| ids(given, "tag")).transpose()?,
        series: series.map(all_series).transpose()?,
    })
}

/// One id, or several.
fn ids(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<String>> {
    if let Ok(one) = given.cast::<PyString>() {
        return Ok(vec![text(one, name, Kind::QueryError)?]);
    }
    let refused = |what: &Bound<'_, PyAny>| {
        let message = format!("{name}= is an id or a list of ids; this is {}.", described(what));
        refuse(what.py(), Kind::QueryError, message)
    };
    let Ok(items) = given.try_iter() else { return Err(refused(given)) };
    let id = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        let id = item.cast::<PyString>().map_err(|_| refused(&item))?;
        text(id, name, Kind::QueryError)
    };
    items.map(id).collect()
}

/// One series, or several.
fn all_series(given: &Bound<'_, PyAny>) -> PyResult<Vec<SeriesIds>> {
    let refused = || {
        let message = "series= is the five ids of a series (site, line, machine, device, tag; None where \
                       it has none), or a list of such.";
        refuse(given.py(), Kind::QueryError, message)
    };
    let Ok(items) = given.try_iter() else { return Err(refused()) };
    if given.is_instance_of::<PyString>() {
        return Err(refused());
    }
    let items: Vec<Bound<'_, PyAny>> = items.collect::<PyResult<_>>()?;
    // Ids stand in one series, series in a list of several.
    let is_id = |item: &Bound<'_, PyAny>| missing(item) || item.is_instance_of::<PyString>();
    if !items.is_empty() && items.iter().all(is_id) {
        return Ok(vec![series_ids(&items)?.ok_or_else(refused)?]);
    }
    let one = |item: &Bound<'_, PyAny>| {
        let ids: Vec<Bound<'_, PyAny>> = match item.try_iter() {
            Ok(ids) if !item.is_instance_of::<PyString>() => ids.collect::<PyResult<_>>()?,
            _ => return Err(refused()),
        };
        series_ids(&ids)?.ok_or_else(refused)
    };
    items.iter().map(one).collect()
}

/// The ids of a series; `None` where these are not five ids.
fn series_ids(items: &[Bound<'_, PyAny>]) -> PyResult<Option<SeriesIds>> {
    let Ok(items) = <&[Bound<'_, PyAny>; 5]>::try_from(items) else { return Ok(None) };
    let mut ids = SeriesIds::default();
    for (id, item) in ids.iter_mut().zip(items) {
        match item.cast::<PyString>() {
            Ok(given) => *id = Some(text(given, "series", Kind::QueryError)?),
            Err(_) if missing(item) => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(ids))
}

/// Whether a series has no such id: `None`, and what frames have for it.
fn missing(item: &Bound<'_, PyAny>) -> bool {
    let is_nan =
        || item.cast::<PyFloat>().is_ok_and(|number| number.extract().is_ok_and(f64::is_nan));
    item.is_none() || is_nan() || item.get_type().name().is_ok_and(|name| name == "NAType")
}
