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
pub(super) enum PendingWrite {
    /// A page, and its chain after the page.
    Page {
        feed: usize,
        page: Arc<Page>,
        read_at: Timestamp,
        chain: UnfinishedChain,
        begun_here: bool,
    },
    /// The service rejected the cursor. The chain starts again.
    Restart { feed: usize, chain: UnfinishedChain },
    /// The service rejected the chain, perhaps for its length. The next chains are shorter.
    TooLong { feed: usize, range: Range },
    /// The chain was restarted too often, does not end, or brought values that the target cannot
    /// store. Its range is set aside, unless only its bookmark was rejected.
    Abandoned { feed: usize, chain: UnfinishedChain, error: Error, at: Timestamp },
    /// An audit has ended, and the state contains its findings. `settled` is the coverage that
    /// settles a range again that did not change.
    Audited { feed: usize, settled: Option<Coverage> },
}

/// A write for the target, as the caller of a run stores it.
#[derive(Debug)]
pub struct TargetWrite {
    pub feed: String,
    /// The page, or joined pages of one chain; `None` if only the state changes.
    pub delivery: Option<Delivery>,
    pub state: Vec<u8>,
    /// The pending write of the run that this one completes, and the state after it.
    pub(super) completes: Option<Box<(Arc<PendingWrite>, FeedState)>>,
}

impl TargetWrite {
    pub(super) fn from_state(state: &FeedState) -> Self {
        let feed = state.feed().name().to_owned();
        Self { feed, delivery: None, state: state.to_bytes(), completes: None }
    }
}

impl PendingWrite {
    pub(super) fn feed(&self) -> usize {
        match self {
            Self::Page { feed, .. }
            | Self::Restart { feed, .. }
            | Self::TooLong { feed, .. }
            | Self::Abandoned { feed, .. }
            | Self::Audited { feed, .. } => *feed,
        }
    }

    pub(super) fn chain(&self) -> Option<&UnfinishedChain> {
        match self {
            Self::Page { chain, .. }
            | Self::Restart { chain, .. }
            | Self::Abandoned { chain, .. } => Some(chain),
            Self::TooLong { .. } | Self::Audited { .. } => None,
        }
    }

    /// `state` is the state after the write.
    pub(super) fn target_write(self: Arc<Self>, state: FeedState) -> TargetWrite {
        let write = TargetWrite::from_state(&state);
        let delivery = self.delivery(&state);
        TargetWrite { delivery, completes: Some(Box::new((self, state))), ..write }
    }

    fn delivery(&self, state: &FeedState) -> Option<Delivery> {
        let Self::Page { page, read_at, chain, .. } = self else { return None };
        let (start, end) = chain.range.instants();
        Some(Delivery {
            page: Arc::clone(page),
            batch_first: page.sequence,
            read_at: *read_at,
            chain: ChainRange { first: chain.first, start, end },
            interval_seconds: state.feed().input().interval_seconds,
            is_only_chain: state
                .chains
                .iter()
                .all(|other| other.began.is_none() || other.first == chain.first),
        })
    }

    /// If this page ended a chain: its query, pages and points, and the points on the last page.
    pub(super) fn ended(&self, feed: &Feed) -> Option<(Query, u64, u64, u64)> {
        let Self::Page { page, chain, .. } = self else { return None };
        let query = feed.query_of(chain.range).ok().filter(|_| page.is_last)?;
        Some((query, chain.pages, chain.points, page.rows() as u64))
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
    record: &UnfinishedChain,
    error: Error,
    now: Timestamp,
) -> PendingWrite {
    if let Some(chain) = record.restarted(most_restarts(error.kind())) {
        return PendingWrite::Restart { feed, chain };
    }
    let chain = record.clone();
    if error.kind() == Kind::BookmarkError {
        return PendingWrite::Abandoned { feed, chain, error, at: now };
    }
    let more = match error.kind() {
        Kind::EndlessChain => {
            " If the range really needs this many pages, use a shorter window=: store.redefine(feed)."
        }
        _ => "",
    };
    // Other hints suggest reading the chain again, which has already been tried.
    let cause = match (error.kind(), &error.context().hint) {
        (Kind::RequestRejected, Some(hint)) => format!("{hint} "),
        _ => String::new(),
    };
    let hint = format!("{cause}{}{more}", set_aside_hint(chain.range, now));
    PendingWrite::Abandoned { feed, chain, error: error.with_hint(hint), at: now }
}

pub(super) fn set_aside_hint(range: Range, now: Timestamp) -> String {
    let ((start, end), until) = (range.instants(), set_aside_until(now));
    format!(
        "{start} to {end} is skipped until {until}. To read it earlier, use \
         sync(..., reread=(start, end))."
    )
}
