//! Removes forgotten points and older versions, and returns the file's free space to the disk.
//!
//! The first transaction changes what the feed keeps. From then on, no read returns the removed
//! data and no page adds it. Further transactions remove it, a few directory pages at a time. After
//! a kill, another call removes the rest.

use std::ops::Range;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::block::PointVersion;
use super::directory::{Directory, FeedIndex};
use super::directory_page::{BlockEntry, BlockKey, BlockSummary, PageKey};
use super::failure::StoreResult;
use super::feeds::FeedRow;
use super::found_blocks::{overlapping, times};
use super::page_merge::move_recent;
use super::pages;
use super::retention::Freed;
use super::schema::Root;
use super::watch::Watch;
use super::writer::Writer;

/// File pages.
const AT_ONCE: i64 = 1_024;

/// `before` is in microseconds. `state` is the feed's new state.
pub(super) fn begin_forget(
    writer: &mut Writer,
    feed: &str,
    before: i64,
    state: &[u8],
) -> StoreResult<Vec<PageKey>> {
    writer.change(feed, Some(state), |connection, known, feed| {
        feed.retention.forget(before, feed.sequence);
        feed.pruned = feed.sequence;
        pages::forget(connection, feed, before)?;
        move_recent(connection, known, feed, before)
    })
}

pub(super) fn remove_forgotten(
    (directory, known): (&mut Directory<'_>, &FeedIndex),
    feed: &FeedRow,
    number: PageKey,
) -> StoreResult<Freed> {
    let mut removed = Freed::default();
    let before = feed.retention.kept_from;
    let (last, first_kept) = ((before - 1).div_euclid(feed.span), before.div_euclid(feed.span));
    for (key, entry) in directory.entries(known, number)? {
        if key.1 > last {
            continue;
        }
        if key.1 < first_kept {
            removed.points += entry.summary.points;
            removed.bytes += directory.remove(known, key, &entry)?;
            continue;
        }
        // The feed now starts within this block.
        let rows = directory.rows(key, &entry)?;
        let (gone, kept) = rows.split_at(rows.partition_point(|row| row.timestamp < before));
        removed.points += BlockSummary::new(gone).points;
        removed.bytes += replace(directory, known, key, &entry, kept)?;
    }
    Ok(removed)
}

/// Returns the number of bytes by which the block is smaller.
fn replace(
    directory: &mut Directory<'_>,
    known: &FeedIndex,
    key: BlockKey,
    entry: &BlockEntry,
    rows: &[PointVersion],
) -> StoreResult<u64> {
    let before = directory.remove(known, key, entry)?;
    let after = if rows.is_empty() { 0 } else { directory.store(known, key, rows)? };
    Ok(before.saturating_sub(after))
}

/// `ranges` are ascending and disjoint.
pub(super) fn begin_compact(
    writer: &mut Writer,
    feed: &str,
    ranges: &[Range<i128>],
) -> StoreResult<Vec<PageKey>> {
    let Some(last) = ranges.last() else { return Ok(Vec::new()) };
    let end = i64::try_from(last.end).unwrap_or(i64::MAX);
    writer.change(feed, None, |connection, known, feed| {
        feed.retention.compact(end, feed.sequence);
        feed.pruned = feed.sequence;
        move_recent(connection, known, feed, end)
    })
}

pub(super) fn remove_versions(
    (directory, known): (&mut Directory<'_>, &FeedIndex),
    feed: &FeedRow,
    number: PageKey,
    ranges: &[Range<i128>],
) -> StoreResult<Freed> {
    let mut removed = Freed::default();
    for (key, entry) in directory.entries(known, number)? {
        let within = times(key.1, feed.span);
        let ranges = overlapping(ranges, &within);
        // If one page wrote the whole block, each point has one version.
        if ranges.is_empty() || entry.summary.first == entry.summary.changed {
            continue;
        }
        let mut rows = directory.rows(key, &entry)?;
        let versions = keep_newest(&mut rows, ranges);
        if versions > 0 {
            removed.versions += versions;
            removed.bytes += replace(directory, known, key, &entry, &rows)?;
        }
    }
    Ok(removed)
}

/// Returns the number of removed versions.
fn keep_newest(rows: &mut Vec<PointVersion>, ranges: &[Range<i128>]) -> u64 {
    let before = rows.len();
    let mut kept = Vec::with_capacity(before);
    for history in rows.chunk_by(|one, next| one.timestamp == next.timestamp) {
        let timestamp = i128::from(history[0].timestamp);
        let in_range = ranges.iter().any(|range| range.contains(&timestamp));
        let newest = history.len().saturating_sub(1);
        kept.extend_from_slice(&history[if in_range { newest } else { 0 }..]);
    }
    *rows = kept;
    (before - rows.len()) as u64
}

/// Returns the number of bytes.
pub(super) fn give_back(writer: &Writer, watch: &Watch) -> StoreResult<u64> {
    watch.step(0)?;
    let connection = writer.connection()?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = number("page_count")?;
    watch.expect(number("freelist_count")?.unsigned_abs());
    loop {
        let free = number("freelist_count")?;
        if free == 0 {
            break;
        }
        vacuum_some(connection)?;
        let left = number("freelist_count")?;
        watch.step((free - left).unsigned_abs())?;
        if left >= free {
            break;
        }
    }
    // Copying the log into the file also shortens the file.
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    writer.without_readers(|connection| connection.query_row(sql, [], |_| Ok(())))?.transpose()?;
    let given_back = (pages - number("page_count")?).max(0) * number("page_size")?;
    Ok(given_back.unsigned_abs())
}

fn vacuum_some(connection: &Connection) -> StoreResult<()> {
    let changes = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let mut statement = changes.prepare(&format!("PRAGMA incremental_vacuum({AT_ONCE})"))?;
    let mut steps = statement.query([])?;
    while steps.next()?.is_some() {}
    drop(steps);
    drop(statement);
    // Every commit writes its mark.
    Root::load(&changes)?.save(&changes)?;
    Ok(changes.commit()?)
}
