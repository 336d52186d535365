//! Times and durations between Python and the core. Naive times are refused: a range in the wrong
//! zone reads the wrong hours without any error (§4.3).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDateTime, PyDelta, PyString, PyTzInfo};

use crate::data::{parse_duration, parse_instant};
use crate::error::{Error, Kind};
use crate::python::errors::raise;

/// An aware `datetime` in UTC.
pub(crate) fn datetime(py: Python<'_>, at: Timestamp) -> PyResult<Bound<'_, PyAny>> {
    datetime_from_microseconds(py, at.as_microsecond())
}

/// An aware `datetime` in UTC from microseconds since the Unix epoch, year 1 to 9999.
pub(crate) fn datetime_from_microseconds(
    py: Python<'_>,
    microseconds: i64,
) -> PyResult<Bound<'_, PyAny>> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let epoch = EPOCH.get_or_try_init(py, || -> PyResult<_> {
        let utc = PyTzInfo::utc(py)?.to_owned();
        Ok(PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, Some(&utc))?.into_any().unbind())
    })?;
    let days = microseconds.div_euclid(86_400_000_000);
    let rest = microseconds.rem_euclid(86_400_000_000);
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    let seconds = i32::try_from(rest / 1_000_000).unwrap_or_default();
    let micros = i32::try_from(rest % 1_000_000).unwrap_or_default();
    epoch.bind(py).add(PyDelta::new(py, days, seconds, micros, false)?)
}

/// An instant from an ISO 8601 string with a zone, an aware `datetime`, or a pandas `Timestamp`.
///
/// `name` is the argument, for the error's text. Errors: `QueryError` for a naive time, a time that
/// does not exist in its zone (the gap when clocks are set forward), or anything else.
pub(crate) fn instant(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Timestamp> {
    let py = value.py();
    if let Ok(text) = value.cast::<PyString>() {
        return parse_instant(&text.to_cow()?).map_err(|error| {
            raise(
                py,
                &error.with(|context| context.message = format!("{name}={}", context.message)),
            )
        });
    }
    let refuse = |what: String| {
        let error = Error::new(Kind::Query, what).with_hint(
            "Give an aware datetime, a pandas Timestamp with a zone, or ISO text such as \
             \"2026-11-01T00:00:00Z\".",
        );
        raise(py, &error)
    };
    if !value.hasattr(intern!(py, "utcoffset"))? {
        let kind = value.get_type().name()?;
        return Err(refuse(format!("{name}= is a {kind}, not a time with a zone.")));
    }
    if value.call_method0(intern!(py, "utcoffset"))?.is_none() {
        return Err(refuse(format!(
            "{name}= is a naive datetime: nobody knows which zone it means."
        )));
    }
    let since = since_epoch(value)?;
    refuse_gap(value).and_then(|gap| {
        if gap {
            return Err(refuse(format!(
                "{name}= does not exist in its zone: clocks were set forward over it."
            )));
        }
        Timestamp::UNIX_EPOCH.checked_add(since).map_err(|_| {
            refuse(format!("{name}= is out of range: years 1 to 9999 can be asked for."))
        })
    })
}

fn since_epoch(value: &Bound<'_, PyAny>) -> PyResult<SignedDuration> {
    let py = value.py();
    let utc = PyTzInfo::utc(py)?.to_owned();
    let epoch = PyDateTime::new(py, 1970, 1, 1, 0, 0, 0, 0, Some(&utc))?;
    let delta = value.sub(epoch)?;
    let days: i64 = delta.getattr(intern!(py, "days"))?.extract()?;
    let seconds: i64 = delta.getattr(intern!(py, "seconds"))?.extract()?;
    let microseconds: i64 = delta.getattr(intern!(py, "microseconds"))?.extract()?;
    // Only pandas has it; a bound that fine is refused by the query.
    let nanoseconds: i64 = match delta.getattr_opt(intern!(py, "nanoseconds"))? {
        Some(nanoseconds) => nanoseconds.extract()?,
        None => 0,
    };
    Ok(SignedDuration::from_secs(days * 86_400 + seconds)
        + SignedDuration::from_micros(microseconds)
        + SignedDuration::from_nanos(nanoseconds))
}

/// A local time inside the gap comes back from UTC as another local time.
fn refuse_gap(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let zone = value.getattr(intern!(py, "tzinfo"))?;
    let utc = PyTzInfo::utc(py)?.to_owned();
    let back = value
        .call_method1(intern!(py, "astimezone"), (utc,))?
        .call_method1(intern!(py, "astimezone"), (zone,))?;
    let naive = |time: &Bound<'_, PyAny>| -> PyResult<String> {
        let text = time.call_method0(intern!(py, "isoformat"))?.extract::<String>()?;
        Ok(text.get(..19).unwrap_or_default().to_owned())
    };
    Ok(naive(&back)? != naive(value)?)
}

/// A duration from seconds, a `timedelta`, or text such as `"1m"`.
///
/// Errors: `QueryError` for anything else or a negative one.
pub(crate) fn duration(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Duration> {
    let py = value.py();
    if let Ok(text) = value.cast::<PyString>() {
        return parse_duration(&text.to_cow()?).map_err(|error| {
            raise(
                py,
                &error.with(|context| context.message = format!("{name}={}", context.message)),
            )
        });
    }
    let seconds: f64 = if value.hasattr(intern!(py, "total_seconds"))? {
        value.call_method0(intern!(py, "total_seconds"))?.extract()?
    } else {
        match value.extract() {
            Ok(seconds) if !value.is_instance_of::<pyo3::types::PyBool>() => seconds,
            _ => {
                let kind = value.get_type().name()?;
                return Err(raise(
                    py,
                    &Error::new(Kind::Query, format!("{name}= is a {kind}, not a duration."))
                        .with_hint(
                            "Give seconds, a timedelta, or text such as \"1m\", \"90s\", \"1d\".",
                        ),
                ));
            }
        }
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        raise(py, &Error::new(Kind::Query, format!("{name}={seconds} is not a duration.")))
    })
}
