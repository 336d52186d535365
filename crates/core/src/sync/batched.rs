//! [`Batches`]: pages of a chain that are stored as one. A batch is of one chain, so that the last one of a
//! chain still says that the whole range was read.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::data::Page;
use crate::error::Result;
use crate::store::{ChainRange, Delivery};

/// How many pages of a chain are stored as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// So many; 0 counts as 1.
    Pages(usize),
    /// All of a chain that a run reads.
    Chain,
}

/// Consecutive pages of a chain that are stored as one page, and the state after the last of them.
#[derive(Debug)]
pub struct Joined {
    /// At least one page. Only one after [`Joined::finish`].
    pages: Vec<Page>,
    first: u64,
    read_at: Timestamp,
    /// The chain of the pages.
    pub chain: ChainRange,
    interval_seconds: Option<u32>,
    is_only_chain: bool,
    /// The state to store with the page.
    pub state: Vec<u8>,
}

impl Joined {
    fn finish(mut self) -> Result<Self> {
        self.pages = vec![Page::joined(self.pages)?];
        Ok(self)
    }

    /// The page as a target gets it.
    #[must_use]
    pub fn delivery(&self) -> Delivery<'_> {
        let Self { read_at, chain, interval_seconds, is_only_chain, .. } = *self;
        let (page, batch_first) = (&self.pages[0], self.first);
        Delivery { page, batch_first, read_at, chain, interval_seconds, is_only_chain }
    }
}

/// Pages that wait for further ones of their chain. They are lost where the process ends: a state is
/// stored with its points or not at all.
#[derive(Debug)]
pub struct Batches {
    batch: Batch,
    /// By feed.
    waiting: BTreeMap<String, Joined>,
}

impl Batches {
    /// Nothing waits yet.
    #[must_use]
    pub fn new(batch: Batch) -> Self {
        Self { batch, waiting: BTreeMap::new() }
    }

    /// The waiting pages of a feed.
    ///
    /// # Errors
    /// `InternalError` where pages cannot be joined.
    pub fn take(&mut self, feed: &str) -> Result<Option<Joined>> {
        self.waiting.remove(feed).map(Joined::finish).transpose()
    }

    /// The waiting pages of another chain of the feed, which are stored before this page.
    ///
    /// # Errors
    /// As [`Batches::take`].
    pub fn take_other(&mut self, feed: &str, next: &Delivery<'_>) -> Result<Option<Joined>> {
        let is_other = |waiting: &Joined| waiting.chain != next.chain;
        if self.waiting.get(feed).is_some_and(is_other) { self.take(feed) } else { Ok(None) }
    }

    /// Adds a page of the chain that waits, if one does. Returns the batch once it is full.
    ///
    /// # Errors
    /// As [`Batches::take`].
    pub fn add(
        &mut self,
        feed: &str,
        next: &Delivery<'_>,
        state: Vec<u8>,
    ) -> Result<Option<Joined>> {
        let Delivery { page, read_at, chain, interval_seconds, is_only_chain, .. } = *next;
        let (first, mut pages) = match self.waiting.remove(feed) {
            Some(waiting) => (waiting.first, waiting.pages),
            None => (page.sequence, Vec::new()),
        };
        pages.push(page.clone());
        let is_full = matches!(self.batch, Batch::Pages(most) if pages.len() >= most);
        let joined =
            Joined { pages, first, read_at, chain, interval_seconds, is_only_chain, state };
        if page.is_last || is_full {
            return joined.finish().map(Some);
        }
        self.waiting.insert(feed.to_owned(), joined);
        Ok(None)
    }

    /// All waiting pages, each with its feed.
    ///
    /// # Errors
    /// As [`Batches::take`].
    pub fn take_all(&mut self) -> Result<Vec<(String, Joined)>> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.map(|(feed, joined)| Ok((feed, joined.finish()?))).collect()
    }
}
