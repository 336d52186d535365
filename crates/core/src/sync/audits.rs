//! Audits read ranges once more to measure when their points arrived. The audited ranges have
//! different ages, from the settle lag to far beyond the lateness. The result therefore does not
//! depend on the feed's durations.

use serde::{Deserialize, Serialize};

use super::coverage::Coverage;
use super::feed::Feed;
use super::findings::AuditFindings;
use crate::client::density::Density;
use crate::data::ranges::{Range, Ranges, floor};

const DAY: i64 = 86_400;
/// The ages range from `YOUNGEST` to the larger of `OLDEST` and this many latenesses.
const YOUNGEST: i64 = 60;
const OLDEST: i64 = 14 * DAY;
const LATENESSES: i64 = 4;
/// An audit is useful if the last read of its range is at least this fraction of its age ago.
const FRESH: i64 = 6;
/// The multiples of this number, modulo 1, are evenly distributed for every count.
const GOLDEN: f64 = 0.618_033_988_749_895;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuditLog {
    /// The day of the newest audit, in days since the Unix epoch by the service's time.
    day: i64,
    pages: u64,
    number: u64,
    #[serde(default, skip_serializing_if = "AuditFindings::is_empty")]
    pub(super) findings: AuditFindings,
}

impl AuditLog {
    pub(super) fn count(&mut self, now: i64, is_last: bool) {
        let day = now.div_euclid(DAY);
        if day > self.day {
            (self.day, self.pages) = (day, 0);
        }
        self.pages += 1;
        self.number += u64::from(is_last);
    }

    fn pages_left(&self, feed: &Feed, now: i64) -> u64 {
        let spent = if now.div_euclid(DAY) > self.day { 0 } else { self.pages };
        u64::from(feed.input().audit_pages).saturating_sub(spent)
    }

    /// The ranges to audit now, with their expected pages, within the remaining pages of the day.
    /// `out` contains the ranges that this run has read.
    pub(super) fn ranges(
        &self,
        feed: &Feed,
        (coverage, density): (&Coverage, &Density),
        out: &Ranges,
        now: i64,
    ) -> Vec<(Range, u64)> {
        let mut left = self.pages_left(feed, now);
        let mut found: Vec<(Range, u64)> = Vec::new();
        for number in (self.number..).take(if left == 0 { 0 } else { 32 }) {
            let Some(at) = target(feed, number, now) else { break };
            let Some((range, pages)) = slice(feed, density, at, now) else { break };
            let known = found.iter().any(|(known, _)| *known == range);
            if pages > left {
                break;
            }
            if !known && is_worth(coverage, out, range, at, now) {
                left -= pages;
                found.push((range, pages));
            }
        }
        found
    }
}

fn target(feed: &Feed, number: u64, now: i64) -> Option<i64> {
    let horizon = feed.horizon(now);
    let youngest = now.saturating_sub(horizon).max(YOUNGEST);
    let oldest = feed.lateness().saturating_mul(LATENESSES).max(OLDEST);
    let oldest = oldest.min(now.saturating_sub(feed.since()));
    if youngest >= oldest {
        return None;
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "an age is a rough number"
    )]
    let age = {
        let place = (GOLDEN * (number as f64 + 1.0)).fract();
        (youngest as f64 * (oldest as f64 / youngest as f64).powf(place)) as i64
    };
    Some(now.saturating_sub(age))
}

/// The range around an instant that fits on one page, or the shortest range.
fn slice(feed: &Feed, density: &Density, at: i64, now: i64) -> Option<(Range, u64)> {
    let pages = |step: &i64| density.pages(*step);
    let step = feed.steps().find(|step| pages(step) == Some(1)).or_else(|| feed.steps().last())?;
    let start = floor(at, step);
    let range = Range::new(start, start.saturating_add(step));
    let range = range.and(feed.range_to(feed.horizon(now)));
    (!range.is_empty()).then_some((range, pages(&step)?))
}

/// Whether the range was read, and not recently.
fn is_worth(coverage: &Coverage, out: &Ranges, range: Range, at: i64, now: i64) -> bool {
    let is_last_read = |read_at: i64| (now - read_at).saturating_mul(FRESH) >= now - at;
    let instant = Range::new(at, at + 1);
    let read = coverage.iter().find(|read| !read.range.and(instant).is_empty());
    read.is_some_and(|read| is_last_read(read.read_at))
        && coverage.covered().contains(range)
        && !out.contains(instant)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::super::feed::FeedInput;
    use super::*;

    const SINCE: i64 = 20_000 * DAY;
    /// 100 days after the beginning of the feed.
    const NOW: i64 = SINCE + 100 * DAY;
    const HALF: i64 = DAY / 2;

    /// A feed with buckets of a minute and a settle lag of five.
    fn feed(audit_pages: u32) -> Feed {
        let since = Timestamp::from_second(SINCE).expect("a timestamp");
        let interval_seconds = Some(60);
        Feed::new(FeedInput { interval_seconds, audit_pages, ..FeedInput::new("feed", since) })
            .expect("a feed")
    }

    fn two_pages_a_day() -> Density {
        let mut density = Density::default();
        density.learn(DAY, 2, 1_350, 675);
        density
    }

    fn all_read(read_at: i64) -> Coverage {
        let mut coverage = Coverage::default();
        coverage.cover(Range::new(SINCE, NOW), read_at);
        coverage
    }

    #[test]
    fn audit_pages_are_counted_per_day() {
        let (feed, mut log) = (feed(5), AuditLog::default());
        log.count(NOW, false);
        log.count(NOW + DAY - 1, true);
        assert_eq!((log.pages_left(&feed, NOW), log.number), (3, 1), "one audit of two pages");
        assert_eq!(log.pages_left(&feed, NOW + DAY), 5, "a new day");
        log.count(NOW + DAY, true);
        assert_eq!((log.pages_left(&feed, NOW + DAY), log.number), (4, 2));
        // The clock is set back by a day. The pages still belong to the newest day.
        log.count(NOW, false);
        assert_eq!([NOW, NOW + DAY].map(|now| log.pages_left(&feed, now)), [3, 3]);
        for _ in 0..9 {
            log.count(NOW + DAY, false);
        }
        assert_eq!(log.pages_left(&feed, NOW + DAY), 0);
        assert_eq!(
            log.ranges(&feed, (&all_read(SINCE), &two_pages_a_day()), &Ranges::none(), NOW),
            []
        );
    }

    #[test]
    fn audit_ages_are_evenly_distributed() {
        let feed = feed(5);
        let age = |number, now: i64| target(&feed, number, now).map(|at| now - at);
        // From the settle lag of 300 s to 14 days, evenly on a logarithmic scale.
        let ages: Vec<_> = (0..4).map(|number| age(number, NOW)).collect();
        assert_eq!(ages, [50_752, 2_129, 360_249, 15_115].map(Some));
        for tenth in 0..10 {
            let bounds =
                [tenth, tenth + 1].map(|tenth| 300.0 * 4_032_f64.powf(f64::from(tenth) / 10.0));
            let is_in = |age: &i64| {
                let age = Duration::from_secs(age.unsigned_abs()).as_secs_f64();
                bounds[0] <= age && age < bounds[1]
            };
            let count = (0..100).filter_map(|number| age(number, NOW)).filter(is_in).count();
            assert!((8..=12).contains(&count), "{tenth}: {count}");
        }
        // A feed that is one hour old is not audited before its beginning.
        assert!((0..50).all(|number| age(number, SINCE + 3_600).is_some_and(|age| age <= 3_600)));
        assert_eq!(age(0, SINCE + 300), None);
    }

    #[test]
    fn an_audit_reads_one_page() {
        let (feed, density) = (feed(5), two_pages_a_day());
        let slice = |density: &Density, at| slice(&feed, density, at, NOW);
        let whole = Range::new(NOW - DAY, NOW - HALF);
        assert_eq!(slice(&density, NOW - HALF - 1), Some((whole, 1)));
        assert_eq!(slice(&density, NOW - DAY), Some((whole, 1)));
        // Within the horizon and the feed's beginning.
        assert_eq!(slice(&density, NOW - HALF), Some((Range::new(NOW - HALF, NOW - 300), 1)));
        assert_eq!(slice(&density, SINCE - 1), None);
        assert_eq!(slice(&Density::default(), NOW - DAY), None, "the pages are not known");
        // Each bucket has two pages, so this is the shortest range.
        let mut dense = Density::default();
        dense.learn(60, 2, 1_800, 900);
        assert_eq!(slice(&dense, NOW - DAY), Some((Range::new(NOW - DAY, NOW - DAY + 60), 2)));
    }

    #[test]
    fn old_reads_are_worth_an_audit() {
        let (now, age) = (NOW, 6_000);
        let (at, range) = (now - age, Range::new(now - 7_000, now - 5_000));
        let covered = |range: Range, read_at| {
            let mut coverage = Coverage::default();
            coverage.cover(range, read_at);
            coverage
        };
        let (none, neighbour) = (Ranges::none(), Ranges::from(Range::new(at + 1, at + 100)));
        let is_worth = |coverage: &Coverage, out: &Ranges| is_worth(coverage, out, range, at, now);
        // The last read is a sixth of the age ago, or more recent.
        assert!(is_worth(&covered(range, now - 1_000), &none));
        assert!(!is_worth(&covered(range, now - 999), &none));
        assert!(!is_worth(&Coverage::default(), &none), "never read");
        assert!(
            !is_worth(&covered(Range::new(at, range.end), now - 2_000), &none),
            "not all of it"
        );
        assert!(!is_worth(&covered(Range::new(range.start, at), now - 2_000), &none), "not there");
        assert!(is_worth(&covered(range, now - 2_000), &neighbour));
        assert!(
            !is_worth(&covered(range, now - 2_000), &Range::new(at, at + 1).into()),
            "just read"
        );
    }

    #[test]
    fn audits_use_the_pages_of_the_day() {
        let (density, none) = (two_pages_a_day(), Ranges::none());
        let found = |audit_pages, coverage: &Coverage, density: &Density| {
            AuditLog::default().ranges(&feed(audit_pages), (coverage, density), &none, NOW)
        };
        // The first five ages in different half days: 14 h, 35 min, 4 d, 30 h, 9 d.
        let half_days_ago = |number: i64| {
            let start = NOW - number * HALF;
            (Range::new(start, (start + HALF).min(NOW - 300)), 1)
        };
        let five = [2, 1, 9, 3, 18].map(half_days_ago);
        for pages in 0..=5 {
            let wanted = &five[..usize::try_from(pages).expect("few")];
            assert_eq!(found(pages, &all_read(SINCE), &density), wanted, "{pages} pages");
        }
        assert_eq!(found(5, &all_read(NOW), &density), [], "everything was read a moment ago");
        assert_eq!(found(5, &Coverage::default(), &density), [], "nothing was ever read");
        // Two pages each, so the third page of the day remains.
        let mut dense = Density::default();
        dense.learn(60, 2, 1_800, 900);
        assert_eq!(found(3, &all_read(SINCE), &dense).len(), 1);
        assert_eq!(found(1, &all_read(SINCE), &dense), []);
    }
}
