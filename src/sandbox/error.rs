//! The sandbox's error, for the author of a test.

use std::{fmt, io};

use arrow_schema::ArrowError;

use crate::arrow::WrongColumn;
use crate::system;

/// A sandbox cannot do what was asked: the key is invalid, points are off their grid, a socket cannot
/// be opened. The text says what was given and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct SandboxError {
    text: String,
    /// What helps if the system lacks something for the moment.
    advice: Option<&'static str>,
}

impl From<ArrowError> for SandboxError {
    fn from(error: ArrowError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<WrongColumn> for SandboxError {
    fn from(error: WrongColumn) -> Self {
        Self::new(error.to_string())
    }
}

impl SandboxError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), advice: None }
    }

    /// An operation that the operating system refused.
    pub(crate) fn system(what: impl fmt::Display, error: &io::Error) -> Self {
        let text = format!("{what}: {}", system::reason(error));
        Self { text, advice: system::advice(error) }
    }

    /// What helps if the system lacks something for the moment, so that the same may succeed later.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        self.advice
    }
}
