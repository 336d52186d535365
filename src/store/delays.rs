//! How late points and revisions came: the measurement for choosing `settle_lag` and `lateness`.

use std::collections::{BTreeMap, HashMap};

use rusqlite::Connection;

use super::block::PointVersion;
use super::directory::{Directory, FeedIndex};
use super::failure::{StoreFailure, StoreResult};
use super::feeds::FeedRow;
use super::pages::{self, PageRow};
use super::read::{ALL_TIME, overlapping_blocks};

/// How late points and revisions came after a first complete read of their range: seconds from the
/// end of a point's bucket to the read that brought it, each with a count, ascending.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delays {
    /// Points that the first complete read did not bring.
    pub points: Vec<(i64, u64)>,
    /// New values of points that were stored before.
    pub revisions: Vec<(i64, u64)>,
}

/// The first chain that completely read each time, as the sequence number of its last page.
struct FirstReads {
    /// Start -> end, last page.
    ranges: BTreeMap<i64, (i64, u64)>,
}

impl FirstReads {
    /// The pages are in the order of their sequence numbers.
    fn new(pages: &[PageRow]) -> Self {
        let mut reads = Self { ranges: BTreeMap::new() };
        for page in pages.iter().filter(|page| page.is_last) {
            reads.fill(page.start, page.end, page.sequence);
        }
        reads
    }

    /// Assigns to this chain the times that no earlier chain read.
    fn fill(&mut self, mut start: i64, end: i64, sequence: u64) {
        if let Some((_, (reach, _))) = self.ranges.range(..=start).next_back() {
            start = start.max(*reach);
        }
        while start < end {
            let next = self.ranges.range(start..end).next().map(|(start, (end, _))| (*start, *end));
            let (until, reach) = next.unwrap_or((end, end));
            if start < until {
                self.ranges.insert(start, (until, sequence));
            }
            start = reach;
        }
    }

    fn at(&self, timestamp: i64) -> Option<u64> {
        let (_, (end, sequence)) = self.ranges.range(..=timestamp).next_back()?;
        (timestamp < *end).then_some(*sequence)
    }
}

/// How late points and revisions came, with buckets of this width in microseconds.
pub(super) fn delays(connection: &Connection, feed: &FeedRow, width: i64) -> StoreResult<Delays> {
    let log = pages::all(connection, feed)?;
    let first = FirstReads::new(&log);
    let pages: HashMap<u64, &PageRow> = log.iter().map(|page| (page.sequence, page)).collect();
    let known = FeedIndex::load(connection, feed)?;
    let mut directory = Directory::new(connection, feed.id)?;
    let (mut points, mut revisions) = (BTreeMap::new(), BTreeMap::new());
    for (key, entry) in overlapping_blocks(connection, &known, feed, ALL_TIME)? {
        let rows = directory.rows(key, &entry)?;
        for history in rows.chunk_by(|one, next| one.timestamp == next.timestamp) {
            let Some(read) = first.at(history[0].timestamp) else { continue };
            for (index, row) in history.iter().enumerate() {
                let other = index == 0 || history[index - 1].values != row.values;
                let unknown =
                    StoreFailure::Corrupt("the page log lacks the page of a stored point");
                let page = pages.get(&row.version).ok_or(unknown)?;
                if other && read < page.chain {
                    let delays = if index == 0 { &mut points } else { &mut revisions };
                    *delays.entry(seconds(row, page, width)).or_insert(0) += 1;
                }
            }
        }
    }
    let [points, revisions] = [points, revisions].map(|delays| delays.into_iter().collect());
    Ok(Delays { points, revisions })
}

/// From the end of a point's bucket to the read that brought it.
fn seconds(row: &PointVersion, page: &PageRow, width: i64) -> i64 {
    page.read_at.saturating_sub(row.timestamp.saturating_add(width)).div_euclid(1_000_000)
}
