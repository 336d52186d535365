//! A chain that a run reads, from its planned step to its last page.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::plan::PlanStep;
use super::unfinished::UnfinishedChain;
use crate::client::Spending;
use crate::client::page_request::PageReply;
use crate::data::Chain;

pub(super) struct UnderWay {
    /// The step, with its remaining pages.
    pub(super) step: PlanStep,
    pub(super) spending: Arc<Spending>,
    /// `None` before it is opened.
    pub(super) open: Option<OpenChain>,
    pub(super) sent: SentAt,
    /// The request for the next page, until the page has arrived.
    pub(super) request: Option<PageReply>,
}

/// A chain that is ready to request pages.
pub(super) struct OpenChain {
    pub(super) chain: Chain,
    pub(super) record: UnfinishedChain,
    pub(super) begun_here: bool,
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
    pub(super) fn new(step: PlanStep, spending: Spending) -> Self {
        let spending = Arc::new(spending);
        Self { step, spending, open: None, sent: SentAt::default(), request: None }
    }
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnderWay({:?})", self.step)
    }
}
