//! Joins pages of a chain into one page. A batch belongs to one chain, so the last batch of a chain
//! still marks the whole range as read.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pending_write::TargetWrite;
use crate::data::Page;
use crate::error::Result;
use crate::store::Delivery;

/// Pages that wait for further pages of their chain. They are lost if the process ends, because a
/// state is stored together with its points or not at all.
#[derive(Debug)]
pub struct Batches {
    /// The pages of a full batch; `usize::MAX` for all pages of a chain.
    most: usize,
    /// By feed: at least one page, and the state after the last page.
    waiting: BTreeMap<String, (Vec<Delivery>, Vec<u8>)>,
}

impl Batches {
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, waiting: BTreeMap::new() }
    }

    pub fn take(&mut self, feed: &str) -> Result<Option<TargetWrite>> {
        self.waiting.remove_entry(feed).map(joined).transpose()
    }

    /// The waiting pages of another chain of the feed. They must be stored before this page.
    pub fn take_other(&mut self, feed: &str, next: &Delivery) -> Result<Option<TargetWrite>> {
        let is_other = |(pages, _): &(Vec<Delivery>, _)| pages[0].chain != next.chain;
        if self.waiting.get(feed).is_some_and(is_other) { self.take(feed) } else { Ok(None) }
    }

    /// Returns the batch once it is full.
    pub fn add(
        &mut self,
        feed: &str,
        next: Delivery,
        state: Vec<u8>,
    ) -> Result<Option<TargetWrite>> {
        let is_last = next.page.is_last;
        let (pages, latest) = self.waiting.entry(feed.to_owned()).or_default();
        pages.push(next);
        *latest = state;
        if is_last || pages.len() >= self.most { self.take(feed) } else { Ok(None) }
    }

    pub fn take_all(&mut self) -> Result<Vec<TargetWrite>> {
        std::mem::take(&mut self.waiting).into_iter().map(joined).collect()
    }
}

fn joined((feed, (pages, state)): (String, (Vec<Delivery>, Vec<u8>))) -> Result<TargetWrite> {
    let batch_first = pages[0].batch_first;
    let last = pages[pages.len() - 1].clone();
    let pages = pages.into_iter().map(|one| Arc::unwrap_or_clone(one.page)).collect();
    let page = Arc::new(Page::joined(pages)?);
    let delivery = Some(Delivery { page, batch_first, ..last });
    Ok(TargetWrite { feed, delivery, state, completes: None })
}
