//! The service's opaque cursor, sent back byte for byte. It is never decoded, built or shown.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest;

/// Identifies a cursor without revealing it: 16 bytes of its SHA-256.
pub(super) type CursorHash = [u8; 16];

/// Created only from pages and bookmarks. `Display` prints a short hash, `cursor#1a2b3c4d`.
#[derive(Clone, PartialEq, Eq)]
pub struct Cursor(Arc<str>);

impl Cursor {
    pub(super) fn new(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// Must not appear in any text.
    pub(super) fn secret(&self) -> &str {
        &self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn hash(&self) -> CursorHash {
        let digest = digest::digest(&digest::SHA256, self.0.as_bytes());
        digest.as_ref().first_chunk().copied().unwrap_or_default()
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cursor#")?;
        self.hash()[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
