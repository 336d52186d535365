//! [`Batched`]: a target that is given several pages of a chain as one. A batch is of one chain, so that
//! the last one of a chain still says that the whole range was read.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::data::Page;
use crate::error::Result;
use crate::lock::Mutex;
use crate::store::{Applied, ChainRange, Delivery, Target};

/// How many pages of a chain are applied as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// So many; 0 counts as 1.
    Pages(usize),
    /// All of a chain that a run reads.
    Chain,
}

/// Gives pages to a target batch by batch. What has not been given is lost where the process ends: a
/// state is given with its points or not at all.
#[derive(Debug)]
pub(super) struct Batched {
    target: Arc<dyn Target>,
    batch: Batch,
    /// By feed.
    waiting: Mutex<BTreeMap<String, Waiting>>,
}

/// Consecutive pages of a chain that wait for further ones, and the state after the last.
#[derive(Debug)]
struct Waiting {
    pages: Vec<Page>,
    read_at: Timestamp,
    chain: ChainRange,
    interval_seconds: Option<u32>,
    is_only_chain: bool,
    state: Vec<u8>,
}

impl Batched {
    pub(super) fn new(target: Arc<dyn Target>, batch: Batch) -> Self {
        Self { target, batch, waiting: Mutex::default() }
    }

    fn is_full(&self, pages: usize) -> bool {
        matches!(self.batch, Batch::Pages(most) if pages >= most)
    }

    fn take(&self, feed: &str) -> Option<Waiting> {
        self.waiting.lock().remove(feed)
    }

    /// Applies what waits, with this state or its own. An error about the values of a page names the
    /// range of the chain that waited: the page that came last may be of another one.
    fn write(&self, feed: &str, waiting: Waiting, state: Option<&[u8]>) -> Result<Applied> {
        let Waiting { pages, read_at, chain, interval_seconds, is_only_chain, state: own } =
            waiting;
        let batch_first = pages.first().map_or(chain.first, |page| page.sequence);
        let page = &Page::joined(pages)?;
        let delivery =
            Delivery { page, batch_first, read_at, chain, interval_seconds, is_only_chain };
        let applied = self.target.apply(feed, Some(&delivery), state.unwrap_or(&own));
        applied.map_err(|error| {
            error.with(|context| {
                if context.unstorable {
                    context.spans = vec![(chain.start, chain.end)];
                }
            })
        })
    }
}

impl Target for Batched {
    fn lock(&self, feed: &str) -> Result<Box<dyn Any + Send>> {
        self.target.lock(feed)
    }

    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>> {
        self.target.state(feed)
    }

    fn states(&self, feeds: &[&str]) -> Result<Vec<Option<Vec<u8>>>> {
        self.target.states(feeds)
    }

    /// What a batch changed is counted with its last page. After an error what waited is gone: the run
    /// must end, or give up the chain.
    fn apply(&self, feed: &str, delivery: Option<&Delivery<'_>>, state: &[u8]) -> Result<Applied> {
        let waiting = self.take(feed);
        let Some(delivery) = delivery else {
            // The later state says all that the earlier one did.
            return match waiting {
                Some(waiting) => self.write(feed, waiting, Some(state)),
                None => self.target.apply(feed, None, state),
            };
        };
        let Delivery { page, read_at, chain, interval_seconds, is_only_chain, .. } = *delivery;
        let (mut pages, before) = match waiting {
            Some(waiting) if waiting.chain == chain => (waiting.pages, Applied::default()),
            Some(other) => (Vec::new(), self.write(feed, other, None)?),
            None => (Vec::new(), Applied::default()),
        };
        pages.push(page.clone());
        let is_full = page.is_last || self.is_full(pages.len());
        let state = state.to_vec();
        let waiting = Waiting { pages, read_at, chain, interval_seconds, is_only_chain, state };
        if is_full {
            return Ok(before.plus(self.write(feed, waiting, None)?));
        }
        self.waiting.lock().insert(feed.to_owned(), waiting);
        Ok(before)
    }

    fn flush(&self) -> Vec<(String, Result<Applied>)> {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        let write = |(feed, waiting): (String, Waiting)| {
            let outcome = self.write(&feed, waiting, None);
            (feed, outcome)
        };
        waiting.into_iter().map(write).collect()
    }
}
