//! [`Places`]: limits how many connections an agent has open at once.
//!
//! If all places are taken, the oldest connection without a complete request is closed, so idle or
//! unknown peers keep no known peer out. A connection is not closed after its whole request was read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::lock::Mutex;

/// Limits for the connections and requests of an agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentLimits {
    /// Maximum number of connections.
    pub(super) connections: usize,
    /// Maximum length of a request, in bytes.
    pub(super) request: usize,
    /// Time limit for each step: handshake, greeting, request, and the peer's reading of the answer.
    pub(super) patience: Duration,
}

impl Default for AgentLimits {
    /// The connections stay below 1,024, the usual limit of open files per process. The rest is for
    /// the agent's own requests and files. The limit of a request fits a report on 256 pages.
    fn default() -> Self {
        Self { connections: 640, request: 64 << 10, patience: Duration::from_secs(5) }
    }
}

/// The open connections of one agent.
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// The connections without a complete request, oldest first.
    idle: Mutex<BTreeMap<u64, Arc<Notify>>>,
}

/// The place of one connection.
pub(super) struct Visit {
    places: Arc<Places>,
    number: u64,
    close: Arc<Notify>,
    _place: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(connections: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(connections)), idle: Mutex::default() }
    }

    /// Waits for a place. If none is free, closes the oldest idle connection.
    pub(super) async fn free(&self) -> Option<OwnedSemaphorePermit> {
        if self.free.available_permits() == 0 {
            self.close_oldest();
        }
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Adds a new connection. Each `number` must be greater than the one before.
    pub(super) fn enter(self: &Arc<Self>, number: u64, place: OwnedSemaphorePermit) -> Visit {
        let close = Arc::<Notify>::default();
        self.idle.lock().insert(number, Arc::clone(&close));
        Visit { places: Arc::clone(self), number, close, _place: place }
    }

    /// Closes the oldest idle connection.
    pub(super) fn close_oldest(&self) {
        if let Some((_, close)) = self.idle.lock().pop_first() {
            close.notify_one();
        }
    }
}

impl Visit {
    /// Keeps the connection until it ends. Its whole request was read.
    pub(super) fn keep(&self) {
        self.places.idle.lock().remove(&self.number);
    }

    /// Returns when the connection must close to make room for a newer one.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.keep();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn polled<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn entered(places: &Arc<Places>, number: u64) -> Option<Visit> {
        Some(places.enter(number, polled(places.free())??))
    }

    #[test]
    fn a_new_connection_closes_the_oldest_idle_one() {
        let places = Arc::new(Places::new(3));
        let mut visits: Vec<_> = (0..3).map(|number| entered(&places, number)).collect();
        assert!(visits.iter().flatten().all(|visit| polled(visit.closed()).is_none()));
        visits[0].as_ref().expect("a place").keep();
        assert!(entered(&places, 3).is_none(), "the place is not free yet");
        let closed = |visit: &Option<Visit>| polled(visit.as_ref().expect("open").closed());
        assert!(closed(&visits[0]).is_none(), "its request was read");
        assert!(closed(&visits[1]).is_some() && closed(&visits[2]).is_none());
        visits[1] = None;
        assert!(entered(&places, 3).is_some());
    }

    #[test]
    fn without_descriptors_the_oldest_idle_connection_is_closed() {
        let places = Arc::new(Places::new(3));
        let visits: Vec<_> = (0..2).filter_map(|number| entered(&places, number)).collect();
        visits[0].keep();
        places.close_oldest();
        assert!(polled(visits[0].closed()).is_none() && polled(visits[1].closed()).is_some());
    }
}
