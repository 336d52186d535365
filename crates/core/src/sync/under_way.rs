//! A chain that a run reads, from its planned step to its last page.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;

use super::plan::PlanStep;
use super::unfinished::UnfinishedChain;
use crate::client::Spending;
use crate::client::page_request::PageReply;
use crate::clock::Clock;
use crate::data::Chain;

pub(super) struct UnderWay {
    pub(super) step: PlanStep,
    pub(super) chain: Chain,
    pub(super) record: UnfinishedChain,
    pub(super) begun_here: bool,
    pub(super) spending: Arc<Spending>,
    pub(super) sent: SentAt,
    /// The request for the next page, until the page has arrived.
    pub(super) request: Option<PageReply>,
}

/// The time before a request. The greater elapsed time of both clocks counts, because a monotonic
/// clock may stop while the machine sleeps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SentAt {
    pub(super) monotonic: Duration,
    pub(super) wall: Timestamp,
    /// The requests of the chain before this one.
    pub(super) requests: u64,
}

impl UnderWay {
    pub(super) fn new(
        step: PlanStep,
        chain: Chain,
        record: UnfinishedChain,
        spending: Spending,
    ) -> Self {
        let (begun_here, sent) = (record.bookmark.is_none(), SentAt::default());
        let spending = Arc::new(spending);
        Self { step, chain, record, begun_here, spending, sent, request: None }
    }

    /// The requests that were sent, with retries.
    pub(super) fn requests(&self) -> u64 {
        self.spending.requests.load(Ordering::Relaxed)
    }

    pub(super) fn note_time(&mut self, clock: &Clock) {
        let requests = self.requests();
        self.sent = SentAt { monotonic: clock.monotonic(), wall: clock.wall(), requests };
    }
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnderWay({:?})", self.step)
    }
}
