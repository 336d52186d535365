//! The store: one file with every version of every point of its feeds, and the state of each feed.
//! A page and its state are written in one transaction, so no checkpoint is ahead of its data.
//!
//! ```text
//! Delivery -> apply -> page_merge -> block (bytes) -> directory -> one commit
//!                              \-> recent points, later moved into blocks
//! PointFilter -> Reader -> directory -> block, recent points -> history::show -> ShownPoints -> RecordBatch
//! ```
//!
//! Every row has a checksum, verified from the top down (`schema`).

mod access;
mod apply;
mod arrivals;
mod block;
mod bytes;
mod commit_mark;
mod connection;
mod delays;
mod directory;
mod directory_page;
mod failure;
mod feed_lock;
mod feed_queue;
mod feeds;
mod found_blocks;
mod history;
mod hold;
mod log_fit;
mod maintenance;
mod names;
mod network;
mod page_merge;
mod pages;
mod path;
mod read;
mod recent;
mod removal;
mod restore;
mod retention;
mod schema;
mod seen;
mod seen_log;
mod series_filter;
mod target;
mod view;
mod watch;
mod writer;
mod writer_cache;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Connection;

pub use self::access::{Share, StoreOptions};
use self::connection::{BUSY_TIMEOUT, StoreConnection};
pub(crate) use self::delays::{Age, Delays, Sighting, Sightings};
use self::directory::{Directory, FeedIndex};
pub(crate) use self::failure::StoreResult;
use self::failure::{StoreFailure, store_error};
pub use self::feed_queue::Turn;
pub(crate) use self::feed_queue::Turns;
use self::feeds::Feeds;
use self::found_blocks::FoundBlocks;
use self::hold::WriteTurn;
pub use self::names::KeptNames;
use self::page_merge::RecentLimits;
pub(crate) use self::pages::PageChains;
pub use self::path::resolve;
pub(crate) use self::read::FeedSnapshot;
pub use self::read::Reader;
pub use self::restore::restore;
pub use self::retention::Freed;
use self::schema::APPLICATION;
pub use self::series_filter::{SeriesFilter, SeriesIds};
pub use self::target::ChainRange;
pub use self::target::{Applied, Delivery, Target};
pub use self::view::{CHANGES, Flagged, PointFilter, ShownPoints, View};
pub use self::watch::Watch;
use self::writer::{Writer, Writers};
use crate::data::ranges::Range;
use crate::error::{Error, Kind, Result};

/// For tests/fuzz. Returns `None` for other bytes.
#[must_use]
pub fn block_times(bytes: &[u8]) -> Option<Vec<i64>> {
    let rows = block::decode(bytes)?;
    Some(rows.iter().map(|row| row.timestamp).collect())
}

/// One store file. Threads share it. Each process has its own connection.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    busy_timeout: Duration,
    options: StoreOptions,
    limits: RecentLimits,
    writers: Writers,
    turns: Turns,
}

impl Store {
    /// Creates a missing store for its owner only.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, StoreOptions::default())
    }

    /// Creates a missing store unless it is opened read-only.
    pub fn open_with(path: &Path, options: StoreOptions) -> Result<Self> {
        Self::open_as(path, options, BUSY_TIMEOUT)
    }

    fn open_as(path: &Path, options: StoreOptions, busy_timeout: Duration) -> Result<Self> {
        let path = path::resolve(path)?;
        let opened = if options.read_only {
            StoreConnection::open_read_only(&path, busy_timeout)
                .and_then(|link| link.read(&path, schema::check))
                .map(|()| Writers::default())
        } else {
            access::prepare_for_writing(&path, options.share)
                .map_err(StoreFailure::Core)
                .and_then(|()| StoreConnection::open_prepared(&path, busy_timeout))
                .map(|link| Writers::new(Writer::new(link)))
        };
        let writers = opened.map_err(|failure| not_opened(&path, failure))?;
        #[cfg(unix)]
        if !options.read_only {
            access::give_group(&path);
        }
        Ok(Self {
            path,
            busy_timeout,
            options,
            limits: RecentLimits::default(),
            writers,
            turns: Turns::default(),
        })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sorted.
    pub fn feeds(&self) -> Result<Vec<String>> {
        self.snapshot(|connection| Ok(Feeds::load(connection)?.names()))
    }

    /// The highest sequence number applied to a feed, or 0 for an unknown feed.
    pub fn sequence(&self, feed: &str) -> Result<u64> {
        self.snapshot(|connection| {
            Ok(Feeds::load(connection)?.find(feed).map_or(0, |feed| feed.sequence))
        })
    }

    /// The highest sequence number of a page that was read by this time of the service, or 0.
    pub fn sequence_at(&self, feed: &str, at: Timestamp) -> Result<u64> {
        self.snapshot(|connection| {
            let feeds = Feeds::load(connection)?;
            let Some(feed) = feeds.find(feed) else { return Ok(0) };
            let pages = pages::all(connection, feed)?;
            let read = pages.iter().rfind(|page| page.read_at <= at.as_microsecond());
            Ok(read.map_or(0, |page| page.sequence))
        })
    }

    /// The service's times of the reads, in microseconds. Pages of forgotten ranges are left out.
    pub fn page_times(&self, feed: &str) -> Result<Vec<i64>> {
        self.look_up(feed, |FeedSnapshot { connection, feed }| {
            Ok(pages::all(connection, feed)?.iter().map(|page| page.read_at).collect())
        })
    }

    pub fn read(&self, feed: &str, filter: PointFilter) -> Result<Reader> {
        Ok(self.read_with(feed, |_| Ok((filter, ())))?.0)
    }

    /// `choose` selects the points in the transaction that they are read in.
    pub(crate) fn read_with<T>(
        &self,
        feed: &str,
        choose: impl FnOnce(&FeedSnapshot<'_>) -> StoreResult<(PointFilter, T)>,
    ) -> Result<(Reader, T)> {
        self.with_path(self.connect().and_then(|link| Reader::new(&self.path, link, feed, choose)))
    }

    /// Reads one feed in one transaction.
    pub(crate) fn look_up<T>(
        &self,
        feed: &str,
        look: impl FnOnce(&FeedSnapshot<'_>) -> StoreResult<T>,
    ) -> Result<T> {
        self.snapshot(|connection| {
            look(&FeedSnapshot { connection, feed: Feeds::load(connection)?.known(feed)? })
        })
    }

    /// Returns whether the feed has a point in each of the ranges, in microseconds. Withdrawn points
    /// count.
    pub fn holds(&self, feed: &str, ranges: &[Range]) -> Result<Vec<bool>> {
        self.snapshot(|connection| {
            let feeds = Feeds::load(connection)?;
            let Some(feed) = feeds.find(feed) else { return Ok(vec![false; ranges.len()]) };
            let known = FeedIndex::load(connection, feed)?;
            let mut directory = Directory::new(connection, feed.id)?;
            let held = |range: &Range| {
                let found = FoundBlocks::load(connection, &known, feed, &(*range).into(), None)?;
                for block in &found.blocks {
                    let rows = found.rows(&mut directory, *block)?;
                    if rows.iter().any(|row| range.has(row.timestamp)) {
                        return Ok(true);
                    }
                }
                Ok(false)
            };
            ranges.iter().map(held).collect()
        })
    }

    /// `width` is the bucket width in microseconds.
    pub(crate) fn delays(&self, feed: &str, width: i64) -> Result<Delays> {
        self.look_up(feed, |FeedSnapshot { connection, feed }| {
            delays::delays(connection, feed, width)
        })
    }

    /// Open readers can finish. Later calls fail with `ClosedError`.
    pub fn close(&self) {
        self.writers.close();
    }

    fn with_path<T>(&self, outcome: StoreResult<T>) -> Result<T> {
        outcome.map_err(|failure| failure.into_error(&self.path))
    }

    #[must_use]
    pub fn options(&self) -> StoreOptions {
        self.options
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    fn connect(&self) -> StoreResult<StoreConnection> {
        self.writers.refuse_closed()?;
        if self.options.read_only {
            return StoreConnection::open_read_only(&self.path, self.busy_timeout);
        }
        StoreConnection::open(&self.path, self.busy_timeout)
    }

    fn refuse_read_only(&self) -> Result<()> {
        if !self.options.read_only {
            return Ok(());
        }
        Err(store_error(&self.path, Kind::StoreError, "it was opened with read_only=True")
            .with_hint("Open it again without read_only=."))
    }

    fn write<T>(&self, write: impl FnOnce(&mut Writer, &WriteTurn) -> StoreResult<T>) -> Result<T> {
        self.refuse_read_only()?;
        let open = || StoreConnection::open_prepared(&self.path, self.busy_timeout);
        self.with_path(self.writers.write(open, write))
    }

    /// Reads in one transaction.
    fn snapshot<T>(&self, read: impl FnOnce(&Connection) -> StoreResult<T>) -> Result<T> {
        self.with_path(self.connect().and_then(|link| link.read(&self.path, read)))
    }
}

/// Only reads the header if no connection can have the file open: closing a file releases the locks
/// of all connections of this process to it.
fn not_opened(path: &Path, failure: StoreFailure) -> Error {
    let foreign = failure.is_no_database().then(|| not_ours(path)).flatten();
    foreign.unwrap_or_else(|| failure.into_error(path))
}

/// Returns an error if the header shows that the file is not a store.
fn not_ours(path: &Path) -> Option<Error> {
    let mut header = Vec::new();
    std::fs::File::open(path).ok()?.take(72).read_to_end(&mut header).ok()?;
    let application = header.get(68..).unwrap_or_default();
    if header.starts_with(b"SQLite format 3\0") || application == APPLICATION.to_be_bytes() {
        return None;
    }
    let error = store_error(path, Kind::StoreError, "it is not a store of siteline");
    Some(error.with_hint(schema::OTHER_PATH))
}

impl Target for Store {
    fn lock(&self, feed: &str) -> Result<Box<dyn std::any::Any + Send>> {
        self.with_path(self.writers.refuse_closed())?;
        self.refuse_read_only()?;
        Ok(Box::new(feed_lock::FeedLock::take(&self.path, feed)?))
    }

    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.states(&[feed])?.pop().flatten())
    }

    fn states(&self, feeds: &[&str]) -> Result<Vec<Option<Vec<u8>>>> {
        self.snapshot(|connection| {
            let known = Feeds::load(connection)?;
            let state = |name: &&str| known.find(name).map(|feed| feed.state(connection));
            feeds.iter().map(|name| state(name).transpose()).collect()
        })
    }

    fn apply(&self, feed: &str, delivery: Option<&Delivery>, state: &[u8]) -> Result<Applied> {
        self.write(|writer, _| {
            writer.commit(feed, |changes, feeds, known| {
                apply::apply(changes, (feeds, known), feed, delivery, state, self.limits)
            })
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
