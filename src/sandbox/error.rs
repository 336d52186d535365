//! The sandbox's error, for the author of a test.

use arrow_schema::ArrowError;

use crate::arrow::WrongColumn;

/// A sandbox cannot do what was asked: the key is invalid, points are off their grid, a socket cannot
/// be opened. The text says what was given and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(String);

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
        Self(text.into())
    }
}
