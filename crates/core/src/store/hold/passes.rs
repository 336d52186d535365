//! The locks of a writer and a reader of a store.

use std::sync::Arc;
use std::time::Duration;

use super::byte_lock::{ByteLock, set};
use super::{READERS, StoreHold, TURN};
use crate::store::failure::StoreResult;

/// Until it is dropped, no other writer of any process writes.
#[derive(Debug)]
pub(in crate::store) struct WriteTurn(Arc<StoreHold>);

/// Until it is dropped, the log is not copied into the file.
#[derive(Debug)]
pub(in crate::store) struct ReadPass(Arc<StoreHold>);

impl StoreHold {
    /// Processes that may only read can hold it at the same time. Meanwhile, no writer opens or
    /// closes the store.
    pub(in crate::store) fn turn(self: &Arc<Self>, timeout: Duration) -> StoreResult<WriteTurn> {
        let lock = if self.writes { ByteLock::Alone } else { ByteLock::Shared };
        self.wait(timeout, || {
            let mut state = self.state.lock();
            let is_free = !state.writing && set(&self.file, lock, &TURN)?;
            state.writing |= is_free;
            Ok(is_free)
        })?;
        Ok(WriteTurn(Arc::clone(self)))
    }

    /// No reader gets a pass while the log is being copied into the file.
    pub(in crate::store) fn pass(self: &Arc<Self>, timeout: Duration) -> StoreResult<ReadPass> {
        self.wait(timeout, || {
            let mut state = self.state.lock();
            let is_free = state.readers > 0 || set(&self.file, ByteLock::Shared, &READERS)?;
            state.readers += usize::from(is_free);
            Ok(is_free)
        })?;
        Ok(ReadPass(Arc::clone(self)))
    }
}

impl WriteTurn {
    /// Returns `None` without running `work` if somebody reads.
    pub(in crate::store) fn without_readers<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let hold = &self.0;
        // Locked during the work, so that no reader of this process gets a pass.
        let state = hold.state.lock();
        if state.readers > 0 || !set(&hold.file, ByteLock::Alone, &READERS).unwrap_or(false) {
            return None;
        }
        let outcome = work();
        let _freed = set(&hold.file, ByteLock::Free, &READERS);
        drop(state);
        Some(outcome)
    }
}

impl Drop for WriteTurn {
    fn drop(&mut self) {
        // In a forked child, unlocking would release the lock of the parent.
        if self.0.process.is_current() {
            let mut state = self.0.state.lock();
            let _freed = set(&self.0.file, ByteLock::Free, &TURN);
            state.writing = false;
        }
    }
}

impl Drop for ReadPass {
    fn drop(&mut self) {
        if self.0.process.is_current() {
            let mut state = self.0.state.lock();
            state.readers -= 1;
            if state.readers == 0 {
                let _freed = set(&self.0.file, ByteLock::Free, &READERS);
            }
        }
    }
}
