//! The delays of points and revisions, from the times of the reads and the arrivals in the page
//! log.

use std::collections::BTreeMap;
use std::ops::Range;

use rusqlite::Connection;

use super::arrivals::ArrivalRun;
use super::failure::StoreResult;
use super::feeds::FeedRow;
use super::pages::{self, PageRow};

/// The age of a point, measured from the end of its bucket, in steps that grow by 5 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Age(pub(crate) u16);

const SECOND: i64 = 1_000_000;
/// In seconds.
const FINEST: f64 = 10.0;
const RATIO: f64 = 1.05;

impl Age {
    /// Limited to ten thousand years.
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

    #[must_use]
    pub(crate) fn seconds(self) -> f64 {
        self.within(1.0)
    }

    /// The age in seconds at a fraction of the step.
    #[must_use]
    pub(crate) fn within(self, part: f64) -> f64 {
        FINEST * RATIO.powf(f64::from(self.0) - 1.0 + part)
    }
}

/// The reads around the arrival of a point or a new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sighting {
    /// The last complete read without it, or `None` if the first read brought it.
    pub after: Option<Age>,
    pub by: Age,
    /// The last complete read of its bucket. Later revisions are unknown.
    pub(crate) looked: Age,
}

pub(crate) type Sightings = BTreeMap<Sighting, u64>;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Delays {
    pub points: Sightings,
    pub(crate) revisions: Sightings,
}

#[derive(Debug, Clone, Copy)]
struct ChainRead {
    /// Sequence number of the last page.
    last: u64,
    /// When its first page arrived.
    read_at: i64,
}

/// A stretch of time that the same chains read completely.
#[derive(Debug, Clone, Default)]
struct ReadStretch {
    start: i64,
    /// Ordered by when they ended.
    reads: Vec<ChainRead>,
    /// The latest start of a read, not always of the one that ended last.
    newest: Option<i64>,
}

/// Ascending, without gaps.
struct CompleteReads(Vec<ReadStretch>);

impl CompleteReads {
    /// Requires `pages` in order of their sequence numbers.
    fn new(pages: &[PageRow]) -> Self {
        let first = |last: &PageRow| {
            let place = pages.binary_search_by_key(&last.chain, |page| page.sequence);
            place.map_or(last.read_at, |place| pages[place].read_at)
        };
        let ended: Vec<(Range<i64>, ChainRead)> = pages
            .iter()
            .filter(|page| page.is_last)
            .map(|page| {
                let read = ChainRead { last: page.sequence, read_at: first(page) };
                (page.start..page.end, read)
            })
            .collect();
        let mut changes: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (number, (range, _)) in ended.iter().enumerate() {
            changes.entry(range.start).or_default().push(number);
            changes.entry(range.end).or_default().push(number);
        }
        let mut open: Vec<usize> = Vec::new();
        let mut stretches = Vec::with_capacity(changes.len() + 1);
        stretches.push(ReadStretch { start: i64::MIN, ..ReadStretch::default() });
        for (start, numbers) in changes {
            for number in numbers {
                match open.binary_search(&number) {
                    Ok(place) => drop(open.remove(place)),
                    Err(place) => open.insert(place, number),
                }
            }
            let reads: Vec<ChainRead> = open.iter().map(|number| ended[*number].1).collect();
            let newest = reads.iter().map(|read| read.read_at).max();
            stretches.push(ReadStretch { start, reads, newest });
        }
        Self(stretches)
    }

    /// Also returns the last timestamp of the stretch.
    fn stretch(&self, timestamp: i64) -> (&ReadStretch, i64) {
        let next = self.0.partition_point(|stretch| stretch.start <= timestamp);
        let end = self.0.get(next).map_or(i64::MAX, |next| next.start - 1);
        (&self.0[next - 1], end)
    }
}

/// Converts ages to steps without a logarithm.
struct AgeScale {
    /// The longest age of each step, in whole seconds.
    ends: Vec<i64>,
    /// In microseconds.
    width: i64,
}

impl AgeScale {
    fn new(width: i64) -> Self {
        const LONGEST: i64 = i64::MAX / SECOND;
        let (mut ends, mut end) = (Vec::new(), 0_i64);
        for step in 0.. {
            // The next end is 5 % later. The first steps are shorter than 20 seconds.
            let (mut first, mut last) = (end, (end + end / 10).saturating_add(20).min(LONGEST));
            while first < last {
                let middle = first + (last - first + 1) / 2;
                if Age::of_seconds(middle) <= Age(step) {
                    first = middle;
                } else {
                    last = middle - 1;
                }
            }
            end = first;
            ends.push(end);
            if end == LONGEST {
                break;
            }
        }
        Self { ends, width }
    }

    /// Also returns the last timestamp with the same age.
    fn age(&self, timestamp: i64, at: i64) -> (Age, i64) {
        let end = timestamp.saturating_add(self.width);
        let seconds = at.saturating_sub(end).div_euclid(SECOND);
        let step = self.ends.partition_point(|longest| *longest < seconds);
        let until = step.checked_sub(1).map_or(i64::MAX, |before| {
            let youngest = (self.ends[before] + 1).saturating_mul(SECOND);
            at.saturating_sub(self.width).saturating_sub(youngest)
        });
        (Age(u16::try_from(step).unwrap_or(u16::MAX)), until)
    }
}

/// `width` is the bucket width in microseconds.
pub(super) fn delays(connection: &Connection, feed: &FeedRow, width: i64) -> StoreResult<Delays> {
    let log = pages::all(connection, feed)?;
    let (reads, scale) = (CompleteReads::new(&log), AgeScale::new(width));
    let mut delays = Delays::default();
    let mut log = log.iter();
    // A forgotten range has only some of its reads, so its delays would be wrong.
    let kept_from = feed.retention.kept_from;
    pages::arrivals(connection, feed, |sequence, runs| {
        if let Some(page) = log.find(|page| page.sequence == sequence) {
            let kept = runs.into_iter().filter_map(|run| run.not_before(kept_from));
            kept.for_each(|run| delays.add(page, run, &reads, &scale));
        }
    })?;
    Ok(delays)
}

impl Delays {
    /// Adds timestamps with the same sighting together.
    fn add(&mut self, page: &PageRow, run: ArrivalRun, reads: &CompleteReads, scale: &AgeScale) {
        let (mut timestamp, mut left) = (run.first, run.count);
        while left > 0 {
            let (stretch, end) = reads.stretch(timestamp);
            let (sighting, until) = match sighting(timestamp, page, stretch, scale) {
                Some((sighting, until)) => (Some(sighting), until.min(end)),
                None => (None, end),
            };
            let same = match run.step {
                step if step > 0 => (until.saturating_sub(timestamp) / step + 1).clamp(1, left),
                _ => left,
            };
            if let Some(sighting) = sighting {
                let kinds = [(&mut self.points, run.points), (&mut self.revisions, run.revisions)];
                for (kind, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
                    *kind.entry(sighting).or_insert(0) += count * same.cast_unsigned();
                }
            }
            left -= same;
            timestamp = timestamp.wrapping_add(run.step.wrapping_mul(same));
        }
    }
}

/// Also returns the last timestamp with the same ages. Returns `None` if no complete read covers
/// the bucket.
fn sighting(
    timestamp: i64,
    page: &PageRow,
    stretch: &ReadStretch,
    scale: &AgeScale,
) -> Option<(Sighting, i64)> {
    let newest = stretch.newest?;
    // Only chains that ended before the chain of this page began.
    let before = stretch.reads.partition_point(|read| read.last < page.chain);
    let (by, mut until) = scale.age(timestamp, page.read_at);
    let mut age = |at| {
        let (age, end) = scale.age(timestamp, at);
        until = until.min(end);
        age
    };
    let after = before.checked_sub(1).map(|last| age(stretch.reads[last].read_at));
    let looked = age(newest.max(page.read_at));
    Some((Sighting { after, by, looked }, until))
}
