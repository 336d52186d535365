//! The sandbox's own error: a sentence for the author of a test.

use std::fmt;

/// A sandbox was asked for something that it cannot do: a key that is none, points off their grid,
/// a socket that cannot be opened. The text says what was given and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxError(String);

impl SandboxError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for SandboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SandboxError {}
