//! `password_command`: a passphrase that a command prints (`pass show plant`). It runs through
//! Python's `subprocess`, without a shell; what it prints is neither shown nor kept.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use zeroize::Zeroizing;

use crate::error::{Error, Kind, excerpt};
use crate::python::bridge::errors::raise;
use crate::python::convert::values::described;

/// Seconds that the command may take: the user may have to touch a hardware key.
const LIMIT: u32 = 60;

/// The words of a command: a list as it is, a text split as a shell would split it.
pub(crate) fn words(command: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let py = command.py();
    let words = if command.is_instance_of::<PyString>() {
        let options = PyDict::new(py);
        options.set_item("posix", !cfg!(windows))?;
        let split = py.import("shlex")?.call_method("split", (command,), Some(&options));
        split.map_err(|error| {
            if !error.is_instance_of::<PyValueError>(py) {
                return error;
            }
            let error =
                Error::new(Kind::CredentialError, "password_command has a quote that never ends.");
            raise(py, &error.with_hint("Give it as a list of words, and nothing is split."))
        })?
    } else {
        command.clone()
    };
    let Ok(words) = words.extract::<Vec<String>>() else {
        let found = described(command)?;
        let message = format!("password_command= is text or a list of words; this is {found}.");
        return Err(PyTypeError::new_err(message));
    };
    if words.first().is_none_or(String::is_empty) {
        return Err(raise(py, &Error::new(Kind::CredentialError, "password_command is empty.")));
    }
    Ok(words)
}

/// What the command prints: its first line, without the line's end.
pub(crate) fn printed(py: Python<'_>, words: &[String]) -> PyResult<Zeroizing<Vec<u8>>> {
    let run = py.import("siteline._passphrase")?.getattr("run")?.call1((words, LIMIT))?;
    let (failure, line, said): (Option<String>, Vec<u8>, String) = run.extract()?;
    let Some(failure) = failure else { return Ok(Zeroizing::new(line)) };
    let error = refused(words, &failure);
    Err(raise(
        py,
        &match said.as_str() {
            "" => error,
            said => error.with_hint(format!("It said: {}", excerpt(said))),
        },
    ))
}

fn refused(words: &[String], what: &str) -> Error {
    let program = words.first().map_or("", String::as_str);
    Error::new(Kind::CredentialError, format!("password_command ({}) {what}.", excerpt(program)))
        .with_hint("Run it by hand: its first line is the passphrase.")
}
