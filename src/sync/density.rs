//! How many pages a range takes, as far as finished chains have shown it.

use serde::{Deserialize, Serialize};

/// The newest day of what was read counts as much as all before it.
const MEMORY: f64 = 86_400.0;

/// Points and pages of a feed, learnt from its chains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Density {
    /// Points per second of time.
    rate: Option<f64>,
    /// Points on a full page, as chains of several pages have shown.
    full: Option<f64>,
    /// The most points that were the only page of a chain.
    only: u64,
    /// Seconds of the longest range that one chain has read.
    longest: i64,
    /// Half of the shortest range, in seconds, that the service refused to begin.
    #[serde(default)]
    allowed: Option<i64>,
}

impl Density {
    /// Learns from a chain that was read to its end: so many seconds, pages and points, of which so
    /// many came with its last page.
    #[expect(clippy::cast_precision_loss, reason = "estimates")]
    pub(super) fn learn(&mut self, seconds: i64, pages: u64, points: u64, on_last: u64) {
        if seconds <= 0 {
            return;
        }
        let seen = points as f64 / seconds as f64;
        let weight = (seconds as f64 / MEMORY).clamp(0.1, 0.5);
        self.rate = Some(self.rate.map_or(seen, |rate| rate + (seen - rate) * weight));
        if pages > 1 {
            let full = points.saturating_sub(on_last) as f64 / (pages - 1) as f64;
            self.full = Some(full.max(1.0));
        } else {
            self.only = self.only.max(points);
        }
        self.longest = self.longest.max(seconds);
    }

    /// The same, for pages of another size.
    #[must_use]
    pub(super) fn with_other_pages(self) -> Self {
        Self { full: None, only: 0, ..self }
    }

    /// Pages that so many seconds are expected to take. `None` before the first chain, and for more
    /// points than were ever on one page, while no page was seen that was full.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "estimates, not negative; a cast of a float saturates"
    )]
    pub(super) fn pages(&self, seconds: i64) -> Option<u64> {
        let points = self.rate? * seconds as f64;
        match self.full {
            Some(full) => Some(((points / full).ceil() as u64).max(1)),
            None => (points <= self.only as f64).then_some(1),
        }
    }

    /// Seconds that a chain may have, twice those of the longest one that was read; 0 before the
    /// first.
    pub(super) fn allowed(&self) -> i64 {
        self.longest.saturating_mul(2).min(self.allowed.unwrap_or(i64::MAX))
    }

    /// The service refused to begin a chain of so many seconds. How long one may be is not shown
    /// (§8): half of it, until that is refused too.
    pub(super) fn refuse(&mut self, seconds: i64) {
        self.allowed = Some(self.allowed.unwrap_or(i64::MAX).min(seconds / 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn pages_are_expected_by_the_points_of_full_pages() {
        let mut density = Density::default();
        assert_eq!(density.pages(DAY), None);
        density.learn(DAY, 3, 2_500, 500);
        assert_eq!(density.pages(DAY), Some(3));
        assert_eq!(density.pages(2 * DAY), Some(5));
        assert_eq!(density.pages(1), Some(1));
        assert_eq!(density.allowed(), 2 * DAY);
    }

    #[test]
    fn a_length_that_was_refused_is_not_tried_again() {
        let mut density = Density::default();
        density.learn(4 * DAY, 1, 1, 1);
        density.refuse(8 * DAY);
        density.learn(4 * DAY, 1, 1, 1);
        assert_eq!(density.allowed(), 4 * DAY);
        density.refuse(4 * DAY);
        density.refuse(6 * DAY);
        assert_eq!(density.allowed(), 2 * DAY);
    }

    #[test]
    fn a_chain_of_one_page_shows_how_many_points_a_page_can_hold_at_least() {
        let mut density = Density::default();
        density.learn(3_600, 1, 0, 0);
        assert_eq!(density.pages(DAY), Some(1));
        density.learn(DAY, 1, 400, 400);
        density.learn(0, 1, 9_999, 9_999);
        assert_eq!(density.pages(DAY), Some(1), "nothing is learnt from no time");
        assert_eq!(density.pages(7 * DAY), None, "more than was ever on one page");
    }
}
