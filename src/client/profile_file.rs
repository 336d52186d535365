//! The profile file. It may be a pipe, so each call reads it once, and Ctrl-C ends the wait.

use std::io;
use std::path::Path;

use crate::bridge::long_work::left_on_interrupt;
use crate::prelude::*;
use siteline_core::settings::{Environment, read_profiles};

pub(super) struct ProfileFile(Option<(PathBuf, io::Result<String>)>);

impl ProfileFile {
    pub(super) fn read(py: Python<'_>) -> PyResult<Self> {
        let Some(path) = guarded(|| Ok(Environment::of_process().config_file()))? else {
            return Ok(Self(None));
        };
        let theirs = path.clone();
        let text = left_on_interrupt(py, move || read_profiles(&theirs))?;
        Ok(Self(Some((path, text))))
    }

    pub(super) fn used<T>(&self, work: impl FnOnce(&Environment<'_>) -> T) -> T {
        let read = |path: &Path| match &self.0 {
            Some((known, text)) if known == path => copied(text),
            _ => read_profiles(path),
        };
        work(&Environment { read: &read, ..Environment::of_process() })
    }
}

fn copied(text: &io::Result<String>) -> io::Result<String> {
    text.as_ref().cloned().map_err(|error| {
        error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
    })
}
