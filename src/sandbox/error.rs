//! The sandbox's own error: a sentence for the author of a test.

/// A sandbox was asked for something that it cannot do: a key that is none, points off their grid,
/// a socket that cannot be opened. The text says what was given and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(String);

impl SandboxError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
