//! Long work on a store, watched from another thread: how far it is, and that it should stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rusqlite::{Connection, InterruptHandle};

use super::failure::{StoreFailure, StoreResult};
use crate::error::{Error, Kind};
use crate::lock::Mutex;

/// Watches one piece of work. It is given to the work, and looked at by another thread.
#[derive(Default)]
pub struct Watch {
    done: AtomicU64,
    total: AtomicU64,
    stopped: AtomicBool,
    /// Interrupts the statement that is running.
    statement: Mutex<Option<InterruptHandle>>,
}

impl Watch {
    /// How many steps are done, and how many there are as far as that is known. A step is a block or a
    /// page of the file.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let done = self.done.load(Ordering::Relaxed);
        (done, self.total.load(Ordering::Relaxed).max(done))
    }

    /// Lets the work end soon, with a `StoreError`. What it has committed stays.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(statement) = &*self.statement.lock() {
            statement.interrupt();
        }
    }

    /// Adds steps that are to be done.
    pub(super) fn expect(&self, steps: u64) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    /// Counts steps that were done.
    pub(super) fn step(&self, steps: u64) -> StoreResult<()> {
        self.done.fetch_add(steps, Ordering::Relaxed);
        if self.stopped.load(Ordering::Acquire) { Err(stopped()) } else { Ok(()) }
    }

    /// Runs a long statement, which [`Watch::stop`] interrupts.
    pub(super) fn statement<T>(
        &self,
        connection: &Connection,
        run: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        *self.statement.lock() = Some(connection.get_interrupt_handle());
        // After the handle is there: a stop before that is seen here.
        let outcome = self.step(0).and_then(|()| run(connection));
        *self.statement.lock() = None;
        outcome.map_err(|failure| if self.step(0).is_err() { stopped() } else { failure })
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watch({:?})", self.progress())
    }
}

fn stopped() -> StoreFailure {
    let message = "the work on the store was stopped before its end";
    let hint = "What it had committed stays; call it again for the rest.";
    StoreFailure::Core(Error::new(Kind::StoreError, message).with_hint(hint))
}
