//! Reads the profile file at most once per call, because it may be a pipe, perhaps without a writer.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;

use crate::bridge::long_work::left_on_interrupt;
use siteline_core::settings::{Environment, read_profiles};

/// The text of the profile file, and the Python exception raised while reading it.
pub(super) struct ProfileFile<'py> {
    py: Python<'py>,
    read: RefCell<Option<(PathBuf, io::Result<String>)>>,
    raised: RefCell<Option<PyErr>>,
}

impl<'py> ProfileFile<'py> {
    pub(super) fn new(py: Python<'py>) -> Self {
        Self { py, read: RefCell::default(), raised: RefCell::default() }
    }

    /// Runs `work` in the environment of this process.
    ///
    /// # Errors
    /// Returns `KeyboardInterrupt` if the user presses Ctrl-C while the file is read.
    pub(super) fn used<T>(&self, work: impl FnOnce(&Environment<'_>) -> T) -> PyResult<T> {
        let read = |path: &Path| self.text(path);
        let done = work(&Environment { read: &read, ..Environment::of_process() });
        self.raised.take().map_or(Ok(done), Err)
    }

    fn text(&self, path: &Path) -> io::Result<String> {
        if let Some((known, text)) = &*self.read.borrow()
            && known == path
        {
            return copied(text);
        }
        let theirs = path.to_owned();
        let text = match left_on_interrupt(self.py, move || read_profiles(&theirs)) {
            Ok(text) => text,
            Err(raised) => {
                self.raised.replace(Some(raised));
                return Err(io::ErrorKind::Interrupted.into());
            }
        };
        let copy = copied(&text);
        self.read.replace(Some((path.to_owned(), text)));
        copy
    }
}

/// A copy of the text, or of the error with the system's number, which explains it.
fn copied(text: &io::Result<String>) -> io::Result<String> {
    text.as_ref().cloned().map_err(|error| {
        error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
    })
}
