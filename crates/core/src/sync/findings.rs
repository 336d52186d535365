//! The findings of audits, stored in the state of a feed. They show the lateness of points even if
//! the target has no log of its pages.

use serde::{Deserialize, Serialize};

use super::coverage::Coverage;
use super::unfinished::LARGEST;
use crate::data::ranges::Range;
use crate::store::{Age, Delays, Sighting, Sightings};

const MOST: usize = 200;

/// The newest findings of a feed, oldest first. A finding is an array, because a state is written
/// with each page: the ages of the middle of the range at the previous read and at the audit, in
/// seconds, all points that the audit read, and the new and changed points among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct AuditFindings(Vec<[u64; 5]>);

impl AuditFindings {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Rejects numbers that only a forged state has.
    pub(super) fn is_plausible(&self) -> bool {
        let is_plausible = |[_, _, points, inserted, revised]: &[u64; 5]| {
            *points <= LARGEST && inserted.saturating_add(*revised) <= *points
        };
        self.0.len() <= MOST && self.0.iter().all(is_plausible)
    }

    /// Adds an audit with this range and beginning: the points that it read, and how many were new
    /// or revised. `known` is the coverage before the audit. If the range has several reads, the
    /// oldest counts.
    pub(super) fn add(
        &mut self,
        (range, began): (Range, i64),
        known: &Coverage,
        points: u64,
        (inserted, revised): (u64, u64),
    ) {
        let reads = known.iter().filter(|read| !read.range.and(range).is_empty());
        let Some(read_at) = reads.map(|read| read.read_at).min() else { return };
        let middle = range.start + range.seconds() / 2;
        let age = |at: i64| u64::try_from(at.saturating_sub(middle)).unwrap_or_default();
        let inserted = inserted.min(points);
        let revised = revised.min(points - inserted);
        self.0.drain(..(self.0.len() + 1).saturating_sub(MOST));
        self.0.push([age(read_at), age(began), points, inserted, revised]);
    }

    pub(super) fn delays(&self) -> Delays {
        let mut delays = Delays::default();
        for &[before, looked, points, inserted, revised] in &self.0 {
            let [before, looked] =
                [before, looked].map(|age| Age::of_seconds(i64::try_from(age).unwrap_or(i64::MAX)));
            let known = Sighting { after: None, by: before, looked };
            let new = Sighting { after: Some(before), by: looked, looked };
            add(&mut delays.points, known, points - inserted);
            add(&mut delays.points, new, inserted);
            add(&mut delays.revisions, new, revised);
        }
        delays
    }
}

fn add(sightings: &mut Sightings, seen: Sighting, count: u64) {
    if count > 0 {
        *sightings.entry(seen).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn known(read_at: &[i64]) -> Coverage {
        let mut coverage = Coverage::default();
        for (day, read_at) in (0..).zip(read_at) {
            coverage.cover(Range::new(day * DAY, (day + 1) * DAY), *read_at);
        }
        coverage
    }

    #[test]
    fn new_points_arrived_between_two_reads() {
        let mut findings = AuditFindings::default();
        let range = Range::new(0, 7_200);
        findings.add((range, 3_600 + 10 * DAY), &known(&[3_600 + 2 * DAY]), 10, (3, 2));
        let [before, looked] = [2 * DAY, 10 * DAY].map(Age::of_seconds);
        let new = Sighting { after: Some(before), by: looked, looked };
        let delays = findings.delays();
        let points = [(Sighting { after: None, by: before, looked }, 7), (new, 3)];
        assert_eq!(delays.points, points.into());
        assert_eq!(delays.revisions, [(new, 2)].into());
    }

    #[test]
    fn the_oldest_read_of_a_range_counts() {
        let mut findings = AuditFindings::default();
        findings.add((Range::new(-DAY, 0), DAY), &known(&[2 * DAY]), 10, (3, 0));
        assert!(findings.is_empty());
        let across = Range::new(DAY - 3_600, DAY + 3_600);
        findings.add((across, 9 * DAY), &known(&[5 * DAY, 3 * DAY]), 10, (0, 0));
        let (before, looked) = (Age::of_seconds(2 * DAY), Age::of_seconds(8 * DAY));
        let seen = Sighting { after: None, by: before, looked };
        assert_eq!(findings.delays().points, [(seen, 10)].into());
    }

    #[test]
    fn implausible_counts_are_limited() {
        let mut findings = AuditFindings::default();
        for number in 0..=MOST as u64 {
            let counts = (number, u64::MAX);
            findings.add((Range::new(0, 60), DAY), &known(&[3_600]), 100, counts);
            assert!(findings.is_plausible());
        }
        let inserted: Vec<u64> = findings.0.iter().map(|found| found[3]).collect();
        assert_eq!((inserted.len(), inserted[0], inserted[MOST - 1]), (MOST, 1, 100));
        let text = serde_json::to_string(&findings).expect("JSON");
        assert_eq!(serde_json::from_str::<AuditFindings>(&text).expect("findings"), findings);
        assert!(text.starts_with("[[3570,86370,100,1,99],"));
        let forged = AuditFindings(vec![[0, 0, u64::MAX, 1, 0]]);
        assert!(!forged.is_plausible());
    }
}
