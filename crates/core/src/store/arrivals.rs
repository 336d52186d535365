//! The arrivals of a page: how many points it brought first and how many it revised, for each
//! timestamp. They show delays without reading blocks.
//!
//! ```text
//! rows timestamps:steps points:runs revisions:runs
//! ```
//!
//! The first row of a point's history counts as a point of its page. A later row counts as a
//! revision if its values differ from the row before.

use std::collections::{BTreeMap, HashMap};

use super::block::PointVersion;
use super::bytes::{Sink, Source};
use crate::data::mixed;

/// Timestamps on a grid take no bytes, so forged bytes could fill the memory. A real page with more
/// would have hundreds of megabytes.
const MOST: usize = 1 << 22;
/// Timestamps out of order are sorted when there are this many, or as many as in order.
const UNSORTED: usize = 256;

/// The points and revisions of a page at one timestamp, or a change of their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arrival {
    timestamp: i64,
    points: i64,
    revisions: i64,
}

impl Arrival {
    fn add(&mut self, other: &Self) {
        self.points += other.points;
        self.revisions += other.revisions;
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Arrivals {
    sorted: Vec<Arrival>,
    /// The index after the last change: most series of a page have the same timestamps.
    next: usize,
    unsorted: Vec<Arrival>,
}

impl Arrivals {
    #[inline]
    pub(super) fn change(&mut self, timestamp: i64, is_revision: bool, by: i64) {
        let (points, revisions) = if is_revision { (0, by) } else { (by, 0) };
        self.add(Arrival { timestamp, points, revisions });
    }

    #[inline]
    fn add(&mut self, more: Arrival) {
        match self.sorted.get_mut(self.next) {
            Some(known) if known.timestamp == more.timestamp => {
                known.add(&more);
                self.next += 1;
            }
            _ => self.add_elsewhere(more),
        }
    }

    fn add_elsewhere(&mut self, more: Arrival) {
        if self.sorted.last().is_none_or(|last| last.timestamp < more.timestamp) {
            self.sorted.push(more);
            self.next = self.sorted.len();
            return;
        }
        if let Ok(place) =
            self.sorted.binary_search_by_key(&more.timestamp, |known| known.timestamp)
        {
            self.sorted[place].add(&more);
            self.next = place + 1;
            return;
        }
        self.unsorted.push(more);
        if self.unsorted.len() > self.sorted.len().max(UNSORTED) {
            self.sort();
        }
    }

    fn sort(&mut self) {
        if self.unsorted.is_empty() {
            return;
        }
        self.sorted.append(&mut self.unsorted);
        self.sorted.sort_by_key(|arrival| arrival.timestamp);
        self.sorted.dedup_by(|next, known| {
            let is_same = next.timestamp == known.timestamp;
            if is_same {
                known.add(next);
            }
            is_same
        });
        self.next = 0;
    }

    /// Returns `None` if a number would become negative, or for bytes that [`Arrivals::encode`] did
    /// not write.
    pub(super) fn added_to(mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        for run in runs(bytes)? {
            let (points, revisions) = (run.points.cast_signed(), run.revisions.cast_signed());
            run.timestamps().for_each(|t| self.add(Arrival { timestamp: t, points, revisions }));
        }
        self.encode()
    }

    pub(super) fn are_none(&mut self) -> bool {
        self.sort();
        self.sorted.iter().all(|arrival| (arrival.points, arrival.revisions) == (0, 0))
    }

    /// Returns `None` if no page can have such arrivals.
    pub(super) fn encode(mut self) -> Option<Vec<u8>> {
        self.sort();
        self.sorted.retain(|arrival| (arrival.points, arrival.revisions) != (0, 0));
        let rows = &self.sorted;
        if rows.len() > MOST || rows.iter().any(|row| row.points < 0 || row.revisions < 0) {
            return None;
        }
        let mut sink = Sink::default();
        sink.length(rows.len());
        sink.steps(rows.iter().map(|row| row.timestamp));
        sink.runs(rows.iter().map(|row| row.points));
        sink.runs(rows.iter().map(|row| row.revisions));
        Some(sink.0)
    }
}

/// The arrivals of the page itself and, if it is late, changes of the arrivals of others.
#[derive(Debug, Default)]
pub(super) struct ArrivalChanges {
    pub(super) own: Arrivals,
    /// By sequence number.
    pub(super) others: BTreeMap<u64, Arrivals>,
}

impl ArrivalChanges {
    #[inline]
    pub(super) fn append(&mut self, before: Option<&PointVersion>, after: &PointVersion) {
        if before.is_none_or(|before| before.values != after.values) {
            self.own.change(after.timestamp, before.is_some(), 1);
        }
    }

    pub(super) fn replace(
        &mut self,
        sequence: u64,
        before: &[PointVersion],
        after: &[PointVersion],
    ) {
        for (history, by) in [(before, -1), (after, 1)] {
            for (row, is_revision) in arriving(history) {
                let page = match row.version {
                    version if version == sequence => &mut self.own,
                    version => self.others.entry(version).or_default(),
                };
                page.change(row.timestamp, is_revision, by);
            }
        }
    }
}

/// The rows of a history that are a point (false) or a revision (true) of their page.
pub(super) fn arriving(history: &[PointVersion]) -> impl Iterator<Item = (&PointVersion, bool)> {
    let before = std::iter::once(None).chain(history.iter().map(Some));
    let is_new = |(row, before): &(&PointVersion, Option<&PointVersion>)| {
        before.is_none_or(|before| before.values != row.values)
    };
    history.iter().zip(before).filter(is_new).map(|(row, before)| (row, before.is_some()))
}

/// Equidistant timestamps with the same number of points and of revisions at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ArrivalRun {
    pub(super) first: i64,
    /// At least 1 if `count` is more than 1.
    pub(super) step: i64,
    pub(super) count: i64,
    pub(super) points: u64,
    pub(super) revisions: u64,
}

impl ArrivalRun {
    /// Returns the timestamps from `time` on.
    pub(super) fn not_before(self, time: i64) -> Option<Self> {
        if self.first >= time {
            return Some(self);
        }
        let before = time.saturating_sub(self.first).saturating_sub(1);
        let skipped = if self.step > 0 { before / self.step + 1 } else { self.count };
        let first = self.first.saturating_add(self.step.saturating_mul(skipped));
        (skipped < self.count).then(|| Self { first, count: self.count - skipped, ..self })
    }

    pub(super) fn timestamps(self) -> impl Iterator<Item = i64> {
        (0..self.count).map(move |index| self.first + self.step * index)
    }
}

/// Returns `None` for bytes that [`Arrivals::encode`] did not write.
pub(super) fn runs(bytes: &[u8]) -> Option<Vec<ArrivalRun>> {
    let mut source = Source(bytes);
    let count = source.length().filter(|count| *count <= MOST)?;
    let mut column = || {
        let mut runs = Vec::new();
        source.runs(count, |number, length| runs.push((number, length)))?;
        Some(runs)
    };
    let (steps, points, revisions) = (column()?, column()?, column()?);
    if !source.0.is_empty() {
        return None;
    }
    let (mut points, mut revisions) = (Lengths::new(&points), Lengths::new(&revisions));
    let (mut last, mut runs) = (0_i64, Vec::new());
    for (index, (step, mut left)) in steps.into_iter().enumerate() {
        // The first timestamp is a step from 0. Later steps are unsigned: a step of more than half
        // the range of `i64` is stored wrapped.
        let is_first = index == 0;
        let step = if is_first { i128::from(step) } else { i128::from(step.cast_unsigned()) };
        if step <= 0 && (!is_first || left > 1) {
            return None;
        }
        while left > 0 {
            let length = left.min(points.equal()?).min(revisions.equal()?);
            let count = i64::try_from(length).ok()?;
            let first = i64::try_from(i128::from(last) + step).ok()?;
            last = i64::try_from(i128::from(first) + step * i128::from(count - 1)).ok()?;
            let step = i64::try_from(step).unwrap_or(i64::MAX);
            let [points, revisions] = [points.take(length)?, revisions.take(length)?];
            runs.push(ArrivalRun { first, step, count, points, revisions });
            left -= length;
        }
    }
    Some(runs)
}

struct Lengths<'r> {
    runs: std::slice::Iter<'r, (i64, usize)>,
    number: i64,
    left: usize,
}

impl<'r> Lengths<'r> {
    fn new(runs: &'r [(i64, usize)]) -> Self {
        Self { runs: runs.iter(), number: 0, left: 0 }
    }

    fn equal(&mut self) -> Option<usize> {
        if self.left == 0 {
            (self.number, self.left) = *self.runs.next()?;
        }
        Some(self.left)
    }

    fn take(&mut self, length: usize) -> Option<u64> {
        self.left -= length;
        u32::try_from(self.number).ok().map(u64::from)
    }
}

/// Sums over the arrivals of each page, from the page log or from the blocks. If two sums are
/// equal, the arrivals are almost certainly equal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ArrivalSums {
    /// Over points and over revisions, by sequence number.
    pages: HashMap<u64, [u64; 2]>,
}

impl ArrivalSums {
    pub(super) fn add_page(&mut self, sequence: u64, runs: &[ArrivalRun]) {
        for run in runs {
            let all = run.timestamps().map(spread).fold(0, u64::wrapping_add);
            let sums = [run.points, run.revisions].map(|count| all.wrapping_mul(count));
            self.add(sequence, sums);
        }
    }

    pub(super) fn add_block(&mut self, rows: &[PointVersion]) {
        // Most rows of a block have the same version as the row before.
        let (mut version, mut sums) = (0, [0_u64; 2]);
        for history in rows.chunk_by(|one, next| one.timestamp == next.timestamp) {
            for (row, is_revision) in arriving(history) {
                if row.version != version {
                    self.add(version, sums);
                    (version, sums) = (row.version, [0; 2]);
                }
                let sum = &mut sums[usize::from(is_revision)];
                *sum = sum.wrapping_add(spread(row.timestamp));
            }
        }
        self.add(version, sums);
    }

    fn add(&mut self, sequence: u64, more: [u64; 2]) {
        if more != [0; 2] {
            let sums = self.pages.entry(sequence).or_default();
            *sums = [0, 1].map(|index| sums[index].wrapping_add(more[index]));
        }
    }
}

/// A hash, so that different timestamps give different sums.
fn spread(timestamp: i64) -> u64 {
    mixed(timestamp.cast_unsigned().wrapping_add(0x9E37_79B9_7F4A_7C15))
}
