//! `password_command`: a passphrase that a command prints (`pass show plant`). It runs through
//! Python's `subprocess`, without a shell; what it prints is neither shown nor kept.

use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use zeroize::Zeroizing;

use crate::error::{Error, Kind, excerpt};
use crate::python::bridge::errors::raise;
use crate::python::convert::values::described;

/// Seconds that the command may take; long enough for a finger on a hardware key.
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
    let words: Vec<String> = match words.extract() {
        Ok(words) => words,
        Err(_) => {
            return Err(PyTypeError::new_err(format!(
                "password_command= is text or a list of words; this is {}.",
                described(command)?
            )));
        }
    };
    if words.first().is_none_or(String::is_empty) {
        return Err(raise(py, &Error::new(Kind::CredentialError, "password_command is empty.")));
    }
    Ok(words)
}

/// What the command prints: its first line, without the line's end.
pub(crate) fn printed(py: Python<'_>, words: &[String]) -> PyResult<Zeroizing<Vec<u8>>> {
    let subprocess = py.import("subprocess")?;
    let options = PyDict::new(py);
    options.set_item("stdin", subprocess.getattr("DEVNULL")?)?;
    options.set_item("stdout", subprocess.getattr("PIPE")?)?;
    options.set_item("stderr", subprocess.getattr("PIPE")?)?;
    options.set_item("timeout", LIMIT)?;
    let ended = match subprocess.call_method("run", (words.to_vec(),), Some(&options)) {
        Ok(ended) => ended,
        Err(error) => return Err(not_run(&subprocess, words, error)?),
    };
    let status: i64 = ended.getattr("returncode")?.extract()?;
    let output = ended.getattr("stdout")?;
    let line = first_line(output.cast::<PyBytes>()?.as_bytes());
    if status == 0 && !line.is_empty() {
        return Ok(line);
    }
    let what = if status == 0 {
        "printed nothing".to_owned()
    } else {
        format!("ended with status {status}")
    };
    let errors = ended.getattr("stderr")?;
    let said = String::from_utf8_lossy(errors.cast::<PyBytes>()?.as_bytes()).trim().to_owned();
    let passphrase = String::from_utf8_lossy(&line);
    let said = if line.is_empty() { said } else { said.replace(&*passphrase, "[removed]") };
    let error = refused(words, &what);
    let error = match said.as_str() {
        "" => error,
        said => error.with_hint(format!("It said: {}", excerpt(said))),
    };
    Err(raise(py, &error))
}

/// The exception holds what the command had printed until then: it is not passed on, nor kept as a
/// cause.
fn not_run(subprocess: &Bound<'_, PyModule>, words: &[String], error: PyErr) -> PyResult<PyErr> {
    let py = subprocess.py();
    let what = if error.is_instance(py, &subprocess.getattr("TimeoutExpired")?) {
        format!("did not end within {LIMIT} seconds")
    } else if error.is_instance_of::<PyOSError>(py) {
        let why = error.value(py).getattr("strerror")?;
        let why = if why.is_none() { String::new() } else { format!(": {}", why.str()?) };
        format!("could not be started{why}")
    } else {
        return Ok(error);
    };
    Ok(raise(py, &refused(words, &what)))
}

fn refused(words: &[String], what: &str) -> Error {
    let program = words.first().map_or("", String::as_str);
    Error::new(Kind::CredentialError, format!("password_command ({}) {what}.", excerpt(program)))
        .with_hint("Run it by hand: its first line is the passphrase.")
}

fn first_line(output: &[u8]) -> Zeroizing<Vec<u8>> {
    let line = output.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Zeroizing::new(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
}
