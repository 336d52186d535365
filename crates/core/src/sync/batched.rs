//! [`Batches`]: pages of a chain that are stored as one. A batch is of one chain, so that the last one of a
//! chain still says that the whole range was read.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::data::Page;
use crate::error::Result;
use crate::store::Delivery;

/// How many pages of a chain are stored as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// So many; 0 counts as 1.
    Pages(usize),
    /// All of a chain that a run reads.
    Chain,
}

/// Consecutive pages of a chain, joined to one page, and the state after the last of them.
#[derive(Debug)]
pub struct Joined {
    /// The page as a target gets it.
    pub delivery: Delivery,
    /// The state to store with the page.
    pub state: Vec<u8>,
}

/// Pages that wait for further ones of their chain. They are lost where the process ends: a state is
/// stored with its points or not at all.
#[derive(Debug)]
pub struct Batches {
    batch: Batch,
    /// By feed: at least one page, and the state after the last of them.
    waiting: BTreeMap<String, (Vec<Delivery>, Vec<u8>)>,
}

impl Batches {
    /// Nothing waits yet.
    #[must_use]
    pub fn new(batch: Batch) -> Self {
        Self { batch, waiting: BTreeMap::new() }
    }

    /// The waiting pages of a feed.
    pub fn take(&mut self, feed: &str) -> Result<Option<Joined>> {
        self.waiting.remove(feed).map(joined).transpose()
    }

    /// The waiting pages of another chain of the feed, which are stored before this page.
    pub fn take_other(&mut self, feed: &str, next: &Delivery) -> Result<Option<Joined>> {
        let is_other = |(pages, _): &(Vec<Delivery>, _)| pages[0].chain != next.chain;
        if self.waiting.get(feed).is_some_and(is_other) { self.take(feed) } else { Ok(None) }
    }

    /// Adds a page of the chain that waits, if one does. Returns the batch once it is full.
    pub fn add(&mut self, feed: &str, next: Delivery, state: Vec<u8>) -> Result<Option<Joined>> {
        let is_last = next.page.is_last;
        let (pages, latest) = self.waiting.entry(feed.to_owned()).or_default();
        pages.push(next);
        *latest = state;
        let is_full = matches!(self.batch, Batch::Pages(most) if pages.len() >= most);
        if is_last || is_full { self.take(feed) } else { Ok(None) }
    }

    /// All waiting pages, each with its feed.
    pub fn take_all(&mut self) -> Result<Vec<(String, Joined)>> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.map(|(feed, waited)| Ok((feed, joined(waited)?))).collect()
    }
}

fn joined((pages, state): (Vec<Delivery>, Vec<u8>)) -> Result<Joined> {
    let batch_first = pages[0].batch_first;
    let last = pages[pages.len() - 1].clone();
    let pages = pages.into_iter().map(|one| Arc::unwrap_or_clone(one.page)).collect();
    let page = Arc::new(Page::joined(pages)?);
    Ok(Joined { delivery: Delivery { page, batch_first, ..last }, state })
}
