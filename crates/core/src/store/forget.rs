//! Removes the points before a time. One transaction changes the feed's start and its state. From
//! then on, no read returns earlier points and no page adds them. Further transactions remove the
//! points, a few directory pages at a time. If the process is killed in between, another call
//! removes the rest.

use super::block::PointVersion;
use super::directory::{Directory, FeedIndex};
use super::directory_page::PageKey;
use super::failure::StoreResult;
use super::feeds::FeedRow;
use super::page_merge::move_recent;
use super::pages;
use super::retention::Freed;
use super::writer::Writer;

/// Forgets the points before a time in microseconds. `state` is the feed's new state.
pub(super) fn begin(
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

/// Removes the forgotten points of a directory page.
pub(super) fn remove_from(
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
        let mut rows = directory.rows(key, &entry)?;
        let kept = rows.partition_point(|row| row.timestamp < before);
        removed.points += points(&rows[..kept]);
        rows.drain(..kept);
        removed.bytes += directory.remove(known, key, &entry)?;
        if !rows.is_empty() {
            let stored = directory.store(known, key, &rows)?;
            removed.bytes = removed.bytes.saturating_sub(stored);
        }
    }
    Ok(removed)
}

/// Counts the points of some versions.
fn points(rows: &[PointVersion]) -> u64 {
    rows.chunk_by(|one, next| one.timestamp == next.timestamp).count() as u64
}
