//! Audits: ranges that are read once more only to learn when their points came. Each is read at an age
//! of its own, from the settle lag to far beyond the lateness, so that what is learnt depends on the
//! data and not on the feed's times.

use serde::{Deserialize, Serialize};

use super::coverage::Coverage;
use super::feed::Feed;
use super::ranges::{Range, Ranges, floor};
use crate::client::density::Density;

const DAY: i64 = 86_400;
/// The youngest age, and how far the ages reach: this long, and this many times the lateness.
const YOUNGEST: i64 = 60;
const OLDEST: i64 = 14 * DAY;
const LATENESSES: i64 = 4;
/// An audit says something where the last read of its range is this part of its age ago.
const FRESH: i64 = 6;
/// Multiples of this, modulo 1, are spread evenly, however many there are.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// The audits of a feed so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuditLog {
    /// The day of the newest audit, in days since the Unix epoch by the service's time.
    day: i64,
    /// Its pages.
    pages: u64,
    /// All audits that were read to their end.
    number: u64,
}

impl AuditLog {
    /// Counts a page.
    pub(super) fn count(&mut self, now: i64, is_last: bool) {
        let day = now.div_euclid(DAY);
        if day > self.day {
            (self.day, self.pages) = (day, 0);
        }
        self.pages += 1;
        self.number += u64::from(is_last);
    }

    /// The pages that are left of the day.
    fn left(&self, feed: &Feed, now: i64) -> u64 {
        let spent = if now.div_euclid(DAY) > self.day { 0 } else { self.pages };
        u64::from(feed.input().audit_pages).saturating_sub(spent)
    }

    /// The ranges to audit now, each with its expected pages, as many as the day has pages left for.
    /// `out` is what this run has read.
    pub(super) fn ranges(
        &self,
        feed: &Feed,
        (coverage, density): (&Coverage, &Density),
        out: &Ranges,
        now: i64,
    ) -> Vec<(Range, u64)> {
        let mut left = self.left(feed, now);
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

/// The instant that an audit looks at.
fn target(feed: &Feed, number: u64, now: i64) -> Option<i64> {
    let horizon = feed.horizon(now);
    let youngest = now.saturating_sub(horizon).max(YOUNGEST);
    let lateness = i64::try_from(feed.input().lateness.as_secs()).unwrap_or(i64::MAX);
    let oldest =
        lateness.saturating_mul(LATENESSES).max(OLDEST).min(now.saturating_sub(feed.since()));
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

/// The range around an instant that one page is expected to hold, or the shortest.
fn slice(feed: &Feed, density: &Density, at: i64, now: i64) -> Option<(Range, u64)> {
    let pages = |step: &i64| density.pages(*step);
    let step = feed.steps().find(|step| pages(step) == Some(1)).or_else(|| feed.steps().last())?;
    let start = floor(at, step);
    let range = Range::new(start, start.saturating_add(step));
    let range = range.and(feed.range_to(feed.horizon(now)));
    (!range.is_empty()).then_some((range, pages(&step)?))
}

/// False for what was never read, or was read a short time ago.
fn is_worth(coverage: &Coverage, out: &Ranges, range: Range, at: i64, now: i64) -> bool {
    let is_last_read = |read_at: i64| (now - read_at).saturating_mul(FRESH) >= now - at;
    let instant = Range::new(at, at + 1);
    let read = coverage.iter().find(|read| !read.range.and(instant).is_empty());
    read.is_some_and(|read| is_last_read(read.read_at))
        && coverage.covered().contains(range)
        && !out.contains(instant)
}
