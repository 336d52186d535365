//! A pandas frame into columns, with NumPy alone: its own Arrow door needs pyarrow.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::arrow::{instant_in, whole};
use super::columns::{Columns, ID_COLUMNS, Texts};
use super::refused;

/// True for a pandas `DataFrame`. pandas is not imported for the question.
pub(super) fn is_frame(frame: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = frame.get_type();
    Ok(kind.name()?.to_cow()? == "DataFrame"
        && kind.module()?.to_cow()?.split('.').next() == Some("pandas"))
}

/// The columns of a pandas frame. `ConfigError` for one that is missing or does not fit.
pub(super) fn columns(frame: &Bound<'_, PyAny>) -> PyResult<Columns> {
    let py = frame.py();
    let column = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
        let known = frame.getattr(intern!(py, "columns"))?.contains(name)?;
        let found = known.then(|| frame.get_item(name)).transpose()?;
        match found {
            Some(column) if is_frame(&column)? => {
                Err(refused(py, format!("The frame has two columns {name:?}.")))
            }
            found => Ok(found),
        }
    };
    let required = |name: &str| match column(name)? {
        Some(column) => Ok(column),
        None => Err(missing(frame, name)?),
    };
    let mut columns = Columns::default();
    for (texts, name) in columns.ids.iter_mut().zip(ID_COLUMNS) {
        *texts = column(name)?.map(|series| texts_of(&series)).transpose()?;
    }
    for time in times("timestamp", &required("timestamp")?)? {
        let missing = || refused(py, "The column \"timestamp\" holds a missing time.");
        columns.timestamp.push(time.ok_or_else(missing)?);
    }
    columns.value = floats("value", &required("value")?)?;
    columns.minimum = column("minimum")?.map(|series| floats("minimum", &series)).transpose()?;
    columns.maximum = column("maximum")?.map(|series| floats("maximum", &series)).transpose()?;
    columns.sample_count = column("sample_count")?.map(|series| counts(&series)).transpose()?;
    let available = column("available_at")?;
    columns.available_at = available.map(|series| times("available_at", &series)).transpose()?;
    Ok(columns)
}

/// What to do about a column that is not there: often it is the index.
fn missing(frame: &Bound<'_, PyAny>, name: &str) -> PyResult<PyErr> {
    let index = frame.getattr("index")?;
    let is_time = index.getattr("dtype")?.str()?.to_cow()?.starts_with("datetime64");
    let hint = if name == "timestamp" && is_time {
        " Its index holds times: .rename_axis(\"timestamp\").reset_index() makes them a column."
    } else {
        ""
    };
    Ok(refused(frame.py(), format!("The frame has no column {name:?}.{hint}")))
}

/// Numbers as doubles; missing ones are null.
fn floats(name: &str, series: &Bound<'_, PyAny>) -> PyResult<Vec<Option<f64>>> {
    let py = series.py();
    let options = PyDict::new(py);
    options.set_item("dtype", "float64")?;
    options.set_item("na_value", f64::NAN)?;
    let array = series.call_method("to_numpy", (), Some(&options)).map_err(|error| {
        let error = error.value(py).to_string();
        refused(py, format!("The column {name:?} does not hold numbers: {error}"))
    })?;
    let values = words(&array)?.into_iter().map(f64::from_ne_bytes);
    Ok(values.map(|value| (!value.is_nan()).then_some(value)).collect())
}

fn counts(series: &Bound<'_, PyAny>) -> PyResult<Vec<Option<i64>>> {
    let counts = floats("sample_count", series)?;
    let whole = counts.into_iter().map(|count| match count {
        Some(count) => whole(count).map(Some),
        None => Some(None),
    });
    let unfit = || refused(series.py(), "The column \"sample_count\" holds no whole numbers.");
    whole.collect::<Option<Vec<_>>>().ok_or_else(unfit)
}

/// Aware times, or ISO text with a zone, as microseconds since the Unix epoch.
fn times(name: &str, series: &Bound<'_, PyAny>) -> PyResult<Vec<Option<i64>>> {
    let py = series.py();
    let dtype = series.getattr("dtype")?.str()?.to_cow()?.into_owned();
    if dtype.starts_with("datetime64") {
        let times = series.getattr("dt")?;
        if times.getattr("tz")?.is_none() {
            return Err(naive(py, name));
        }
        // NumPy's own type: UTC without saying so, whatever the unit was.
        let array = times.call_method1("tz_convert", ("UTC",))?.getattr("dt")?;
        let array = array.call_method1("tz_localize", (py.None(),))?;
        let array = array.call_method0("to_numpy")?.call_method1("astype", ("datetime64[us]",))?;
        let times = words(&array)?.into_iter().map(i64::from_ne_bytes);
        return Ok(times.map(|time| (time != i64::MIN).then_some(time)).collect());
    }
    let missing = series.call_method0("isna")?.call_method0("tolist")?.extract::<Vec<bool>>()?;
    let values = series.call_method0("tolist")?;
    let mut times = Vec::with_capacity(missing.len());
    for (value, missing) in values.try_iter()?.zip(missing) {
        let value = value?;
        times.push(match value.extract::<String>() {
            _ if missing => None,
            Ok(text) => Some(instant_in(name, &text).map_err(|text| refused(py, text))?),
            Err(_) => {
                let instant = crate::python::conversions::instant(&value, name);
                Some(instant.map_err(|_| no_time(name, &value))?.as_microsecond())
            }
        });
    }
    Ok(times)
}

fn no_time(name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let kind = value.get_type().name().map_or_else(|_| "value".to_owned(), |kind| kind.to_string());
    refused(
        value.py(),
        format!(
            "The column {name:?} holds a {kind}, not a time with a zone. Use \
             pd.to_datetime(..., utc=True), for epoch numbers with unit=\"s\" or \"ms\"."
        ),
    )
}

fn naive(py: Python<'_>, name: &str) -> PyErr {
    refused(
        py,
        format!(
            "The column {name:?} holds naive times: nobody knows which zone they mean. \
             Use .dt.tz_localize(\"UTC\") or another zone."
        ),
    )
}

/// Ids as text; a missing one is null.
fn texts_of(series: &Bound<'_, PyAny>) -> PyResult<Texts> {
    let missing = series.call_method0("isna")?.call_method0("tolist")?.extract::<Vec<bool>>()?;
    let mut texts = Texts::default();
    for (value, missing) in series.call_method0("tolist")?.try_iter()?.zip(missing) {
        let value = value?;
        texts.push(
            if missing { None } else { Some(value.str()?.to_cow()?.into_owned()) }.as_deref(),
        );
    }
    Ok(texts)
}

/// The eight-octet items of a NumPy array, in order.
fn words(array: &Bound<'_, PyAny>) -> PyResult<Vec<[u8; 8]>> {
    let bytes = array.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    let (words, _) = bytes.as_bytes().as_chunks::<8>();
    Ok(words.to_vec())
}
