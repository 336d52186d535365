//! The pages of a sync, and the writes that Python stores.

use std::collections::{HashMap, VecDeque};

use crate::frame::{PageSource, Synced};
use crate::prelude::*;
use siteline_core::client::table::Provenance;
use siteline_core::client::{Client, ListedIds};
use siteline_core::data::{Page, SentSize};
use siteline_core::store::{Applied, Delivery};
use siteline_core::sync::{Batch, Batches, Feed, Joined, NextWrite, Run};

pub(crate) struct SyncedPages {
    feeds: HashMap<String, Feed>,
    host: String,
    listed: Arc<ListedIds>,
}

impl SyncedPages {
    pub(crate) fn new(feeds: &[Feed], client: &Client) -> Self {
        let feeds = feeds.iter().map(|feed| (feed.name().to_owned(), feed.clone())).collect();
        let host = client.base_url().host().to_owned();
        Self { feeds, host, listed: Arc::clone(client.listed()) }
    }

    /// The query of the page is the range of its chain.
    pub(crate) fn page(&self, feed: &str, delivery: &Delivery) -> Result<PageSource> {
        let Delivery { page, batch_first, read_at, chain, is_only_chain, .. } = delivery;
        let (batch_first, read_at, chain, is_only_chain) =
            (*batch_first, *read_at, *chain, *is_only_chain);
        let known = self.feeds.get(feed).ok_or_else(|| {
            let message = format!("a page came for the feed {feed:?}, which was not asked for");
            Error::new(Kind::InternalError, message)
        })?;
        let provenance = Provenance {
            query: known.query(chain.start, chain.end)?,
            host: self.host.clone(),
            read_at,
            pages: page.sequence.saturating_sub(batch_first) + 1,
            resumed_after_pages: batch_first.saturating_sub(chain.first),
            page_size: SentSize::default(),
            not_listed: Vec::new(),
            through: Vec::new(),
            listed: Arc::clone(&self.listed),
            late: Arc::default(),
        };
        let synced = Some(Synced { feed: feed.to_owned(), chain, batch_first, is_only_chain });
        Ok(PageSource { page: Page::clone(page), provenance, synced })
    }
}

/// A write for Python.
pub(crate) enum Handed {
    /// The pending write of the run, merged with earlier pages of its chain.
    Write(Box<NextWrite>, Option<Joined>),
    /// Pages that waited for others. The run counts them as written.
    Waited(String, Joined),
    State(String, Vec<u8>),
}

impl Handed {
    pub(crate) fn feed(&self) -> &str {
        match self {
            Self::Write(write, _) => write.feed(),
            Self::Waited(feed, _) | Self::State(feed, _) => feed,
        }
    }

    pub(crate) fn state(&self) -> Vec<u8> {
        match self {
            Self::Write(write, _) => write.state(),
            Self::Waited(_, joined) => joined.state.clone(),
            Self::State(_, state) => state.clone(),
        }
    }

    pub(crate) fn joined(&self) -> Option<&Joined> {
        match self {
            Self::Write(_, joined) => joined.as_ref(),
            Self::Waited(_, joined) => Some(joined),
            Self::State(..) => None,
        }
    }

    /// `None` if only the state changes.
    pub(crate) fn delivery(&self) -> Option<Delivery> {
        match (self, self.joined()) {
            (_, Some(joined)) => Some(joined.delivery.clone()),
            (Self::Write(write, None), _) => write.delivery(),
            _ => None,
        }
    }
}

/// The position of a sync whose pages Python stores.
#[derive(Default)]
pub(crate) struct Place {
    /// The write that Python did not confirm yet.
    pub(crate) handed: Option<Handed>,
    ready: VecDeque<Handed>,
    batches: Option<Batches>,
    /// Whether only states are left. No page is read after that, because it would have a later state.
    pub(crate) is_read: bool,
}

impl Place {
    pub(crate) fn new(batch: Option<Batch>) -> Self {
        Self { batches: batch.map(Batches::new), ..Self::default() }
    }

    pub(crate) fn next(&mut self, run: &Run) -> Result<Option<Handed>> {
        if let Some(ready) = self.ready.pop_front() {
            return Ok(Some(ready));
        }
        while let Some(write) = run.next_write() {
            let Some(batches) = &mut self.batches else {
                return Ok(Some(Handed::Write(Box::new(write), None)));
            };
            let feed = write.feed().to_owned();
            let Some(delivery) = write.delivery() else {
                // The later state includes the earlier one.
                let joined = batches.take(&feed)?;
                return Ok(Some(Handed::Write(Box::new(write), joined)));
            };
            if let Some(other) = batches.take_other(&feed, &delivery)? {
                return Ok(Some(Handed::Waited(feed, other)));
            }
            if let Some(joined) = batches.add(&feed, delivery, write.state())? {
                return Ok(Some(Handed::Write(Box::new(write), Some(joined))));
            }
            run.written(write, Some(Applied::default()));
        }
        Ok(None)
    }

    /// Returns a write to the queue.
    pub(crate) fn put_back(&mut self) {
        self.ready.extend(self.handed.take());
        self.ready.rotate_right(1.min(self.ready.len()));
    }

    /// Queues the pages that wait for a full batch; at the end, the states without a page. Returns false if
    /// there are none.
    pub(crate) fn flush(&mut self, run: &Run, is_end: bool) -> Result<bool> {
        if let Some(batches) = &mut self.batches {
            let waited = batches.take_all()?.into_iter();
            self.ready.extend(waited.map(|(feed, joined)| Handed::Waited(feed, joined)));
        }
        if self.ready.is_empty() && is_end && !self.is_read {
            let states = run.new_states()?.into_iter();
            self.is_read = true;
            self.ready.extend(states.map(|(feed, state)| Handed::State(feed, state)));
        }
        Ok(!self.ready.is_empty())
    }
}
