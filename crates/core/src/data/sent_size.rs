//! The page size of a read, which is decided once.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

/// The size is undecided until the service has accepted a request. Then it is the size that was
/// sent, or none. Clones share it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<u32>", into = "Option<u32>")]
pub struct SentSize(Arc<OnceLock<Option<u32>>>);

impl SentSize {
    /// `None` if undecided.
    pub fn get(&self) -> Option<Option<u32>> {
        self.0.get().copied()
    }

    /// Only the first call decides.
    pub fn set(&self, size: Option<u32>) {
        let _known = self.0.set(size);
    }
}

/// 0 means that no size was sent.
impl From<Option<u32>> for SentSize {
    fn from(size: Option<u32>) -> Self {
        let decided = size.map(|size| OnceLock::from(Some(size).filter(|size| *size > 0)));
        Self(Arc::new(decided.unwrap_or_default()))
    }
}

impl From<SentSize> for Option<u32> {
    fn from(size: SentSize) -> Self {
        size.get().map(Option::unwrap_or_default)
    }
}
