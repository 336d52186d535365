//! The chains that a run follows, each with its request under way.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt as _;
use jiff::Timestamp;

use super::unfinished::UnfinishedChain;
use crate::client::Spending;
use crate::client::page_request::{Fetched, PageReply};
use crate::data::Chain;
use crate::error::Error;

/// A chain that is being followed.
pub(super) struct Following {
    pub(super) chain: Chain,
    pub(super) feed: usize,
    pub(super) record: UnfinishedChain,
    pub(super) begun_here: bool,
    pub(super) spending: Arc<Spending>,
    /// When the last request was sent.
    pub(super) sent: SentAt,
    /// The request for the next page, from before it is sent until its page is looked at.
    pub(super) request: Option<PageReply>,
}

/// The moment before a request, by two clocks. The greater elapsed time counts: a monotonic clock
/// may stop while the machine sleeps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SentAt {
    pub(super) monotonic: Duration,
    pub(super) wall: Timestamp,
    /// The requests of the chain before this one.
    pub(super) requests: u64,
}

/// The chains that a run follows, in the order in which they were begun.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) chains: Vec<Following>,
    /// The error that the run fails with when the requests under way have ended: no other is sent.
    pub(super) failed: Option<Error>,
}

impl Followed {
    /// The number of requests under way, and of pages that have arrived and were not looked at.
    pub(super) fn requests(&self) -> usize {
        self.chains.iter().filter(|one| one.request.is_some()).count()
    }

    /// Waits for the next page of any chain. Returns the place of the chain, the page, and the time of its
    /// arrival. If several pages have arrived, the chain that began first comes first.
    pub(super) async fn arrival(&mut self) -> (usize, Fetched, Timestamp) {
        std::future::poll_fn(|context| {
            for (place, one) in self.chains.iter_mut().enumerate() {
                let Some(request) = &mut one.request else { continue };
                if let Poll::Ready((fetched, read_at)) = request.poll_unpin(context) {
                    one.request = None;
                    return Poll::Ready((place, fetched, read_at));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Drops the requests under way, and with them their connections. The chains can ask again.
    pub(super) fn drop_requests(&mut self) -> Vec<PageReply> {
        self.chains.iter_mut().filter_map(|one| one.request.take()).collect()
    }
}

/// Drops the requests under way if a wait for them is cancelled.
pub(super) struct Waiting<'a> {
    pub(super) followed: &'a mut Followed,
    pub(super) is_over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            drop(self.followed.drop_requests());
        }
    }
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Following({:?})", self.record)
    }
}
