//! The chains that a run follows, each with its request under way.

use std::fmt;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use jiff::Timestamp;

use super::unfinished::UnfinishedChain;
use crate::client::page_request::{PageReply, Sender};
use crate::clock::Clock;
use crate::data::{Chain, Decoded};
use crate::error::{Error, Result};

/// A chain that is being followed.
#[derive(Debug)]
pub(super) struct Following {
    pub(super) chain: Chain,
    pub(super) feed: usize,
    pub(super) record: UnfinishedChain,
    pub(super) begun_here: bool,
    pub(super) sender: Sender,
    pub(super) request: Option<SentRequest>,
}

/// The request for the next page of a chain, from before it is sent until its page is looked at.
pub(super) struct SentRequest {
    sent: SentAt,
    /// The requests of the chain before this one.
    before: u64,
    reply: PageReply,
}

/// The moment before a request, by two clocks. The greater elapsed time counts: a monotonic clock
/// may stop while the machine sleeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentAt {
    pub(super) monotonic: Duration,
    pub(super) wall: Timestamp,
}

/// What has arrived for a chain.
pub(super) struct Arrival {
    /// The place of its chain among those that are followed.
    pub(super) place: usize,
    pub(super) sent: SentAt,
    /// When it arrived, by the service's time.
    pub(super) read_at: Timestamp,
    /// Whether a request was made: the allowance may have refused it.
    pub(super) was_sent: bool,
    /// The reply as [`Chain::accept`] takes it.
    pub(super) reply: Result<(Bytes, Decoded)>,
}

/// The chains that a run follows, in the order in which they were begun.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) chains: Vec<Following>,
    /// The error that the run fails with when the requests under way have ended: no other is sent.
    pub(super) failed: Option<Error>,
}

impl Following {
    /// Asks for the next page, as a task where others are under way beside it. An error is one of the
    /// chain, of which nothing was sent.
    pub(super) fn request(&mut self, clock: &Clock, in_background: bool) -> Result<()> {
        let Some(wire) = self.chain.wire()? else { return Ok(()) };
        let sent = SentAt { monotonic: clock.monotonic(), wall: clock.wall() };
        let before = self.sender.requests();
        let (sender, decoding) = (self.sender.clone(), self.chain.decoding());
        let reply = if in_background {
            sender.in_background(wire, decoding)
        } else {
            sender.in_place(wire, decoding)
        };
        self.request = Some(SentRequest { sent, before, reply });
        Ok(())
    }
}

impl Followed {
    /// The number of requests under way, and of pages that have arrived and were not looked at.
    pub(super) fn requests(&self) -> usize {
        self.chains.iter().filter(|one| one.request.is_some()).count()
    }

    /// Waits for the next page of any chain; of those that have arrived, of the chain begun first.
    pub(super) async fn arrival(&mut self) -> Arrival {
        std::future::poll_fn(|context| {
            for (place, one) in self.chains.iter_mut().enumerate() {
                let Some(request) = &mut one.request else { continue };
                if let Poll::Ready((decoded, read_at)) = request.reply.poll_unpin(context) {
                    let (sent, before) = (request.sent, request.before);
                    one.request = None;
                    let was_sent = one.sender.requests() > before;
                    let reply = decoded.map(|decoded| (Bytes::new(), decoded));
                    return Poll::Ready(Arrival { place, sent, read_at, was_sent, reply });
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Drops the requests under way, and with them their connections. The chains can ask again.
    pub(super) fn drop_requests(&mut self) -> Vec<SentRequest> {
        self.chains.iter_mut().filter_map(|one| one.request.take()).collect()
    }
}

/// Drops the requests under way where a wait for them is given up.
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

impl fmt::Debug for SentRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SentRequest({})", self.sent.wall)
    }
}
