//! Merges a page into a block, and reads a block as of a sequence number. The result depends on the
//! sequence numbers, not on the order in which pages are applied.

use super::arrivals::ArrivalChanges;
use super::block::PointVersion;
use super::target::Applied;
use super::view::{Flagged, View};
use crate::data::ranges::Range;

/// The sequence number of a newer page request, and whether the point is absent: the request ended
/// a chain, and no page brought the point since the chain began.
pub(super) type Event = (u64, bool);

#[derive(Debug, Default)]
pub(super) struct MergeCounts {
    pub(super) tally: Applied,
    pub(super) arrivals: ArrivalChanges,
}

/// Merges the rows of one page, ascending and one per timestamp. An absent row means that the chain
/// ended by the page lacked the point. Its values are ignored. `later` returns the events of newer
/// pages for a point, ascending. Returns `None` if the block does not change.
pub(super) fn merge(
    rows: &[PointVersion],
    incoming: &[PointVersion],
    mut later: impl FnMut(i64) -> Vec<Event>,
    counts: &mut MergeCounts,
) -> Option<Vec<PointVersion>> {
    let mut merged: Option<Vec<PointVersion>> = None;
    let mut done = 0;
    for new in incoming {
        let start = done + rows[done..].partition_point(|row| row.timestamp < new.timestamp);
        let end = start + rows[start..].iter().take_while(|r| r.timestamp == new.timestamp).count();
        let (group, events) = (&rows[start..end], later(new.timestamp));
        let before = group.last();
        let history = if events.is_empty() && before.is_none_or(|row| row.version < new.version) {
            let Some(after) = successor(before, new, counts) else { continue };
            group.iter().copied().chain([after]).collect()
        } else {
            let history = observe(group, new, &events);
            count(before, history.last(), new, &mut counts.tally);
            counts.arrivals.replace(new.version, group, &history);
            history
        };
        if history == group {
            continue;
        }
        let out = merged.get_or_insert_with(|| Vec::with_capacity(rows.len() + incoming.len()));
        out.extend_from_slice(&rows[done..start]);
        out.extend(history);
        done = end;
    }
    let mut merged = merged?;
    merged.extend_from_slice(&rows[done..]);
    Some(merged)
}

/// Returns the row that the newest page adds after `before`, or `None` if it changes nothing.
pub(super) fn successor(
    before: Option<&PointVersion>,
    new: &PointVersion,
    counts: &mut MergeCounts,
) -> Option<PointVersion> {
    let after = match before {
        None if new.absent => return None,
        Some(last) if new.absent => PointVersion { version: new.version, absent: true, ..*last },
        _ => *new,
    };
    if before.is_some_and(|last| last.same(&after)) {
        counts.tally.unchanged += u64::from(!new.absent);
        return None;
    }
    count(before, Some(&after), new, &mut counts.tally);
    counts.arrivals.append(before, &after);
    Some(after)
}

fn count(
    before: Option<&PointVersion>,
    after: Option<&PointVersion>,
    new: &PointVersion,
    tally: &mut Applied,
) {
    match (before, after) {
        (None, Some(_)) => tally.inserted += 1,
        (Some(before), Some(after)) if new.absent => {
            tally.flagged += u64::from(!before.absent && after.absent);
        }
        (Some(before), Some(after)) if !before.same(after) => tally.revised += 1,
        _ => tally.unchanged += u64::from(!new.absent),
    }
}

fn observe(group: &[PointVersion], new: &PointVersion, later: &[Event]) -> Vec<PointVersion> {
    let older = group.partition_point(|row| row.version < new.version);
    let mut history = group[..older].to_vec();
    let mut add = |version, absent, brought: Option<&PointVersion>| {
        let values = if absent { history.last() } else { brought };
        let row = values.map(|values| PointVersion { version, absent, ..*values });
        history.extend(row.filter(|row| history.last().is_none_or(|last| !last.same(row))));
    };
    add(new.version, new.absent, Some(new));
    for (version, absent) in later.iter().copied() {
        // A request that brought the point brought the values of the last row up to it.
        let end = group.partition_point(|row| row.version <= version);
        add(version, absent, group[..end].last());
    }
    history
}

/// Merges two ascending lists. A row in both lists is equal in both.
pub(super) fn combine(rows: Vec<PointVersion>, more: &[PointVersion]) -> Vec<PointVersion> {
    let key = |row: &PointVersion| (row.timestamp, row.version);
    let Some(first) = more.first() else { return rows };
    if rows.last().is_none_or(|last| key(last) < key(first)) {
        return [rows.as_slice(), more].concat();
    }
    let mut combined = Vec::with_capacity(rows.len() + more.len());
    let mut more = more.iter().copied().peekable();
    for row in rows {
        while let Some(other) = more.next_if(|other| key(other) < key(&row)) {
            combined.push(other);
        }
        more.next_if(|other| key(other) == key(&row));
        combined.push(row);
    }
    combined.extend(more);
    combined
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    New,
    Revised,
    Absent,
    Returned,
}

impl Change {
    pub(super) const NAMES: [&str; 4] = ["new", "revised", "withdrawn", "returned"];
}

/// Calls `give` for each point of a block that a view shows, ascending.
pub(super) fn show(
    rows: &[PointVersion],
    times: Range,
    view: View,
    flagged: Flagged,
    mut give: impl FnMut(&PointVersion, Change),
) {
    let first = rows.partition_point(|row| row.timestamp < times.start);
    let end = rows.partition_point(|row| row.timestamp < times.end);
    let mut at = first;
    while at < end {
        let mut next = at;
        while next < end && rows[next].timestamp == rows[at].timestamp {
            next += 1;
        }
        if let Some((row, change)) = select(&rows[at..next], view)
            && match flagged {
                Flagged::Keep => true,
                Flagged::Drop => !row.absent,
                Flagged::Only => row.absent,
            }
        {
            give(row, change);
        }
        at = next;
    }
}

#[inline]
fn select(history: &[PointVersion], view: View) -> Option<(&PointVersion, Change)> {
    let as_of = |version| history[..history.partition_point(|row| row.version <= version)].last();
    let last = view.until.map_or_else(|| history.last(), as_of)?;
    match view.since {
        Some(since) => changed(last, as_of(since)),
        None => Some((last, Change::New)),
    }
}

fn changed<'a>(
    last: &'a PointVersion,
    before: Option<&PointVersion>,
) -> Option<(&'a PointVersion, Change)> {
    let change = match before {
        Some(before) if before.version == last.version => return None,
        _ if last.absent => Change::Absent,
        None => Change::New,
        Some(before) if before.absent => Change::Returned,
        Some(_) => Change::Revised,
    };
    Some((last, change))
}
