//! Writes a page and its checkpoint in one transaction. A forked child does not use, close or lock
//! the inherited writer, because a thread of the parent may have locked it.

use std::collections::HashMap;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::connection::StoreConnection;
use super::failure::{StoreFailure, StoreResult};
use super::feeds::Feeds;
use super::hold::WriteTurn;
use super::writer_cache::{BlockCache, FeedChange, KnownFeed};
use crate::error::{Error, Kind};
use crate::fork::Owned;
use crate::lock::Mutex;

/// 64 bytes each. One feed may use all of it.
const MOST_POINTS: usize = 1 << 21;

#[derive(Debug)]
pub(super) struct Writer {
    link: StoreConnection,
    /// The feeds after the last commit of this connection.
    feeds: Option<Feeds>,
    known: HashMap<String, KnownFeed>,
    /// Cached points of all feeds.
    points: usize,
}

impl Writer {
    pub(super) fn new(link: StoreConnection) -> Self {
        Self { link, feeds: None, known: HashMap::new(), points: 0 }
    }

    /// `state` replaces the feed's state, if given.
    pub(super) fn change<T>(
        &mut self,
        name: &str,
        state: Option<&[u8]>,
        change: impl FnOnce(&mut FeedChange<'_, '_>) -> StoreResult<T>,
    ) -> StoreResult<T> {
        self.commit(name, |changes, feeds, known| {
            let mut feed = feeds.known(name)?.clone();
            let known = KnownFeed::current(changes, &feed, known)?;
            let mut changed = FeedChange::new(changes, known, &mut feed)?;
            let outcome = change(&mut changed)?;
            changed.finish()?;
            feed.generation += 1;
            known.index.generation = feed.generation;
            known.blocks = BlockCache::default();
            let state = state.map_or_else(|| feed.state(changes), |state| Ok(state.to_vec()))?;
            feeds.save(changes, feed, &state)?;
            Ok(outcome)
        })
    }

    /// The cache is kept after the commit: it has no uncommitted data.
    pub(super) fn commit<T>(
        &mut self,
        feed: &str,
        write: impl FnOnce(&Connection, &mut Feeds, &mut Option<KnownFeed>) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let (feeds, mut known) = (self.feeds.take(), self.known.remove(feed));
        self.points -= known.as_ref().map_or(0, KnownFeed::points);
        let connection = self.link.connection()?;
        let changes = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let mut feeds = Feeds::load_changed(&changes, feeds)?;
        let outcome = write(&changes, &mut feeds, &mut known)?;
        changes.commit()?;
        self.feeds = Some(feeds);
        if let Some(known) = known {
            self.keep(feed, known);
        }
        Ok(outcome)
    }

    /// Keeps other processes from writing.
    fn in_turn<T>(
        &mut self,
        write: impl FnOnce(&mut Self, &WriteTurn) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let turn = match self.link.turn() {
            Ok(turn) => turn,
            Err(failure) => {
                self.link.save_removed_log()?;
                return Err(failure);
            }
        };
        let outcome = write(self, &turn);
        if outcome.is_ok() {
            self.link.check_names()?;
            // If this fails, the next writer tries again.
            let _later = self.link.copy_long_log(&turn);
        }
        outcome
    }

    pub(super) fn connection(&self) -> StoreResult<&Connection> {
        Ok(self.link.connection()?)
    }

    /// If the cache would exceed [`MOST_POINTS`], it drops all other feeds.
    fn keep(&mut self, feed: &str, known: KnownFeed) {
        let points = known.points();
        if self.points + points > MOST_POINTS {
            self.known.clear();
            self.points = 0;
        }
        self.points += points;
        self.known.insert(feed.to_owned(), known);
    }
}

impl Drop for Writer {
    /// `SQLite` does not remove the log of a shared store, so it is copied into the file here.
    fn drop(&mut self) {
        let _later = self.link.turn().and_then(|turn| self.link.copy_log(&turn));
    }
}

/// The writer of each process that uses a store.
#[derive(Debug, Default)]
pub(super) struct Writers {
    writer: Owned<Mutex<Option<Writer>>>,
    closed: AtomicBool,
}

impl Writers {
    pub(super) fn new(writer: Writer) -> Self {
        Self { writer: Owned::new(Mutex::new(Some(writer))), closed: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.get_or_init(Mutex::default).lock()
    }

    pub(super) fn refuse_closed(&self) -> StoreResult<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreFailure::Core(Error::new(Kind::ClosedError, "this store was closed")));
        }
        Ok(())
    }

    pub(super) fn write<T>(
        &self,
        open: impl FnOnce() -> StoreResult<StoreConnection>,
        write: impl FnOnce(&mut Writer, &WriteTurn) -> StoreResult<T>,
    ) -> StoreResult<T> {
        // A panic drops the writer. The next call opens another.
        let mut slot = self.lock();
        self.refuse_closed()?;
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => Writer::new(open()?),
        };
        let outcome = writer.in_turn(write);
        if writer.link.check_names().is_ok() {
            *slot = Some(writer);
        }
        outcome
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        *self.lock() = None;
    }
}
