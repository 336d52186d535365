//! Removes what lies before a time. The feed's beginning and its state change first, in one
//! transaction: from then on nothing before that time is read or taken, whatever is still in the file.
//! The points go after that, some directory pages a transaction. Killed in between, a further call
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

/// Forgets what lies before a time, in microseconds; `state` is the feed's state after that.
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
        // The block in which the feed now begins.
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

/// How many points these versions are of.
fn points(rows: &[PointVersion]) -> u64 {
    rows.chunk_by(|one, next| one.timestamp == next.timestamp).count() as u64
}
