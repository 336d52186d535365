//! [`Places`]: limits how many connections an agent has open at once.
//!
//! Each connection has a [`Rank`]. If too many are open, the oldest one of the lowest rank is
//! closed, so idle or unknown peers keep no known peer out. A connection is not closed after its
//! whole request was read. Such connections have another limit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::lock::Mutex;

/// Limits for the connections and requests of an agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentLimits {
    /// Maximum number of connections until their request is read.
    pub(super) connections: usize,
    /// Maximum number of requests that are answered at once.
    pub(super) answered: usize,
    /// Maximum length of a request, in bytes.
    pub(super) request: usize,
    /// Time limit for each step: handshake, greeting, request, and the peer's reading of the answer.
    pub(super) patience: Duration,
}

impl Default for AgentLimits {
    /// Together the connections stay below 1,024, the usual limit of open files per process. The
    /// rest is for the agent's own requests and files. The limit of a request fits a report on 256 pages.
    fn default() -> Self {
        Self {
            connections: 448,
            answered: 256,
            request: 64 << 10,
            patience: Duration::from_secs(5),
        }
    }
}

/// The trust in the peer of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Nothing yet.
    Unproven,
    /// The operating system, a certificate or a secret identifies it.
    Proven,
}

/// The open connections of one agent.
pub(super) struct Places {
    most: usize,
    /// The connections until their request is read, from the first one to close.
    open: Mutex<BTreeMap<(Rank, u64), Arc<Notify>>>,
    answered: Semaphore,
}

/// The place of one connection.
pub(super) struct Visit {
    places: Arc<Places>,
    number: u64,
    close: Arc<Notify>,
}

impl Places {
    pub(super) fn new(limits: AgentLimits) -> Self {
        let (most, answered) = (limits.connections, Semaphore::new(limits.answered));
        Self { most, open: Mutex::default(), answered }
    }

    /// Waits until another connection may be accepted. The semaphore is fair, so requests that are
    /// already read are answered first.
    pub(super) async fn room(&self) {
        let _free = self.answered.acquire().await;
    }

    /// Adds a new connection. Each `number` must be greater than the one before.
    pub(super) fn enter(self: &Arc<Self>, number: u64, rank: Rank) -> Visit {
        let visit = Visit { places: Arc::clone(self), number, close: Arc::default() };
        visit.stay(rank);
        visit
    }

    /// Closes the oldest connection of the lowest rank that is not being answered.
    pub(super) fn close_oldest(&self) {
        if let Some((_, close)) = self.open.lock().pop_first() {
            close.notify_one();
        }
    }
}

impl Visit {
    /// Moves the connection to this rank. If too many are open, the oldest one of the lowest rank is
    /// closed, or this one if its rank is the lowest.
    fn stay(&self, rank: Rank) {
        self.leave();
        let mut open = self.places.open.lock();
        if open.len() >= self.places.most {
            match open.first_entry() {
                Some(oldest) if oldest.key().0 <= rank => oldest.remove().notify_one(),
                _ => return self.close.notify_one(),
            }
        }
        open.insert((rank, self.number), Arc::clone(&self.close));
    }

    fn leave(&self) {
        self.places.open.lock().retain(|(_, number), _| *number != self.number);
    }

    pub(super) fn prove(&self) {
        self.stay(Rank::Proven);
    }

    /// Waits until the request, which was read, may be answered. The permit is for the answer; a
    /// peer that keeps its connection open afterwards delays no other request.
    pub(super) async fn answer(&self) -> Option<SemaphorePermit<'_>> {
        self.leave();
        self.places.answered.acquire().await.ok()
    }

    /// Returns when the connection must close, for example to make room for a newer one.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn places() -> Arc<Places> {
        let limits = AgentLimits { connections: 3, answered: 1, ..AgentLimits::default() };
        Arc::new(Places::new(limits))
    }

    fn is_over<T>(future: impl Future<Output = T>) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_new_connection_closes_the_oldest_of_the_lowest_rank() {
        let places = places();
        let known = places.enter(0, Rank::Proven);
        let strangers: Vec<_> = (1..5).map(|number| places.enter(number, Rank::Unproven)).collect();
        let closed: Vec<_> = strangers.iter().map(|visit| is_over(visit.closed())).collect();
        assert_eq!(closed, [true, true, false, false]);
        strangers[3].prove();
        let _third = places.enter(6, Rank::Proven);
        assert!(is_over(strangers[2].closed()) && !is_over(known.closed()));
        let stranger = places.enter(7, Rank::Unproven);
        assert!(is_over(stranger.closed()), "a stranger takes no place of a known peer");
        let _fourth = places.enter(8, Rank::Proven);
        assert!(is_over(known.closed()) && !is_over(strangers[3].closed()));
    }

    #[test]
    fn a_request_that_was_read_is_not_closed() {
        let places = places();
        let first = places.enter(0, Rank::Proven);
        let mut answer = Box::pin(first.answer());
        let polled = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready());
        assert!(!is_over(places.room()), "all answers are under way");
        let others: Vec<_> = (1..4).map(|number| places.enter(number, Rank::Proven)).collect();
        assert!(!is_over(first.closed()) && !is_over(others[0].closed()));
        drop(polled);
        first.prove();
        assert!(is_over(places.room()));
        assert!(is_over(others[0].closed()) && !is_over(first.closed()));
    }

    #[test]
    fn without_descriptors_the_oldest_stranger_goes_first() {
        let places = places();
        let known = places.enter(0, Rank::Proven);
        let stranger = places.enter(1, Rank::Unproven);
        places.close_oldest();
        assert!(is_over(stranger.closed()) && !is_over(known.closed()));
        places.close_oldest();
        assert!(is_over(known.closed()));
    }
}
