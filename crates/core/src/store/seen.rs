//! The points of a page, as runs of equidistant timestamps of one or more series. A page of 10,000
//! points takes some hundred bytes, even with thousands of series.

use std::collections::HashMap;

use super::bytes::{Sink, Source};

/// Keeps forged bytes from filling the memory.
const LARGEST_GROUP: usize = 1 << 20;

/// The timestamps `first`, `first + step`, ..., ascending.
#[derive(Debug, Clone, Copy)]
struct TimestampRun {
    first: i64,
    step: i64,
    count: u64,
    /// The last timestamp of this run and all runs before it, once they are sorted.
    reach: i64,
}

impl TimestampRun {
    fn last(&self) -> i64 {
        // The last timestamp is an `i64`, so the wrapped result is exact.
        self.first.wrapping_add(self.step.wrapping_mul((self.count - 1).cast_signed()))
    }

    fn holds(&self, timestamp: i64) -> bool {
        if self.count == 1 || timestamp <= self.first {
            return timestamp == self.first;
        }
        timestamp <= self.last() && timestamp.wrapping_sub(self.first).wrapping_rem(self.step) == 0
    }
}

#[derive(Debug, Default)]
pub(super) struct SeenPoints {
    series: HashMap<i64, Vec<TimestampRun>>,
}

/// Encodes the points of one page, with ascending timestamps without duplicates. Series with the
/// same timestamps form a group:
///
/// ```text
/// groups, for each: series:steps timestamps:steps
/// ```
pub(super) fn encode<'t>(series: impl Iterator<Item = (i64, &'t [i64])>) -> Vec<u8> {
    let mut groups: Vec<(&[i64], Vec<i64>)> = Vec::new();
    let mut places: HashMap<&[i64], usize> = HashMap::new();
    for (series, timestamps) in series {
        let next = groups.len();
        let place = places.entry(timestamps).or_insert(next);
        if groups.get(*place).is_none_or(|(_, series)| series.len() == LARGEST_GROUP) {
            *place = next;
            groups.push((timestamps, Vec::new()));
        }
        groups[*place].1.push(series);
    }
    let mut sink = Sink::default();
    sink.length(groups.len());
    for (timestamps, series) in groups {
        sink.length(series.len());
        sink.steps(series.into_iter());
        sink.length(timestamps.len());
        sink.steps(timestamps.iter().copied());
    }
    sink.0
}

impl SeenPoints {
    /// Returns `None` for bytes that [`encode`] did not write.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Option<()> {
        let mut source = Source(bytes);
        for _ in 0..source.length()? {
            let count = source.length()?;
            if count > LARGEST_GROUP {
                return None;
            }
            let mut series = Vec::new();
            source.steps(count, |number| series.push(number))?;
            self.add_runs(&series, &mut source)?;
        }
        source.0.is_empty().then_some(())
    }

    fn add_runs(&mut self, series: &[i64], source: &mut Source<'_>) -> Option<()> {
        let count = source.length()?;
        let (mut last, mut has_repeated, mut runs) = (0_i64, false, Vec::new());
        source.runs(count, |step, length| {
            let first = last.wrapping_add(step);
            let run = TimestampRun { first, step, count: length as u64, reach: 0 };
            has_repeated |= step == 0 && length > 1;
            last = run.last();
            runs.push(run);
        })?;
        for number in series {
            self.series.entry(*number).or_default().extend_from_slice(&runs);
        }
        (!has_repeated).then_some(())
    }

    /// [`SeenPoints::finder`] requires it.
    pub(super) fn sorted(mut self) -> Self {
        for runs in self.series.values_mut() {
            runs.sort_unstable_by_key(|run| run.first);
            let mut reach = i64::MIN;
            for run in runs {
                reach = reach.max(run.last());
                run.reach = reach;
            }
        }
        self
    }

    /// Fastest for ascending timestamps.
    pub(super) fn finder(&self, series: i64) -> Finder<'_> {
        Finder { runs: self.series.get(&series).map_or(&[], Vec::as_slice), at: 0 }
    }
}

#[derive(Debug)]
pub(super) struct Finder<'s> {
    runs: &'s [TimestampRun],
    at: usize,
}

impl Finder<'_> {
    pub(super) fn holds(&mut self, timestamp: i64) -> bool {
        for near in self.at..self.at + 2 {
            if self.runs.get(near).is_some_and(|run| run.holds(timestamp)) {
                self.at = near;
                return true;
            }
        }
        let end = self.runs.partition_point(|run| run.first <= timestamp);
        let found = (0..end)
            .rev()
            .take_while(|index| self.runs[*index].reach >= timestamp)
            .find(|index| self.runs[*index].holds(timestamp));
        self.at = found.unwrap_or(self.at);
        found.is_some()
    }
}
