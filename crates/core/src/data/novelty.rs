//! Detects whether a chain's pages still contain new points, which tells a long chain from an
//! endless one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use super::point_columns::PointColumns;

/// A chain may have this many times the expected number of pages.
const MARGIN: u64 = 10;
/// No shorter chain is endless.
const LEAST: u64 = 100;
/// A chain without an estimate may be endless after this many pages. A bookmark stores as many
/// cursors.
const UNKNOWN: u64 = 1_024;
/// After that, this fraction of its pages, and at least [`LEAST`], may have no new point.
const FRACTION: u64 = 10;

#[derive(Debug, Clone)]
pub(super) struct Novelty {
    pub(super) expected: Option<u64>,
    pub(super) idle: u64,
    /// The range of the query in microseconds.
    range: Range<i64>,
    /// Set after half of the page limit, so that it costs nothing for shorter chains.
    seen: Option<SeenPoints>,
    /// Resumed after idle pages, and without a point since. The first page with points then resets
    /// nothing. Otherwise a service that always sends the same page would look new in each run.
    is_resumed: bool,
}

impl Novelty {
    /// Only points in `range` count.
    pub(super) fn new(range: Range<i64>) -> Self {
        Self { expected: None, idle: 0, range, seen: None, is_resumed: false }
    }

    pub(super) fn resume(&mut self, idle: u64) {
        (self.idle, self.is_resumed) = (idle, idle > 0);
    }

    fn limit(&self) -> u64 {
        self.expected.map_or(UNKNOWN, |pages| pages.saturating_mul(MARGIN).max(LEAST))
    }

    /// Whether a chain of this length is longer than expected, without anything new on its last
    /// pages, and on `ahead` pages more.
    pub(super) fn is_endless(&self, pages: u64, ahead: u64) -> bool {
        let (pages, idle) = (pages + ahead, self.idle + ahead);
        pages >= self.limit() && idle >= (pages / FRACTION).max(LEAST)
    }

    /// `pages` is the length of the chain with it.
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

/// A set of points with one bit per hash. A collision can make a new point look old, but hardly
/// ever all points of [`LEAST`] pages.
#[derive(Debug, Clone)]
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
    /// Returns whether a point in the range is new.
    fn add(&mut self, points: &PointColumns, range: &Range<i64>) -> bool {
        let before = self.count;
        // If half of the bits are set, the set is cleared, and each point counts as new once more.
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
        let place = (hash >> 6) % self.bits.len() as u64;
        let word = &mut self.bits[usize::try_from(place).unwrap_or_default()];
        let bit = 1 << (hash & 63);
        self.count += usize::from(*word & bit == 0);
        *word |= bit;
    }
}

/// Spreads the bits of a number (`SplitMix64`).
pub(crate) fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
