//! The interface that a sync writes to. [`crate::store::Store`] implements it, and so does the
//! adapter of a Python object (`siteline.StoreTarget`).

use std::any::Any;
use std::fmt::Debug;

use jiff::Timestamp;
use serde::Serialize;

use crate::data::Page;
use crate::error::Result;

/// Keeps points and states. Its calls may block.
pub trait Target: Send + Sync + Debug {
    /// Locks a feed for writing, until the value that it returns is dropped.
    ///
    /// # Errors
    /// `StoreBusy` at once where another writer has locked it.
    fn lock(&self, feed: &str) -> Result<Box<dyn Any + Send>>;

    /// The state that was applied last for a feed, byte for byte; `None` for one that is not there.
    ///
    /// # Errors
    /// `StoreError`s.
    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>>;

    /// Writes the points of a page and the state that follows from it, both or neither. Without a page
    /// only the state changes. A point is the same by series and timestamp; the higher sequence
    /// number wins, then the later row.
    ///
    /// # Errors
    /// `StoreError`s. Nothing was changed then.
    fn apply(&self, feed: &str, delivery: Option<&Delivery<'_>>, state: &[u8]) -> Result<Applied>;
}

/// One page on its way into a [`Target`].
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The page; its sequence number is the version of its points. Where it is the last of its
    /// chain, the chain has read its whole range.
    pub page: &'a Page,
    /// The service's time when the page came.
    pub read_at: Timestamp,
    /// The chain that it belongs to.
    pub chain: Span,
    /// The feed's bucket width.
    pub interval_seconds: Option<u32>,
}

/// The range of a chain that was begun without a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The sequence number of its first page.
    pub first: u64,
    /// Where its range begins.
    pub start: Timestamp,
    /// Where it ends.
    pub end: Timestamp,
}

/// What became of the points of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Points that were not there.
    pub inserted: u64,
    /// Points that were there with other values, or flagged.
    pub revised: u64,
    /// Points that were there with the same values, and those that lost against a newer request.
    pub unchanged: u64,
    /// Points in the chain's range that no page has brought since its first one, of whatever chain:
    /// with its last page.
    pub flagged: u64,
}
