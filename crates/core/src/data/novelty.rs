//! [`Novelty`]: whether the pages of a chain still bring points that it has not brought before. It tells
//! a long chain from one that never ends (P14).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use super::point_columns::PointColumns;

/// A chain may have this many times the pages that were expected ...
const MARGIN: u64 = 10;
/// ... and at least this many, ...
const LEAST: u64 = 100;
/// ... or this many where nothing is known of its query: as many as a bookmark remembers cursors.
const UNKNOWN: u64 = 1_024;
/// After that it may read this fraction of its pages, and at least [`LEAST`], without a new point.
const FRACTION: u64 = 10;

/// Evidence about the pages of one chain.
#[derive(Debug, Clone)]
pub(super) struct Novelty {
    /// The number of pages that the chain is expected to have.
    pub(super) expected: Option<u64>,
    /// The number of pages since the last one that brought a new point.
    pub(super) idle: u64,
    /// The bucket timestamps of the query, in microseconds.
    range: Range<i64>,
    /// Set from half of the expected limit on: a shorter chain costs nothing.
    seen: Option<SeenPoints>,
    /// Whether no point has come since the chain was resumed after pages that brought nothing new. What
    /// came before is not known: the first page with points resets nothing, or a service that sends the
    /// same page for ever would look new in each run.
    is_resumed: bool,
}

impl Novelty {
    /// No evidence yet. Only points of `range` count.
    pub(super) fn new(range: Range<i64>) -> Self {
        Self { expected: None, idle: 0, range, seen: None, is_resumed: false }
    }

    /// Continues a chain of which so many of the last pages brought nothing new.
    pub(super) fn resume(&mut self, idle: u64) {
        (self.idle, self.is_resumed) = (idle, idle > 0);
    }

    /// The number of pages that the chain may have without a check.
    fn limit(&self) -> u64 {
        self.expected.map_or(UNKNOWN, |pages| pages.saturating_mul(MARGIN).max(LEAST))
    }

    /// Whether a chain of this many pages has no end: it is longer than expected, and the last of its
    /// pages brought nothing new.
    pub(super) fn is_endless(&self, pages: u64) -> bool {
        is_endless(pages, self.idle, self.limit())
    }

    /// Whether [`Novelty::is_endless`] holds if the page that follows this many brings nothing new.
    pub(super) fn may_become_endless(&self, pages: u64) -> bool {
        is_endless(pages + 1, self.idle + 1, self.limit())
    }

    /// Adds the points of a page: the chain has `pages` with it.
    pub(super) fn add(&mut self, points: &PointColumns, pages: u64) {
        let is_new = if pages > self.limit() / 2 {
            self.seen.get_or_insert_default().add(points, &self.range)
        } else {
            points.timestamps.values().iter().any(|at| self.range.contains(at))
        };
        match (is_new, std::mem::take(&mut self.is_resumed)) {
            (true, false) => self.idle = 0,
            (true, true) => {}
            (false, is_resumed) => (self.idle, self.is_resumed) = (self.idle + 1, is_resumed),
        }
    }
}

fn is_endless(pages: u64, idle: u64, limit: u64) -> bool {
    pages >= limit && idle >= (pages / FRACTION).max(LEAST)
}

/// A set of points in a bit for each hash. A hash that two points share can make a new point look old,
/// hardly ever all points of [`LEAST`] pages.
#[derive(Clone)]
struct SeenPoints {
    bits: Vec<u64>,
    count: usize,
}

impl Default for SeenPoints {
    fn default() -> Self {
        Self { bits: vec![0; 1 << 17], count: 0 }
    }
}

impl SeenPoints {
    /// Adds the points in the range; returns whether one of them is new.
    fn add(&mut self, points: &PointColumns, range: &Range<i64>) -> bool {
        let before = self.count;
        // Where every second bit is set, it begins again, and each point looks new once more.
        if before > self.bits.len() * 32 {
            *self = Self::default();
            self.add(points, range);
            return true;
        }
        for (identity, rows) in points.identified() {
            let mut hasher = DefaultHasher::new();
            identity.hash(&mut hasher);
            let series = hasher.finish();
            for at in points.timestamps.values()[rows].iter().filter(|at| range.contains(at)) {
                self.insert(mixed(series ^ mixed(at.cast_unsigned())));
            }
        }
        self.count > before
    }

    fn insert(&mut self, hash: u64) {
        let length = self.bits.len() as u64;
        let Some(word) =
            usize::try_from((hash >> 6) % length).ok().and_then(|at| self.bits.get_mut(at))
        else {
            return;
        };
        let bit = 1 << (hash & 63);
        self.count += usize::from(*word & bit == 0);
        *word |= bit;
    }
}

impl std::fmt::Debug for SeenPoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SeenPoints({})", self.count)
    }
}

/// Spreads the bits of a number (`SplitMix64`).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
