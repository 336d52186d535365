//! Converts the core's [`Error`] to the classes of `siteline.errors`.

use std::io;

use pyo3::exceptions::PyException;
use pyo3::types::PyType;

use crate::prelude::*;
use siteline_core::error::escaped;
use siteline_core::system;

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    let module = MODULE.get_or_try_init(py, || py.import("siteline.errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.cast_into::<PyType>()?)
}

/// A user's exception becomes the cause; Ctrl-C and `SystemExit` are raised unchanged.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let cause = error.foreign().and_then(|source| source.downcast_ref::<PyErr>());
    if let Some(cause) = cause
        && !cause.is_instance_of::<PyException>(py)
    {
        return cause.clone_ref(py);
    }
    let exception = build(py, error).unwrap_or_else(|failure| failure);
    if let Some(cause) = cause {
        exception.set_cause(py, Some(cause.clone_ref(py)));
    }
    exception
}

/// For errors of other crates, which cannot implement `From`.
pub(crate) trait IntoPyErr {
    fn into_py_err(self) -> PyErr;
}

impl IntoPyErr for Error {
    fn into_py_err(self) -> PyErr {
        Python::attach(|py| raise(py, &self))
    }
}

pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: IntoPyErr> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(IntoPyErr::into_py_err)
    }
}

/// Keeps a `CredentialError`; another exception becomes a cause.
pub(crate) fn error_of(py: Python<'_>, raised: PyErr) -> Error {
    let is_known = class(py, "CredentialError").is_ok_and(|class| raised.is_instance(py, &class));
    let value = raised.value(py);
    let message = value.getattr("args").and_then(|args| args.get_item(0)?.extract::<String>());
    match message {
        Ok(message) if is_known => {
            let passing = value.getattr("retryable").and_then(|is| is.is_truthy()).unwrap_or(false);
            let error = Error::new(Kind::CredentialError, message)
                .with(|context| context.passing = passing);
            match value.getattr("hint").and_then(|hint| hint.extract::<String>()) {
                Ok(hint) => error.with_hint(hint),
                Err(_) => error,
            }
        }
        _ => {
            let name = raised.get_type(py).name().map_or_else(|_| String::new(), |n| n.to_string());
            Error::new(Kind::CredentialError, format!("{name} while the key was read."))
                .with_source(raised)
        }
    }
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let context = error.context();
    let fields = PyDict::new(py);
    fields.set_item("retryable", error.retryable())?;
    let attempt = class(py, "Attempt")?;
    let attempts = context
        .attempts
        .iter()
        .map(|one| attempt.call1((escaped(&one.outcome), one.wait.map(|wait| wait.as_secs_f64()))))
        .collect::<PyResult<Vec<_>>>()?;
    fields.set_item("attempts", PyTuple::new(py, attempts)?)?;
    set(&fields, "hint", context.hint.as_deref())?;
    set(&fields, "elapsed", context.elapsed.map(|elapsed| elapsed.as_secs_f64()))?;
    set(&fields, "request_id", context.request_id.as_deref().map(escaped))?;
    set(&fields, "phase", context.phase.map(|phase| phase.to_string()))?;
    set(&fields, "path", context.path.as_deref().map(escaped))?;
    set(&fields, "status", context.status)?;
    set(&fields, "code", context.code.as_deref().map(escaped))?;
    set(&fields, "detail", context.detail.as_deref().map(escaped))?;
    set(&fields, "skew_seconds", context.skew_seconds)?;
    set(&fields, "retry_at", context.retry_at)?;
    if !context.spans.is_empty() {
        fields.set_item("spans", PyTuple::new(py, context.spans.iter().copied())?)?;
    }
    if !context.missing.is_empty() {
        fields.set_item("missing", PyTuple::new(py, &context.missing)?)?;
    }
    let message = match &context.path {
        Some(path) => format!("{} (at {path})", context.message),
        None => context.message.clone(),
    };
    // Texts of replies, files and settings must not begin a line.
    let message = escaped(&message);
    let exception = class(py, &error.kind().to_string())?.call((message,), Some(&fields))?;
    Ok(PyErr::from_value(exception))
}

fn set<'py, T: IntoPyObject<'py>>(
    fields: &Bound<'py, PyDict>,
    name: &str,
    value: Option<T>,
) -> PyResult<()> {
    value.map_or(Ok(()), |value| fields.set_item(name, value))
}

/// Emits each text once as `SitelineWarning`, at the caller's line.
pub(crate) fn warn(py: Python<'_>, warnings: &[String]) -> PyResult<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    py.import("siteline._warn")?.call_method1("warn", (warnings,)).map(drop)
}

/// The reason for an ``errno``, and a remedy if it may be temporary. ``None`` means that a thread or a
/// process could not be started.
#[pyfunction]
pub(crate) fn _refusal(number: Option<i32>) -> (String, Option<&'static str>) {
    let error = number.map_or_else(system::no_thread, io::Error::from_raw_os_error);
    (system::reason(&error), system::advice(&error))
}
