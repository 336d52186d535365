//! [`Places`]: limits how many connections an agent has open at once.
//!
//! A connection starts as *unproven*, unless the operating system identifies its peer. It becomes
//! *proven* after its certificate or secret was checked, and *answered* after its whole request was
//! read. Each stage has its own limit, so unknown peers never use up the places of known peers. If
//! the unproven or the proven stage is full, a new connection closes the oldest one. An idle peer
//! therefore blocks nobody.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::clock::Clock;
use crate::lock::Mutex;

/// Limits for the connections and requests of an agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentLimits {
    /// Maximum number of connections from unknown peers.
    pub(super) unproven: usize,
    /// Maximum number of connections from known peers, until their request is read.
    pub(super) proven: usize,
    /// Maximum number of requests that are answered at once.
    pub(super) answered: usize,
    /// Maximum length of a request body, in bytes.
    pub(super) body: usize,
    /// Time limit for each step: handshake, head, body, and the peer's reading of the answer.
    pub(super) patience: Duration,
}

impl Default for AgentLimits {
    /// Together the connections stay below 1,024, the usual limit of open files per process. The
    /// rest is for the agent's own requests and files. The body limit fits a report on 256 pages.
    fn default() -> Self {
        Self {
            unproven: 256,
            proven: 192,
            answered: 256,
            body: 64 << 10,
            patience: Duration::from_secs(5),
        }
    }
}

/// Minimum age at which a newer connection may close a connection. A handshake is slower under
/// load.
const GRACE: Duration = Duration::from_millis(200);

/// Maximum number of refused peers that stay connected to read the reason.
const REFUSED: usize = 32;

/// The open connections of one agent, by stage.
pub(super) struct Places {
    refused: Stage,
    unproven: Stage,
    proven: Stage,
    answered: Arc<Semaphore>,
}

/// The connections of one stage, ordered from oldest to newest.
struct Stage {
    most: usize,
    open: Mutex<BTreeMap<u64, Waiting>>,
    left: Notify,
}

struct Waiting {
    since: Duration,
    close: Arc<Notify>,
}

/// The place of one connection.
pub(super) struct Visit {
    places: Arc<Places>,
    number: u64,
    close: Arc<Notify>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Places {
    pub(super) fn new(limits: AgentLimits) -> Self {
        Self {
            refused: Stage::new(REFUSED),
            unproven: Stage::new(limits.unproven),
            proven: Stage::new(limits.proven),
            answered: Arc::new(Semaphore::new(limits.answered)),
        }
    }

    /// Waits until another connection may be accepted. `is_known` is whether the operating system
    /// identifies its peer.
    pub(super) async fn room(&self, is_known: bool) {
        // The semaphore is fair, so requests that are already read are answered before a new
        // connection.
        let _free = self.answered.acquire().await;
        if is_known { self.proven.room().await } else { self.unproven.room().await }
    }

    /// Adds a new connection, and closes the oldest one if the stage is full. Each `number` must be
    /// greater than the one before.
    pub(super) fn enter(self: &Arc<Self>, number: u64, is_known: bool) -> Visit {
        let visit = self.visit(number);
        if is_known {
            self.proven.enter(&visit);
        } else {
            self.unproven.enter(&visit);
        }
        visit
    }

    /// Adds the connection of a refused peer; otherwise like [`enter`](Self::enter).
    pub(super) fn refuse(self: &Arc<Self>, number: u64) -> Visit {
        let visit = self.visit(number);
        self.refused.enter(&visit);
        visit
    }

    /// Closes the oldest connection that is not being answered. Refused peers are closed first,
    /// then unknown peers, then known peers.
    pub(super) fn close_oldest(&self) {
        let stages = [&self.refused, &self.unproven, &self.proven];
        let _closed = stages.into_iter().any(Stage::close_oldest);
    }

    fn visit(self: &Arc<Self>, number: u64) -> Visit {
        let (places, close, permit) = (Arc::clone(self), Arc::default(), Mutex::default());
        Visit { places, number, close, permit }
    }
}

impl Stage {
    fn new(most: usize) -> Self {
        Self { most, open: Mutex::default(), left: Notify::new() }
    }

    async fn room(&self) {
        let clock = Clock::system();
        loop {
            let left = self.left.notified();
            let oldest = {
                let open = self.open.lock();
                if open.len() < self.most {
                    return;
                }
                open.values().next().map(|waiting| waiting.since)
            };
            let Some(oldest) = oldest else { return };
            let age = clock.monotonic().saturating_sub(oldest);
            let Some(rest) = GRACE.checked_sub(age).filter(|rest| !rest.is_zero()) else { return };
            tokio::select! {
                () = left => {}
                () = clock.sleep(rest) => return,
            }
        }
    }

    fn enter(&self, visit: &Visit) {
        let waiting =
            Waiting { since: Clock::system().monotonic(), close: Arc::clone(&visit.close) };
        let mut open = self.open.lock();
        if open.len() >= self.most
            && let Some((_, oldest)) = open.pop_first()
        {
            oldest.close.notify_one();
        }
        open.insert(visit.number, waiting);
    }

    fn leave(&self, number: u64) {
        if self.open.lock().remove(&number).is_some() {
            self.left.notify_one();
        }
    }

    fn close_oldest(&self) -> bool {
        let oldest = self.open.lock().pop_first();
        oldest.is_some_and(|(_, waiting)| {
            waiting.close.notify_one();
            true
        })
    }
}

impl Visit {
    /// Moves the connection to the proven stage.
    pub(super) fn prove(&self) {
        self.places.unproven.leave(self.number);
        self.places.proven.enter(self);
    }

    /// Leaves the proven stage after the request was read, and waits until it may be answered.
    pub(super) async fn answer(&self) {
        self.places.proven.leave(self.number);
        let permit = Arc::clone(&self.places.answered).acquire_owned().await;
        *self.permit.lock() = permit.ok();
    }

    /// Releases the permit after the answer was written. A peer that keeps its connection open
    /// therefore delays no other request.
    pub(super) fn leave_answer(&self) {
        let permit = self.permit.lock().take();
        if permit.is_some() {
            self.places.proven.enter(self);
        }
    }

    /// Returns when the connection must close, for example to make room for a newer one.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let Places { refused, unproven, proven, .. } = &*self.places;
        for stage in [refused, unproven, proven] {
            stage.leave(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn places() -> Arc<Places> {
        Arc::new(Places::new(AgentLimits {
            unproven: 2,
            proven: 1,
            answered: 1,
            ..AgentLimits::default()
        }))
    }

    fn is_over(future: impl Future<Output = ()>) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn a_request_that_was_read_is_not_closed() {
        let places = places();
        let first = places.enter(0, true);
        assert!(is_over(first.answer()));
        let second = places.enter(1, true);
        assert!(!is_over(places.room(true)), "all answers are under way");
        assert!(!is_over(first.closed()) && !is_over(second.closed()));
        first.leave_answer();
        assert!(is_over(second.closed()), "the place was the only one");
        drop(second);
        assert!(!is_over(first.closed()));
        drop(first);
        assert!(is_over(places.room(true)));
    }

    #[test]
    fn without_descriptors_the_oldest_stranger_goes_first() {
        let places = places();
        let (known, stranger) = (places.enter(0, true), places.enter(1, false));
        places.close_oldest();
        assert!(is_over(stranger.closed()) && !is_over(known.closed()));
        places.close_oldest();
        assert!(is_over(known.closed()));
    }
}
