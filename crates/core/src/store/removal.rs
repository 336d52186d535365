//! Removes forgotten points and older versions, and returns the file's free space to the disk.
//!
//! The first transaction changes what the feed keeps. From then on, no read returns the removed
//! data and no page adds it. Further transactions remove it, a few directory pages at a time. After
//! a kill, another call removes the rest.

use rusqlite::Connection;

use super::block::PointVersion;
use super::directory_page::{BlockSummary, PageKey};
use super::failure::StoreResult;
use super::found_blocks::times;
use super::hold::WriteTurn;
use super::retention::Freed;
use super::watch::Watch;
use super::writer::Writer;
use super::writer_cache::FeedChange;
use super::{pages, schema};
use crate::data::ranges::{Range, Ranges};

/// File pages.
const AT_ONCE: i64 = 1_024;

/// The data to remove from a feed.
#[derive(Debug)]
pub(super) enum Removal<'s> {
    /// The points before a time, in microseconds. The feed gets this state.
    Points { before: i64, state: &'s [u8] },
    /// The older versions of the points in these ranges, in microseconds.
    Versions(Ranges),
}

impl Removal<'_> {
    /// Returns the directory pages to remove data from.
    pub(super) fn begin(&self, writer: &mut Writer, feed: &str) -> StoreResult<Vec<PageKey>> {
        let (end, state) = match self {
            Self::Points { before, state } => (*before, Some(*state)),
            Self::Versions(ranges) => {
                let Some(last) = ranges.iter().next_back() else { return Ok(Vec::new()) };
                (last.end, None)
            }
        };
        writer.change(feed, state, |change| {
            let FeedChange { connection, feed, .. } = &mut *change;
            if state.is_some() {
                feed.retention.forget(end, feed.sequence);
                pages::forget(connection, feed, end)?;
            } else {
                feed.retention.compact(end, feed.sequence);
            }
            feed.pruned = feed.sequence;
            move_recent(change, end)
        })
    }

    pub(super) fn remove(
        &self,
        writer: &mut Writer,
        feed: &str,
        numbers: &[PageKey],
        watch: &Watch,
    ) -> StoreResult<Freed> {
        writer.change(feed, None, |change| {
            let mut removed = Freed::default();
            for number in numbers {
                removed += self.remove_from(change, *number)?;
                watch.step(1)?;
            }
            Ok(removed)
        })
    }

    /// Removes data from the blocks of one directory page.
    fn remove_from(&self, change: &mut FeedChange<'_, '_>, number: PageKey) -> StoreResult<Freed> {
        let FeedChange { directory, known, feed, .. } = change;
        let known = &known.index;
        let mut removed = Freed::default();
        for (key, entry) in directory.entries(known, number)? {
            let within = times(key.1, feed.span);
            let mut kept = Vec::new();
            match self {
                Self::Points { .. } => {
                    let before = feed.retention.kept_from;
                    if within.start >= before {
                        continue;
                    }
                    if within.end > before {
                        kept = directory.rows(key, &entry)?;
                        kept.retain(|row| row.timestamp >= before);
                    }
                    let left = BlockSummary::new(&kept).points;
                    removed.points += entry.summary.points.saturating_sub(left);
                }
                Self::Versions(ranges) => {
                    let ranges = ranges.overlapping(within);
                    // If one page wrote the whole block, each point has one version.
                    if ranges.is_empty() || entry.summary.first == entry.summary.changed {
                        continue;
                    }
                    kept = directory.rows(key, &entry)?;
                    let versions = keep_newest(&mut kept, ranges);
                    if versions == 0 {
                        continue;
                    }
                    removed.versions += versions;
                }
            }
            let before = directory.remove(known, key, &entry)?;
            let after = if kept.is_empty() { 0 } else { directory.store(known, key, &kept)? };
            removed.bytes += before.saturating_sub(after);
        }
        Ok(removed)
    }
}

/// Moves recent points before `end` into their blocks. Returns the directory pages up to there.
fn move_recent(change: &mut FeedChange<'_, '_>, end: i64) -> StoreResult<Vec<PageKey>> {
    if change.feed.span == 0 {
        return Ok(Vec::new());
    }
    let last = (end - 1).div_euclid(change.feed.span);
    let stretches = change.known.recent.stretches().map(|(stretch, _)| stretch);
    let stretches = stretches.filter(|stretch| *stretch <= last).collect();
    change.move_recent(&stretches)?;
    // Lists the pages of new blocks.
    change.finish()?;
    Ok(change.known.index.pages_until(last))
}

/// Returns the number of removed versions.
fn keep_newest(rows: &mut Vec<PointVersion>, ranges: &[Range]) -> u64 {
    let before = rows.len();
    let mut kept = Vec::with_capacity(before);
    for history in rows.chunk_by(|one, next| one.timestamp == next.timestamp) {
        let in_range = ranges.iter().any(|range| range.has(history[0].timestamp));
        let newest = history.len().saturating_sub(1);
        kept.extend_from_slice(&history[if in_range { newest } else { 0 }..]);
    }
    *rows = kept;
    (before - rows.len()) as u64
}

/// Returns the number of bytes.
pub(super) fn give_back(
    connection: &Connection,
    turn: &WriteTurn,
    watch: &Watch,
) -> StoreResult<u64> {
    watch.step(0)?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = number("page_count")?;
    let (mut free, mut before) = (number("freelist_count")?, i64::MAX);
    watch.expect(free.unsigned_abs());
    while (1..before).contains(&free) {
        vacuum_some(connection)?;
        before = std::mem::replace(&mut free, number("freelist_count")?);
        watch.step((before - free).unsigned_abs())?;
    }
    // Copying the log into the file also shortens the file.
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    turn.without_readers(|| connection.query_row(sql, [], |_| Ok(()))).transpose()?;
    let given_back = (pages - number("page_count")?).max(0) * number("page_size")?;
    Ok(given_back.unsigned_abs())
}

fn vacuum_some(connection: &Connection) -> StoreResult<()> {
    schema::commit(connection, |changes| {
        let mut statement = changes.prepare(&format!("PRAGMA incremental_vacuum({AT_ONCE})"))?;
        let mut steps = statement.query([])?;
        while steps.next()?.is_some() {}
        Ok(())
    })
}
