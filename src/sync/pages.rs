//! The pages of a sync, and the writes that Python stores.

use std::collections::VecDeque;

use crate::frame::{PageSource, Synced};
use crate::prelude::*;
use siteline_core::client::Client;
use siteline_core::client::table::Provenance;
use siteline_core::data::Page;
use siteline_core::store::{Applied, Delivery};
use siteline_core::sync::{Batches, Feed, Run, TargetWrite};

/// The page with the query of its feed for the range of its chain.
pub(super) fn page_of(feed: &Feed, delivery: &Delivery, client: &Client) -> Result<PageSource> {
    let Delivery { ref page, batch_first, read_at, chain, is_only_chain, .. } = *delivery;
    let provenance = Provenance {
        query: feed.query(chain.start, chain.end)?,
        host: client.base_url().host().to_owned(),
        read_at,
        pages: page.sequence.saturating_sub(batch_first) + 1,
        resumed_after_pages: batch_first.saturating_sub(chain.first),
        page_size: page.report.page_size.clone(),
        not_listed: Vec::new(),
        through: Vec::new(),
        listed: Arc::clone(client.listed()),
        late: Arc::default(),
    };
    let synced = Some(Synced { feed: feed.name().to_owned(), chain, batch_first, is_only_chain });
    Ok(PageSource { page: Page::clone(page), provenance, synced })
}

/// The position of a sync; Python stores its pages.
#[derive(Default)]
pub(crate) struct Place {
    /// The write that Python has and did not confirm yet.
    pub(crate) handed: Option<TargetWrite>,
    /// The next writes.
    ready: VecDeque<TargetWrite>,
    batches: Option<Batches>,
    /// Whether only states are left. No page is read after that, because it would have a later state.
    pub(crate) is_read: bool,
}

impl Place {
    pub(crate) fn new(batch: Option<usize>) -> Self {
        Self { batches: batch.map(Batches::new), ..Self::default() }
    }

    pub(crate) fn next(&mut self, run: &Run) -> Result<Option<TargetWrite>> {
        if let Some(ready) = self.ready.pop_front() {
            return Ok(Some(ready));
        }
        while let Some(mut write) = run.next_write() {
            let Some(batches) = &mut self.batches else { return Ok(Some(write)) };
            let Some(delivery) = write.delivery.take() else {
                // The later state includes the earlier one.
                write.delivery = batches.take(&write.feed)?.and_then(|waited| waited.delivery);
                return Ok(Some(write));
            };
            if let Some(other) = batches.take_other(&write.feed, &delivery)? {
                return Ok(Some(other));
            }
            let state = std::mem::take(&mut write.state);
            if let Some(joined) = batches.add(&write.feed, delivery, state)? {
                (write.delivery, write.state) = (joined.delivery, joined.state);
                return Ok(Some(write));
            }
            run.written(write, Some(Applied::default()));
        }
        Ok(None)
    }

    pub(crate) fn put_back(&mut self) {
        self.ready.extend(self.handed.take());
        self.ready.rotate_right(1.min(self.ready.len()));
    }

    /// See [`super::SyncHandle::flush`].
    pub(crate) fn flush(&mut self, run: &Run, is_end: bool) -> Result<bool> {
        if let Some(batches) = &mut self.batches {
            self.ready.extend(batches.take_all()?);
        }
        if self.ready.is_empty() && is_end && !self.is_read {
            self.ready.extend(run.new_states()?);
            self.is_read = true;
        }
        Ok(!self.ready.is_empty())
    }
}
