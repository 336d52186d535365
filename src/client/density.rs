//! How many pages a range takes, as far as finished chains have shown it: a feed keeps its own, and a
//! client remembers one for each question ([`Seen`]).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::data::Query;

/// The newest day of what was read counts as much as all before it.
const MEMORY: f64 = 86_400.0;
/// So many questions a client remembers: a program that asks another one each time learns nothing.
const MOST_QUESTIONS: usize = 1_000;

/// Points and pages of one question over any range, learnt from its chains.
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
    pub fn learn(&mut self, seconds: i64, pages: u64, points: u64, on_last: u64) {
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
    pub fn with_other_pages(self) -> Self {
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
    #[must_use]
    pub fn pages(&self, seconds: i64) -> Option<u64> {
        let points = self.rate? * seconds as f64;
        match self.full {
            Some(full) => Some(((points / full).ceil() as u64).max(1)),
            None => (points <= self.only as f64).then_some(1),
        }
    }

    /// Seconds that a chain may have, twice those of the longest one that was read; 0 before the
    /// first.
    #[must_use]
    pub fn allowed(&self) -> i64 {
        self.longest.saturating_mul(2).min(self.allowed.unwrap_or(i64::MAX))
    }

    /// The service refused to begin a chain of so many seconds. How long one may be is not shown
    /// (§8): half of it, until that is refused too.
    pub fn refuse(&mut self, seconds: i64) {
        self.allowed = Some(self.allowed.unwrap_or(i64::MAX).min(seconds / 2));
    }
}

/// What one client has seen: a density for each question without its range.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<HashMap<Query, Density>>);

impl Seen {
    /// Learns from a chain over all of the query's range, as [`Density::learn`].
    pub(super) fn learn(&self, query: &Query, pages: u64, points: u64, on_last: u64) {
        let (Some(seconds), Ok(question)) = (seconds(query), query.over(None, None)) else {
            return;
        };
        let mut known = self.known();
        if known.len() >= MOST_QUESTIONS && !known.contains_key(&question) {
            // Which one makes no difference.
            if let Some(any) = known.keys().next().cloned() {
                known.remove(&any);
            }
        }
        known.entry(question).or_default().learn(seconds, pages, points, on_last);
    }

    /// Pages that the query is expected to take, where its kind has been seen.
    pub(super) fn pages(&self, query: &Query) -> Option<u64> {
        let question = query.over(None, None).ok()?;
        self.known().get(&question)?.pages(seconds(query)?)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Query, Density>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seconds(query: &Query) -> Option<i64> {
    Some(query.end()?.as_second() - query.start()?.as_second())
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

    fn asked(site: &str, hours: i64) -> Query {
        let at = |hour: i64| jiff::Timestamp::from_second(hour * 3_600).ok();
        let input = crate::data::QueryInput {
            site: Some(site.to_owned()),
            start: at(0),
            end: at(hours),
            ..Default::default()
        };
        Query::new(input).unwrap()
    }

    #[test]
    fn a_client_remembers_each_question_whatever_its_range() {
        let seen = Seen::default();
        seen.learn(&asked("A", 24), 3, 2_500, 500);
        assert_eq!(seen.pages(&asked("A", 48)), Some(5));
        assert_eq!(seen.pages(&asked("A", 1)), Some(1));
        assert_eq!(seen.pages(&asked("B", 48)), None);
        assert_eq!(seen.pages(&asked("A", 48).over(None, None).unwrap()), None, "no range");
    }

    #[test]
    fn what_a_client_remembers_is_bounded() {
        let seen = Seen::default();
        for site in 0..MOST_QUESTIONS + 10 {
            seen.learn(&asked(&site.to_string(), 24), 1, 1, 1);
        }
        assert_eq!(seen.known().len(), MOST_QUESTIONS);
        assert_eq!(seen.pages(&asked(&(MOST_QUESTIONS + 9).to_string(), 24)), Some(1));
    }
}
