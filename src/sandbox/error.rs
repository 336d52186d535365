//! The sandbox's error, for the author of a test.

/// A sandbox cannot do what was asked: the key is invalid, points are off their grid, a socket cannot
/// be opened. The text says what was given and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(String);

impl SandboxError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
