//! Who writes: for each process that uses a store, its own writer. A writer that came over a fork is
//! neither used nor closed, and its mutex, which a thread of the parent may have held, not touched.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rusqlite::TransactionBehavior;

use super::apply::apply;
use super::connection::{Link, process};
use super::directory::Known;
use super::failure::{Outcome, Trouble};
use super::schema::Schema;
use super::target::{Applied, Delivery};
use crate::error::{Error, Kind};

/// A connection to write with, and what it knows of feeds.
#[derive(Debug)]
pub(super) struct Writer {
    link: Link,
    known: HashMap<String, Known>,
}

impl Link {
    /// Ready to write: with today's tables.
    pub(super) fn prepared(mut self, schema: &Schema) -> Outcome<Self> {
        schema.prepare(self.get_mut()?)?;
        self.gather()?;
        Ok(self)
    }
}

impl Writer {
    pub(super) fn new(link: Link) -> Self {
        Self { link, known: HashMap::new() }
    }

    pub(super) fn apply(
        &mut self,
        feed: &str,
        delivery: Option<&Delivery<'_>>,
        state: &[u8],
    ) -> Outcome<Applied> {
        // It comes back only with the commit, so that nothing is known that is not there.
        let known = self.known.remove(feed);
        let connection = self.link.get_mut()?;
        let changes = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (known, applied) = apply(&changes, known, feed, delivery, state)?;
        changes.commit()?;
        if let Some(known) = known {
            self.known.insert(feed.to_owned(), known);
        }
        Ok(applied)
    }
}

/// The writers of the processes that a store was carried through by forks, the oldest first.
#[derive(Debug)]
pub(super) struct Slots {
    first: Slot,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Slot {
    process: u32,
    writer: Mutex<Option<Writer>>,
    next: OnceLock<Box<Slot>>,
}

impl Slot {
    fn new(writer: Option<Writer>) -> Self {
        Self { process: process(), writer: Mutex::new(writer), next: OnceLock::new() }
    }
}

impl Slots {
    pub(super) fn new(writer: Writer) -> Self {
        Self { first: Slot::new(Some(writer)), closed: AtomicBool::new(false) }
    }

    /// The slot of this process.
    fn here(&self) -> &Slot {
        let mut slot = &self.first;
        while slot.process != process() {
            slot = slot.next.get_or_init(|| Box::new(Slot::new(None)));
        }
        slot
    }

    pub(super) fn refuse_closed(&self) -> Outcome<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Trouble::Other(Error::new(Kind::Closed, "this store was closed")));
        }
        Ok(())
    }

    /// Writes with this process's writer; makes it where there is none.
    pub(super) fn write<T>(
        &self,
        open: impl FnOnce() -> Outcome<Link>,
        write: impl FnOnce(&mut Writer) -> Outcome<T>,
    ) -> Outcome<T> {
        // A panic has rolled back: the transaction is dropped before the mutex is let go.
        let mut slot = self.here().writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.refuse_closed()?;
        let writer = match slot.take() {
            Some(writer) => slot.insert(writer),
            None => slot.insert(Writer::new(open()?)),
        };
        write(writer)
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        *self.here().writer.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
