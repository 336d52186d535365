//! Estimates the pages of a range from completed chains. A feed stores one [`Density`], a client
//! one for each query without its range.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::data::{Query, QueryInput};
use crate::lock::Mutex;

/// The weight of a chain in the moving average is its length in seconds divided by this, between
/// 0.1 and 0.5.
const MEMORY: f64 = 86_400.0;
const MOST_QUERIES: usize = 1_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Density {
    /// Points per second.
    rate: Option<f64>,
    /// Points on a full page, from chains with several pages.
    full: Option<f64>,
    /// Most points on the page of a one-page chain.
    only: u64,
    /// Length in seconds of the longest completed chain.
    longest: i64,
    /// Half of the shortest range, in seconds, that the service rejected.
    allowed: Option<i64>,
}

impl Density {
    /// Updates the estimate from a completed chain with `on_last` points on its last page.
    #[expect(clippy::cast_precision_loss, reason = "estimates")]
    pub(crate) fn learn(&mut self, seconds: i64, pages: u64, points: u64, on_last: u64) {
        if seconds <= 0 {
            return;
        }
        let measured = points as f64 / seconds as f64;
        let weight = (seconds as f64 / MEMORY).clamp(0.1, 0.5);
        self.rate = Some(self.rate.map_or(measured, |rate| rate + (measured - rate) * weight));
        if pages > 1 {
            let full = points.saturating_sub(on_last) as f64 / (pages - 1) as f64;
            self.full = Some(full.max(1.0));
        } else {
            self.only = self.only.max(points);
        }
        self.longest = self.longest.max(seconds);
    }

    /// The same estimate for another page size.
    #[must_use]
    pub(crate) fn with_other_pages(self) -> Self {
        Self { full: None, only: 0, ..self }
    }

    /// `None` before the first chain. As long as no full page was seen, also `None` for more points
    /// than any page had.
    #[expect(clippy::cast_precision_loss, reason = "estimates")]
    pub(crate) fn pages(&self, seconds: i64) -> Option<u64> {
        let points = self.rate? * seconds as f64;
        match self.full {
            Some(full) => Some(rounded_up(points / full)),
            None => (points <= self.only as f64).then_some(1),
        }
    }

    /// The longest range to request, in seconds: twice the longest completed chain.
    pub(crate) fn allowed(&self) -> i64 {
        self.longest.saturating_mul(2).min(self.allowed.unwrap_or(i64::MAX))
    }

    /// The service rejected a range. Its limit is not documented, so half of the range is used
    /// next.
    pub(crate) fn refuse(&mut self, seconds: i64) {
        self.allowed = Some(self.allowed.unwrap_or(i64::MAX).min(seconds / 2));
    }
}

/// One density for each query without its range.
#[derive(Debug, Default)]
pub(crate) struct QueryDensities(Mutex<HashMap<QueryInput, Density>>);

impl QueryDensities {
    pub(crate) fn learn(&self, query: &Query, pages: u64, points: u64, on_last: u64) {
        let Some(seconds) = seconds(query) else { return };
        let unbounded = unbounded(query);
        let mut known = self.0.lock();
        if known.len() >= MOST_QUERIES && !known.contains_key(&unbounded) {
            // Evicts any entry.
            if let Some(any) = known.keys().next().cloned() {
                known.remove(&any);
            }
        }
        known.entry(unbounded).or_default().learn(seconds, pages, points, on_last);
    }

    pub(crate) fn pages(&self, query: &Query) -> Option<u64> {
        self.0.lock().get(&unbounded(query))?.pages(seconds(query)?)
    }

    /// The pages of this size, if no full page was seen and no page had more points.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn pages_of_size(&self, query: &Query, size: u32) -> Option<u64> {
        let density = *self.0.lock().get(&unbounded(query))?;
        let points = density.rate? * seconds(query)? as f64;
        let is_in_points = density.full.is_none() && density.only <= u64::from(size);
        is_in_points.then(|| rounded_up(points / f64::from(size)))
    }
}

/// A number of pages, at least one. A cast of a float saturates.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
fn rounded_up(pages: f64) -> u64 {
    (pages.ceil() as u64).max(1)
}

fn unbounded(query: &Query) -> QueryInput {
    QueryInput { start: None, end: None, ..query.input().clone() }
}

fn seconds(query: &Query) -> Option<i64> {
    Some(query.end()?.as_second() - query.start()?.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn the_number_of_pages_is_estimated_from_full_pages() {
        let mut density = Density::default();
        assert_eq!(density.pages(DAY), None);
        density.learn(DAY, 3, 2_500, 500);
        assert_eq!(density.pages(DAY), Some(3));
        assert_eq!(density.pages(2 * DAY), Some(5));
        assert_eq!(density.pages(1), Some(1));
        assert_eq!(density.allowed(), 2 * DAY);
    }

    #[test]
    fn a_one_page_chain_bounds_the_size_of_a_page() {
        let mut density = Density::default();
        density.learn(3_600, 1, 0, 0);
        assert_eq!(density.pages(DAY), Some(1));
        density.learn(DAY, 1, 400, 400);
        density.learn(0, 1, 9_999, 9_999);
        assert_eq!(density.pages(DAY), Some(1), "an empty range is ignored");
        assert_eq!(density.pages(7 * DAY), None, "more than any page had");
    }

    fn query(site: &str, hours: i64) -> Query {
        let at = |hour: i64| jiff::Timestamp::from_second(hour * 3_600).ok();
        let input = crate::data::QueryInput {
            site: vec![site.to_owned()],
            start: at(0),
            end: at(hours),
            ..Default::default()
        };
        Query::new(input).unwrap()
    }

    #[test]
    fn a_client_stores_one_density_for_all_ranges_of_a_query() {
        let densities = QueryDensities::default();
        densities.learn(&query("A", 24), 3, 2_500, 500);
        assert_eq!(densities.pages(&query("A", 48)), Some(5));
        assert_eq!(densities.pages(&query("A", 1)), Some(1));
        assert_eq!(densities.pages(&query("B", 48)), None);
        assert_eq!(densities.pages_of_size(&query("A", 48), 10_000), None, "a full page is known");
        densities.learn(&query("B", 24), 1, 900, 900);
        assert_eq!(densities.pages(&query("B", 48)), None);
        assert_eq!(densities.pages_of_size(&query("B", 48), 1_000), Some(2));
        assert_eq!(densities.pages_of_size(&query("B", 48), 899), None, "items are no points");
        assert_eq!(densities.pages(&query("A", 48).over(None, None).unwrap()), None, "no range");
    }

    #[test]
    fn the_number_of_stored_densities_is_bounded() {
        let densities = QueryDensities::default();
        for site in 0..MOST_QUERIES + 10 {
            densities.learn(&query(&site.to_string(), 24), 1, 1, 1);
        }
        assert_eq!(densities.0.lock().len(), MOST_QUERIES);
        assert_eq!(densities.pages(&query(&(MOST_QUERIES + 9).to_string(), 24)), Some(1));
    }
}
