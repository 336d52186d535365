//! Between which two reads points and revisions came: what is known of their delays.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use rusqlite::Connection;

use super::block::PointVersion;
use super::directory::{Directory, FeedIndex};
use super::failure::{StoreFailure, StoreResult};
use super::feeds::FeedRow;
use super::pages::{self, PageRow};
use super::read::{ALL_TIME, FoundBlocks, rows_of};

/// An age: the time since the end of a point's bucket, as a step of a scale whose steps grow by 5 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Age(pub(crate) u16);

/// The first step of the scale, in seconds.
const FINEST: f64 = 10.0;
const RATIO: f64 = 1.05;

impl Age {
    /// The step that an age in seconds belongs to: at most that of ten thousand years.
    #[must_use]
    pub(crate) fn of_seconds(seconds: i64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a step is 5 % wide")]
        let steps = (seconds.max(1) as f64 / FINEST).ln() / RATIO.ln();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the scale ends far below the limit"
        )]
        Self(steps.ceil().clamp(0.0, 1_000.0) as u16)
    }

    /// The end of the step, in seconds.
    #[must_use]
    pub(crate) fn seconds(self) -> f64 {
        self.within(1.0)
    }

    /// The age in seconds up to which this part of the step reaches.
    #[must_use]
    pub(crate) fn within(self, part: f64) -> f64 {
        FINEST * RATIO.powf(f64::from(self.0) - 1.0 + part)
    }
}

/// The reads around the arrival of a point, or of a new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sighting {
    /// The last complete read that did not bring it; `None` where the first read did.
    pub(crate) after: Option<Age>,
    /// The read that brought it.
    pub(crate) by: Age,
    /// The last complete read of its bucket: what comes later is not known.
    pub(crate) looked: Age,
}

/// How often there was each sighting.
pub(crate) type Sightings = BTreeMap<Sighting, u64>;

/// What is known of when points and revisions came.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Delays {
    /// The first values of points.
    pub(crate) points: Sightings,
    /// New values of points that were stored before.
    pub(crate) revisions: Sightings,
}

/// A chain that was read to its end.
#[derive(Debug, Clone, Copy)]
struct ChainRead {
    /// The sequence number of its last page.
    last: u64,
    /// When its first page arrived.
    read_at: i64,
}

/// The chains that completely read each time, in the order in which they ended.
struct CompleteReads {
    /// The times at which the list of chains changes, ascending, each with the list from there on.
    stretches: Vec<(i64, Vec<ChainRead>)>,
}

impl CompleteReads {
    /// The pages are in the order of their sequence numbers.
    fn new(pages: &[PageRow], by_number: &HashMap<u64, &PageRow>) -> Self {
        let ended: Vec<(Range<i64>, ChainRead)> = pages
            .iter()
            .filter(|page| page.is_last)
            .map(|page| {
                let first = by_number.get(&page.chain).unwrap_or(&page);
                let read = ChainRead { last: page.sequence, read_at: first.read_at };
                (page.start..page.end, read)
            })
            .collect();
        let mut changes: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (number, (range, _)) in ended.iter().enumerate() {
            changes.entry(range.start).or_default().push(number);
            changes.entry(range.end).or_default().push(number);
        }
        let mut open: Vec<usize> = Vec::new();
        let mut stretches = Vec::with_capacity(changes.len());
        for (start, numbers) in changes {
            for number in numbers {
                match open.binary_search(&number) {
                    Ok(place) => drop(open.remove(place)),
                    Err(place) => open.insert(place, number),
                }
            }
            stretches.push((start, open.iter().map(|number| ended[*number].1).collect()));
        }
        Self { stretches }
    }

    fn at(&self, timestamp: i64) -> &[ChainRead] {
        let after = self.stretches.partition_point(|(start, _)| *start <= timestamp);
        after.checked_sub(1).map_or(&[], |index| &self.stretches[index].1)
    }
}

/// What is known of when points and revisions came, with buckets of this width in microseconds.
pub(super) fn delays(connection: &Connection, feed: &FeedRow, width: i64) -> StoreResult<Delays> {
    let log = pages::all(connection, feed)?;
    let by_number: HashMap<u64, &PageRow> = log.iter().map(|page| (page.sequence, page)).collect();
    let reads = CompleteReads::new(&log, &by_number);
    let known = FeedIndex::load(connection, feed)?;
    let mut directory = Directory::new(connection, feed.id)?;
    let mut delays = Delays::default();
    let found = FoundBlocks::load(connection, &known, feed, ALL_TIME, None)?;
    for (key, entry) in found.blocks {
        let rows = rows_of(&mut directory, key, entry.as_ref(), &found.recent)?;
        for history in rows.chunk_by(|one, next| one.timestamp == next.timestamp) {
            let reads = reads.at(history[0].timestamp);
            for (index, row) in history.iter().enumerate() {
                if index > 0 && history[index - 1].values == row.values {
                    continue;
                }
                let unknown =
                    StoreFailure::Corrupt("the page log lacks the page of a stored point");
                let page = by_number.get(&row.version).ok_or(unknown)?;
                let Some(sighting) = sighting(row, page, reads, width) else { continue };
                let kind = if index == 0 { &mut delays.points } else { &mut delays.revisions };
                *kind.entry(sighting).or_insert(0) += 1;
            }
        }
    }
    Ok(delays)
}

/// The reads around the page that brought a row; `None` where no complete read has its bucket.
fn sighting(
    row: &PointVersion,
    page: &PageRow,
    reads: &[ChainRead],
    width: i64,
) -> Option<Sighting> {
    let age = |at: i64| {
        let end = row.timestamp.saturating_add(width);
        Age::of_seconds(at.saturating_sub(end).div_euclid(1_000_000))
    };
    // The chains that had ended when that of the page began.
    let before = reads.partition_point(|read| read.last < page.chain);
    let by = age(page.read_at);
    let after = before.checked_sub(1).map(|last| age(reads[last].read_at));
    // A later chain may have begun earlier.
    let looked = reads.iter().map(|read| age(read.read_at)).max()?.max(by);
    Some(Sighting { after, by, looked })
}
