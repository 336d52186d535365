//! `password_command`: a passphrase that a command prints (`pass show plant`). It runs through
//! Python's `subprocess`, without a shell; what it prints is neither shown nor kept.

use crate::bridge::errors::IntoPyErr as _;
use pyo3::prelude::*;
use zeroize::Zeroizing;

use siteline_core::error::{Error, Kind, excerpt};

/// The time limit of the command, in seconds: the user may have to touch a hardware key.
const LIMIT: u32 = 60;

/// The words of a command; a text is split as a shell would split it.
pub(crate) fn words(command: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let module = command.py().import("siteline._passphrase")?;
    module.call_method1("words", (command,))?.extract()
}

/// Runs the command; returns the first line that it prints, without the line end.
pub(crate) fn printed(py: Python<'_>, words: &[String]) -> PyResult<Zeroizing<Vec<u8>>> {
    let run = py.import("siteline._passphrase")?.call_method1("run", (words, LIMIT))?;
    let (failure, line, said): (Option<String>, Vec<u8>, String) = run.extract()?;
    let Some(failure) = failure else { return Ok(Zeroizing::new(line)) };
    let program = excerpt(words.first().map_or("", String::as_str));
    let message = format!("password_command ({program}) {failure}.");
    let hint = match said.as_str() {
        "" => "Run it by hand: its first line is the passphrase.".to_owned(),
        said => format!("It said: {}", excerpt(said)),
    };
    Err(Error::new(Kind::CredentialError, message).with_hint(hint).into_py_err())
}
