//! How far a feed has been read: what a [`crate::store::Target`] keeps for it as opaque bytes.

use super::feed::Feed;
use crate::error::Result;

/// The state of a feed in a store.
#[derive(Debug, Clone)]
pub struct State {}

impl State {
    /// The state in these bytes.
    ///
    /// # Errors
    /// `StoreCorrupt`, or `StoreError` for that of a newer siteline.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        todo!("{bytes:?}")
    }

    /// As a target keeps it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        todo!()
    }

    /// The feed as it is defined in the store.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        todo!()
    }

    /// The same state under another definition of the feed: times, page size and windows may
    /// change, what is asked may not. Unfinished chains are given up.
    ///
    /// # Errors
    /// `FeedChanged` naming what may not change.
    pub fn redefine(&self, feed: &Feed) -> Result<Self> {
        todo!("{feed:?}")
    }
}
