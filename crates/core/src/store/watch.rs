//! Observes and stops a long operation on a store from another thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rusqlite::{Connection, InterruptHandle};

use super::failure::{StoreFailure, StoreResult};
use crate::error::{Error, Kind};
use crate::lock::Mutex;

#[derive(Default)]
pub struct Watch {
    done: AtomicU64,
    total: AtomicU64,
    stopped: AtomicBool,
    statement: Mutex<Option<InterruptHandle>>,
}

impl Watch {
    /// Returns the number of finished steps (blocks or file pages) and the expected total.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let done = self.done.load(Ordering::Relaxed);
        (done, self.total.load(Ordering::Relaxed).max(done))
    }

    /// The operation ends soon with a `StoreError`. Committed changes stay.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(statement) = &*self.statement.lock() {
            statement.interrupt();
        }
    }

    pub(super) fn expect(&self, steps: u64) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    /// Returns an error if the operation was stopped.
    pub(super) fn step(&self, steps: u64) -> StoreResult<()> {
        self.done.fetch_add(steps, Ordering::Relaxed);
        if self.stopped.load(Ordering::Acquire) { Err(stopped()) } else { Ok(()) }
    }

    /// Runs a statement that [`Watch::stop`] can interrupt.
    pub(super) fn statement<T>(
        &self,
        connection: &Connection,
        run: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        *self.statement.lock() = Some(connection.get_interrupt_handle());
        // An earlier stop did not see the handle.
        let outcome = self.step(0).and_then(|()| run(connection));
        *self.statement.lock() = None;
        outcome.map_err(|failure| if self.step(0).is_err() { stopped() } else { failure })
    }
}

fn stopped() -> StoreFailure {
    let message = "the operation on the store was stopped";
    let hint = "Committed changes stay. Call it again for the rest.";
    StoreFailure::Core(Error::new(Kind::StoreError, message).with_hint(hint))
}
