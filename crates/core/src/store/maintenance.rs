//! Long operations on a whole store. Each can be observed and stopped. Committed changes stay.

use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::access::Share;
use super::arrivals::ArrivalSums;
use super::directory::{Directory, FeedIndex};
use super::directory_page::BlockSummary;
use super::failure::{StoreFailure, StoreResult, system};
use super::feeds::{FeedRow, Feeds};
use super::found_blocks::FoundBlocks;
use super::history::combine;
use super::names::KeptNames;
use super::removal::Removal;
use super::retention::{Freed, Retention};
use super::schema::Root;
use super::watch::Watch;
use super::{Store, access, pages, path, removal, seen_log};
use crate::data::ranges::Ranges;
use crate::error::{Error, Kind, Result};
use crate::files::{self, unused};

/// Four megabytes.
const COPIED: std::ffi::c_int = 1_024;
/// At most 2,048 blocks, a few megabytes.
const AT_ONCE: usize = 4;
const VERIFIED: usize = 256;

impl Store {
    /// Removes a feed's points before a time, in microseconds. `state` is the feed's new state.
    /// From the first commit on, no read returns these points and no page restores them.
    pub fn forget(&self, feed: &str, before: i64, state: &[u8], watch: &Watch) -> Result<Freed> {
        self.remove(feed, &Removal::Points { before, state }, watch)
    }

    /// Removes the older versions of points in these ranges, in microseconds.
    pub fn compact(&self, feed: &str, ranges: Ranges, watch: &Watch) -> Result<Freed> {
        self.remove(feed, &Removal::Versions(ranges), watch)
    }

    fn remove(&self, feed: &str, removal: &Removal<'_>, watch: &Watch) -> Result<Freed> {
        let numbers = self.write(|writer, _| removal.begin(writer, feed))?;
        watch.expect(numbers.len() as u64);
        let mut removed = Freed::default();
        for numbers in numbers.chunks(AT_ONCE) {
            removed += self.write(|writer, _| removal.remove(writer, feed, numbers, watch))?;
        }
        Ok(removed)
    }

    /// Returns free space of the file to the disk, and its number of bytes.
    pub fn give_back(&self, watch: &Watch) -> Result<u64> {
        self.write(|writer, turn| removal::give_back(writer.connection()?, turn, watch))
    }

    /// The store may be in use.
    pub fn backup(&self, to: &Path, share: Option<Share>, watch: &Watch) -> Result<()> {
        let to = path::resolve(to)?;
        let exists = || {
            let message = format!("backup {}: this path exists already", to.display());
            Error::new(Kind::StoreError, message).with_hint("Name a file that does not exist yet.")
        };
        if to.exists() {
            return Err(exists());
        }
        let part = StoreCopy(unused(&to, "part"));
        access::create_copy(&part.0, self.path(), share)?;
        self.snapshot(|connection| {
            connection.query_row("SELECT COUNT(*) FROM store", [], |_| Ok(()))?;
            copy(connection, &part.0, watch)
        })?;
        files::put(&part.0, &to, false).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(),
            _ => system(&to, "the copy cannot be renamed", &error),
        })
    }

    /// Reads everything and verifies the checksums.
    pub fn check(&self, watch: &Watch) -> Result<()> {
        self.snapshot(|connection| {
            let feeds = Feeds::load(connection)?;
            for feed in feeds.rows() {
                check_feed(connection, feed, watch)?;
            }
            KeptNames::all(connection)?;
            let damaged = StoreFailure::Corrupt("its file is damaged");
            watch.statement(connection, |connection| {
                let sql = "PRAGMA quick_check(1)";
                let result: String = connection.query_row(sql, [], |row| row.get(0))?;
                if result == "ok" { Ok(()) } else { Err(damaged) }
            })
        })
    }
}

fn check_feed(connection: &Connection, feed: &FeedRow, watch: &Watch) -> StoreResult<()> {
    feed.state(connection)?;
    let known = FeedIndex::load(connection, feed)?;
    let mut directory = Directory::new(connection, feed.id)?;
    let found = FoundBlocks::load(connection, &known, feed, &Ranges::all(), None)?;
    let mut arrivals = ArrivalSums::default();
    watch.expect(found.blocks.len() as u64);
    for blocks in found.blocks.chunks(VERIFIED) {
        for (key, entry) in blocks {
            let rows = entry.map_or(Ok(Vec::new()), |entry| directory.rows(*key, &entry))?;
            if entry.is_some_and(|entry| BlockSummary::new(&rows) != entry.summary) {
                return Err(StoreFailure::Corrupt("the directory does not say what is in a block"));
            }
            arrivals.add_block(&combine(rows, found.recent.rows(*key)));
        }
        watch.step(blocks.len() as u64)?;
    }
    // Removed versions cannot be counted again.
    let is_whole = feed.retention == Retention::default();
    pages::check(connection, feed, is_whole.then_some(&arrivals))?;
    seen_log::check(connection, feed)
}

/// The path of a copy. Dropping it removes the copy, unless it was renamed.
pub(super) struct StoreCopy(pub(super) PathBuf);

impl Drop for StoreCopy {
    fn drop(&mut self) {
        for ending in ["", access::LOG, access::MEMORY] {
            let _gone = std::fs::remove_file(files::beside(&self.0, ending));
        }
    }
}

/// The copy gets its own mark, so that no log belongs to it.
pub(super) fn copy(connection: &Connection, to: &Path, watch: &Watch) -> StoreResult<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let elsewhere = |error| StoreFailure::Core(StoreFailure::Sqlite(error).into_error(to));
    let mut copy = Connection::open_with_flags(to, flags).map_err(elsewhere)?;
    copy_pages(connection, &mut copy, watch)
        .and_then(|()| Root::load(&copy)?.save(&copy))
        .map_err(|failure| match failure {
            StoreFailure::Sqlite(error) => elsewhere(error),
            other => other,
        })?;
    copy.close().map_err(|(_, error)| elsewhere(error))?;
    flush(to).map_err(|error| StoreFailure::Core(system(to, "the copy cannot be flushed", &error)))
}

/// Windows flushes only files that are open for writing.
pub(super) fn flush(file: &Path) -> std::io::Result<()> {
    std::fs::OpenOptions::new().write(true).open(file)?.sync_all()
}

fn copy_pages(from: &Connection, to: &mut Connection, watch: &Watch) -> StoreResult<()> {
    let backup = Backup::new(from, to)?;
    let mut left = None;
    watch.step(0)?;
    while backup.step(COPIED)? != StepResult::Done {
        let progress = backup.progress();
        let remaining = u64::try_from(progress.remaining).unwrap_or_default();
        let before = left.replace(remaining).unwrap_or_else(|| {
            let all = u64::try_from(progress.pagecount).unwrap_or_default();
            watch.expect(all);
            all
        });
        watch.step(before.saturating_sub(remaining))?;
    }
    Ok(())
}
