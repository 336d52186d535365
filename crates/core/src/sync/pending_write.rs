//! The next write of a run to its target.

use std::sync::Arc;

use jiff::Timestamp;

use super::coverage::Coverage;
use super::feed::Feed;
use super::given_up::set_aside_until;
use super::state::FeedState;
use super::unfinished::UnfinishedChain;
use crate::data::ranges::Range;
use crate::data::{Page, Query};
use crate::error::{Error, Kind};
use crate::store::{ChainRange, Delivery};

/// A page, or a change of a chain, that has not been applied to the target.
#[derive(Debug)]
pub(super) struct PendingWrite {
    pub(super) feed: usize,
    pub(super) chain: UnfinishedChain,
    pub(super) change: Change,
}

#[derive(Debug)]
pub(super) enum Change {
    /// A page. The chain is the one after it.
    Page { page: Arc<Page>, read_at: Timestamp, begun_here: bool },
    /// The service rejected the cursor. The chain starts again.
    Restart,
    /// The service rejected the chain, perhaps for its length. The next chains are shorter.
    TooLong,
    /// The chain was restarted too often, does not end, or brought values that the target cannot
    /// store. Its range is set aside, unless only its bookmark was rejected.
    Abandoned { error: Error, at: Timestamp },
    /// An audit has ended, and the state contains its findings. `settled` is the coverage that
    /// settles a range again that did not change.
    Audited { settled: Option<Coverage> },
}

/// A write for the target, as the caller of a run stores it.
#[derive(Debug)]
pub struct TargetWrite {
    pub feed: String,
    /// The page, or joined pages of one chain; `None` if only the state changes.
    pub delivery: Option<Delivery>,
    pub state: Vec<u8>,
    /// The state after the run's first pending write, which this one completes.
    pub(super) completes: Option<FeedState>,
}

impl TargetWrite {
    pub(super) fn from_state(state: &FeedState) -> Self {
        let feed = state.feed().name().to_owned();
        Self { feed, delivery: None, state: state.to_bytes(), completes: None }
    }
}

impl PendingWrite {
    /// `state` is the state after the write.
    pub(super) fn target_write(&self, state: FeedState) -> TargetWrite {
        let write = TargetWrite::from_state(&state);
        TargetWrite { delivery: self.delivery(&state), completes: Some(state), ..write }
    }

    fn delivery(&self, state: &FeedState) -> Option<Delivery> {
        let Change::Page { page, read_at, .. } = &self.change else { return None };
        let ((start, end), first) = (self.chain.range.instants(), self.chain.first);
        let is_only = |other: &UnfinishedChain| other.began.is_none() || other.first == first;
        Some(Delivery {
            page: Arc::clone(page),
            batch_first: page.sequence,
            read_at: *read_at,
            chain: ChainRange { first, start, end },
            interval_seconds: state.feed().input().interval_seconds,
            is_only_chain: state.chains.iter().all(is_only),
        })
    }

    /// If this page ended a chain: its query, pages and points, and the points on the last page.
    pub(super) fn ended(&self, feed: &Feed) -> Option<(Query, u64, u64, u64)> {
        let Change::Page { page, .. } = &self.change else { return None };
        let query = feed.query_of(self.chain.range).ok().filter(|_| page.is_last)?;
        Some((query, self.chain.pages, self.chain.points, page.rows() as u64))
    }
}

/// The number of restarts after an unusable cursor. A chain without an end is not restarted,
/// because that would cost the same pages again.
fn most_restarts(kind: Kind) -> u32 {
    match kind {
        Kind::EndlessChain => 0,
        Kind::RequestRejected => 1,
        _ => 2,
    }
}

/// After an unusable cursor, the chain starts again or is given up.
pub(super) fn after_dead_cursor(
    feed: usize,
    chain: UnfinishedChain,
    error: Error,
    now: Timestamp,
) -> PendingWrite {
    if let Some(chain) = chain.restarted(most_restarts(error.kind())) {
        return PendingWrite { feed, chain, change: Change::Restart };
    }
    // Other hints suggest reading the chain again, which has already been tried.
    let aside = set_aside_hint(chain.range, now);
    let hint = match (error.kind(), &error.context().hint) {
        (Kind::RequestRejected, Some(cause)) => format!("{cause} {aside}"),
        (Kind::EndlessChain, _) => format!(
            "{aside} If the range really needs this many pages, use a shorter window=: \
             store.redefine(feed)."
        ),
        _ => aside,
    };
    let error = if error.kind() == Kind::BookmarkError { error } else { error.with_hint(hint) };
    PendingWrite { feed, chain, change: Change::Abandoned { error, at: now } }
}

pub(super) fn set_aside_hint(range: Range, now: Timestamp) -> String {
    let ((start, end), until) = (range.instants(), set_aside_until(now));
    format!(
        "{start} to {end} is skipped until {until}. To read it earlier, use \
         sync(..., reread=(start, end))."
    )
}
