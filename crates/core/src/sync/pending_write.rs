//! What a run has to apply to its target next: a page, or a change of a chain.

use std::sync::Arc;

use jiff::Timestamp;

use super::coverage::Coverage;
use super::feed::Feed;
use super::given_up::set_aside_until;
use super::ranges::Range;
use super::state::FeedState;
use super::unfinished::UnfinishedChain;
use crate::data::{Page, Query};
use crate::error::{Error, Kind};
use crate::store::{ChainRange, Delivery};

/// A page, or a change of a chain, that has not been applied to the target.
#[derive(Debug)]
pub(super) enum PendingWrite {
    /// A page, and its chain after that page.
    Page {
        feed: usize,
        page: Arc<Page>,
        read_at: Timestamp,
        chain: UnfinishedChain,
        begun_here: bool,
    },
    /// The cursor was rejected: the chain begins again.
    Restart { feed: usize, chain: UnfinishedChain },
    /// The service rejected the chain, perhaps for its length: the next plan has shorter ones.
    TooLong { feed: usize, range: Range },
    /// The chain was restarted too often, or does not end, or the target cannot store its values: its
    /// range is set aside, unless only its bookmark was refused.
    Abandoned { feed: usize, chain: UnfinishedChain, error: Error, at: Timestamp },
    /// An audit has ended, and the state has what it found. Where a settled range is as it was, this is
    /// the coverage in which it is settled again.
    Audited { feed: usize, settled: Option<Coverage> },
}

/// A pending write, and the state that is kept with it.
#[derive(Debug)]
pub struct NextWrite {
    pub(super) pending: Arc<PendingWrite>,
    pub(super) state: FeedState,
}

impl NextWrite {
    /// The name of its feed.
    #[must_use]
    pub fn feed(&self) -> &str {
        self.state.feed().name()
    }

    /// The state after it, encoded.
    #[must_use]
    pub fn state(&self) -> Vec<u8> {
        self.state.to_bytes()
    }

    /// The page; `None` where only the state changes.
    #[must_use]
    pub fn delivery(&self) -> Option<Delivery> {
        self.pending.delivery(&self.state)
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

    /// The chain that it is about, where it has one.
    pub(super) fn chain(&self) -> Option<&UnfinishedChain> {
        match self {
            Self::Page { chain, .. }
            | Self::Restart { chain, .. }
            | Self::Abandoned { chain, .. } => Some(chain),
            Self::TooLong { .. } | Self::Audited { .. } => None,
        }
    }

    /// The delivery for the target, where this is a page; `state` is that after it.
    fn delivery(&self, state: &FeedState) -> Option<Delivery> {
        let Self::Page { page, read_at, chain, .. } = self else { return None };
        let (start, end) = chain.range().instants();
        let span = ChainRange { first: chain.first, start, end };
        Some(Delivery {
            page: Arc::clone(page),
            batch_first: page.sequence,
            read_at: *read_at,
            chain: span,
            interval_seconds: state.feed().input().interval_seconds,
            is_only_chain: state
                .chains
                .iter()
                .all(|other| other.began.is_none() || other.first == chain.first),
        })
    }

    /// Where this page ended a chain: its query, its pages, its points, and those on the last page.
    pub(super) fn ended(&self, feed: &Feed) -> Option<(Query, u64, u64, u64)> {
        let Self::Page { page, chain, .. } = self else { return None };
        let query = feed.query_of(chain.range()).ok().filter(|_| page.is_last)?;
        Some((query, chain.pages, chain.points, page.rows() as u64))
    }
}

/// How often a chain begins again after a cursor that cannot be used. A chain without an end does not:
/// that would cost as many pages again.
fn most_restarts(kind: Kind) -> u32 {
    match kind {
        Kind::EndlessChain => 0,
        Kind::RequestRejected => 1,
        _ => 2,
    }
}

/// The pending write after a cursor that cannot be used: the chain begins again, or is given up.
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
            " If it does need so many pages, give the feed a shorter window=: store.redefine(feed)."
        }
        _ => "",
    };
    // Other hints are about reading the chain again, which was tried.
    let cause = match (error.kind(), &error.context().hint) {
        (Kind::RequestRejected, Some(hint)) => format!("{hint} "),
        _ => String::new(),
    };
    let hint = format!("{cause}{}{more}", set_aside_hint(chain.range(), now));
    PendingWrite::Abandoned { feed, chain, error: error.with_hint(hint), at: now }
}

/// Says that a range is set aside from now on.
pub(super) fn set_aside_hint(range: Range, now: Timestamp) -> String {
    let ((start, end), until) = (range.instants(), set_aside_until(now));
    format!(
        "{start} to {end} is skipped until {until}: no sync reads it before, unless \
         sync(..., reread=(start, end)) asks for it."
    )
}
