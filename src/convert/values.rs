//! Arguments.

use pyo3::PyClass;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::types::{PyBool, PyByteArray, PyFloat, PyInt, PyMemoryView, PyTime};
use zeroize::Zeroizing;

use crate::prelude::*;
use siteline_core::duration::parse_duration;
use siteline_core::http::TimeOfDay;
use siteline_core::settings::Value;

const DURATION_HINT: &str = "Give seconds, a timedelta, or text such as \"1m\", \"90s\", \"1d\".";
/// Arithmetic with longer durations would overflow.
const LONGEST: Duration = Duration::from_secs(10_000 * 31_556_952);

pub(crate) fn refuse(py: Python<'_>, kind: Kind, message: impl Into<String>) -> PyErr {
    raise(py, &Error::new(kind, message))
}

/// Refuses half a surrogate pair.
pub(crate) fn text(value: &Bound<'_, PyString>, name: &str, kind: Kind) -> PyResult<String> {
    value.to_cow().map(std::borrow::Cow::into_owned).map_err(|_| {
        let message = format!("{name}= holds half a surrogate pair: it is no Unicode text.");
        refuse(value.py(), kind, message)
    })
}

#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl<'a> FromPyObject<'a, '_> for Text<'a> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, '_, PyAny>) -> PyResult<Self> {
        if given.is_instance_of::<PyString>() {
            let message = "this holds half a surrogate pair: it is no Unicode text.";
            let refused = |_| refuse(given.py(), Kind::QueryError, message);
            return given.extract().map(Self).map_err(refused);
        }
        Err(PyTypeError::new_err(format!("this is {}, not text", described(&given))))
    }
}

/// The handle of a public object, or `None`.
pub(crate) fn handle_of<'py, T: PyClass>(given: &Object<'py>) -> PyResult<Option<Bound<'py, T>>> {
    let handle = given.getattr_opt(intern!(given.py(), "_handle"))?;
    Ok(handle.unwrap_or_else(|| given.clone()).cast_into().ok())
}

pub(crate) type Given<'py> = Option<Object<'py>>;

pub(crate) fn optional<'py, T>(
    value: Option<&Object<'py>>,
    name: &str,
    read: impl FnOnce(&Object<'py>, &str) -> PyResult<T>,
) -> PyResult<Option<T>> {
    value.map(|value| read(value, name)).transpose()
}

/// A path as text or `os.PathLike`. `~` is expanded.
pub(crate) fn path_of(given: &Object<'_>, name: &str) -> PyResult<PathBuf> {
    let is_path = given.is_instance_of::<PyString>() || given.hasattr("__fspath__")?;
    if !is_path {
        let what = described(given);
        let message = format!("{name}= is the path of a file; this is {what}.");
        return Err(PyTypeError::new_err(message));
    }
    given.py().import("os.path")?.call_method1("expanduser", (given,))?.extract()
}

pub(crate) fn count(value: &Object<'_>, name: &str, kind: Kind) -> PyResult<u64> {
    let number = if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() };
    number.filter(|number| *number > 0).ok_or_else(|| {
        let message = format!("{name}={} is not a whole number of 1 or more.", quoted(value));
        refuse(value.py(), kind, message)
    })
}

/// The start of its repr.
pub(crate) fn quoted(value: &Object<'_>) -> String {
    value.repr().map_or_else(|_| "this".to_owned(), |repr| excerpt(&repr.to_string()))
}

/// Calls a function of `siteline._arguments`.
pub(crate) fn converted<'py>(value: &Object<'py>, function: &str) -> PyResult<Object<'py>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let py = value.py();
    let import = || py.import("siteline._arguments").map(Bound::unbind);
    MODULE.get_or_try_init(py, import)?.bind(py).call_method1(function, (value,))
}

/// As [`converted`]; `refused` makes the error of a `ValueError`.
pub(crate) fn plain<'py, T: FromPyObjectOwned<'py>>(
    value: &Object<'py>,
    name: &str,
    refused: impl FnOnce(&str) -> PyErr,
) -> PyResult<T> {
    let py = value.py();
    let found = converted(value, name).map_err(|error| {
        let is_refused = error.get_type(py).is(py.get_type::<PyValueError>());
        if is_refused { refused(&error.value(py).to_string()) } else { error }
    })?;
    found.extract().map_err(Into::into)
}

/// Adds the name of the argument to the message.
pub(crate) fn prefixed(py: Python<'_>, prefix: &str, error: Error) -> PyErr {
    let message = format!("{prefix}{}", error.context().message);
    raise(py, &error.with(|context| context.message = message))
}

fn type_name(value: &Object<'_>) -> String {
    value.get_type().name().map_or_else(|_| "thing".to_owned(), |name| name.to_string())
}

pub(crate) fn duration(value: &Object<'_>, name: &str) -> PyResult<Duration> {
    duration_or(value, name, Kind::QueryError)
}

pub(crate) fn duration_or(value: &Object<'_>, name: &str, kind: Kind) -> PyResult<Duration> {
    let py = value.py();
    let refused = |what: &str| {
        let message = format!("{name}={what}");
        raise(py, &Error::new(kind, message).with_hint(DURATION_HINT))
    };
    let length = if let Ok(string) = value.cast::<PyString>() {
        parse_duration(&text(string, name, kind)?)
            .map_err(|error| prefixed(py, &format!("{name}="), error.into_kind(kind)))?
    } else {
        let Some(seconds) = seconds(value)? else {
            return Err(refused(&format!(" is a {}, not a duration.", type_name(value))));
        };
        if seconds.is_nan() {
            return Err(refused(" is no number, so no duration."));
        }
        Duration::try_from_secs_f64(seconds).map_err(|_| {
            refused(&format!("{seconds} is not a duration: it is 0 or more, and ends."))
        })?
    };
    if length > LONGEST {
        return Err(refused(" is longer than 10,000 years."));
    }
    Ok(length)
}

/// `NaT` and NaN become NaN; `None` if it is no duration.
pub(crate) fn seconds(value: &Object<'_>) -> PyResult<Option<f64>> {
    if value.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
        return Ok(value.extract().ok());
    }
    converted(value, "seconds")?.extract()
}

/// The type of a value, without its content.
pub(crate) fn described(value: &Object<'_>) -> String {
    if value.is_none() {
        return "None (is an environment variable unset?)".to_owned();
    }
    format!("an object of type {}", type_name(value))
}

/// The bytes of a bytes-like object, or `None`.
pub(crate) fn octets(value: &Object<'_>) -> PyResult<Option<Zeroizing<Vec<u8>>>> {
    let bytes = if let Ok(bytes) = value.cast::<PyBytes>() {
        bytes.as_bytes().to_vec()
    } else if let Ok(bytes) = value.cast::<PyByteArray>() {
        bytes.to_vec()
    } else if value.is_instance_of::<PyMemoryView>() {
        value.call_method0(intern!(value.py(), "tobytes"))?.extract()?
    } else {
        return Ok(None);
    };
    Ok(Some(Zeroizing::new(bytes)))
}

pub(crate) fn value_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Object<'py>> {
    Ok(match value {
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::Words(words) => words.into_pyobject(py)?.into_any(),
        Value::Whole(number) => number.into_pyobject(py)?.into_any(),
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Path(path) => path.as_os_str().into_pyobject(py)?.into_any(),
        Value::Table(table) => dict(py, table)?,
    })
}

/// Text with a zone, or an aware `datetime.time`.
pub(crate) fn time_of_day(given: &Object<'_>, name: &str) -> PyResult<TimeOfDay> {
    let py = given.py();
    let named = |error| prefixed(py, &format!("{name}= "), error);
    if let Ok(written) = given.cast::<PyString>() {
        return TimeOfDay::parse(&text(written, name, Kind::ConfigError)?).map_err(named);
    }
    if !given.is_instance_of::<PyTime>() {
        let what = described(given);
        return Err(PyTypeError::new_err(format!(
            "{name}= is text such as \"06:00Z\" or an aware datetime.time; this is {what}."
        )));
    }
    let (seconds, ahead) = plain(given, "time_of_day", |what| {
        let hint = "Write when the service's day begins as \"06:00Z\", or with an offset.";
        named(Error::new(Kind::ConfigError, what).with_hint(hint))
    })?;
    TimeOfDay::new(seconds, ahead).map_err(named)
}
