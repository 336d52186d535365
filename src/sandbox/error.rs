//! The sandbox's own error: a sentence for the author of a test.

use arrow_schema::ArrowError;

/// A sandbox was asked for something that it cannot do: a key that is none, points off their grid,
/// a socket that cannot be opened. The text says what was given and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(String);

impl From<ArrowError> for SandboxError {
    fn from(error: ArrowError) -> Self {
        Self::new(error.to_string())
    }
}

impl SandboxError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
