//! The sandbox's error, for the author of a test.

use std::io;
use std::sync::Arc;

use arrow_schema::ArrowError;

use siteline_base::arrow::WrongColumn;

/// A sandbox cannot do what was asked: the key is invalid, points are off their grid, a socket cannot
/// be opened. The text gives the given and the expected value.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub struct SandboxError {
    text: String,
    #[source]
    refusal: Option<Arc<io::Error>>,
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
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), refusal: None }
    }

    pub fn system(what: impl Into<String>, error: io::Error) -> Self {
        Self { text: what.into(), refusal: Some(Arc::new(error)) }
    }

    /// The text does not contain this error.
    pub fn refusal(&self) -> Option<&io::Error> {
        self.refusal.as_deref()
    }
}
