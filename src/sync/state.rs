//! How far a feed has been read: what a [`crate::store::Target`] keeps for it as opaque bytes.

use jiff::Timestamp;

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

    /// When the newest chain began that was read to its end, by the service's time.
    #[must_use]
    pub fn newest_read(&self) -> Option<Timestamp> {
        todo!()
    }

    /// Everything from the feed's beginning up to here is settled.
    #[must_use]
    pub fn settled_through(&self) -> Option<Timestamp> {
        todo!()
    }

    /// The newest end of what has been read.
    #[must_use]
    pub fn read_through(&self) -> Option<Timestamp> {
        todo!()
    }

    /// How many pages a read of this range is expected to take, where pages have been seen.
    #[must_use]
    pub fn expected_pages(&self, start: Timestamp, end: Timestamp) -> Option<u64> {
        todo!("{start} {end}")
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
