//! The progress of a read. The service reports neither the number of pages nor the order of points.
//! So the number is estimated from earlier reads, and the fraction is only known while pages arrive
//! in chronological order.

use jiff::Timestamp;
use serde::Serialize;

use crate::data::{Page, Query};

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Progress {
    pub pages: u64,
    /// Points read, with repeats.
    pub points: u64,
    /// Requests, with retries and the prefetch of the next page.
    pub requests: u64,
    pub allowance_left: Option<u64>,
    /// The newest timestamp read.
    pub newest: Option<Timestamp>,
    /// The fraction of the range that was read, if all pages so far are in chronological order and
    /// have several series; 1 after the last page.
    pub fraction: Option<f64>,
    pub done: bool,
    /// Exact after the last page.
    pub pages_expected: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Meter {
    range: Option<(i64, i64)>,
    /// The estimate before the first page.
    expected: Option<u64>,
    pages: u64,
    points: u64,
    newest: Option<i64>,
    order: Order,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    /// The span of the last page with points.
    Unknown(Option<Span>),
    /// Each page follows the previous one in time, for all series.
    Time(Span),
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    first: i64,
    last: i64,
    /// Pages of one series may be followed by another series over the same range.
    of_several: bool,
}

impl Meter {
    pub(super) fn new(query: &Query, expected: Option<u64>) -> Self {
        let range = match (query.start(), query.end()) {
            (Some(start), Some(end)) => Some((start.as_microsecond(), end.as_microsecond())),
            _ => None,
        };
        let order = Order::Unknown(None);
        Self { range, expected, pages: 0, points: 0, newest: None, order }
    }

    pub(super) fn count(
        &mut self,
        page: &Page,
        requests: u64,
        allowance_left: Option<u64>,
    ) -> Progress {
        self.pages += 1;
        self.points += page.report.points;
        if let Some(span) = Span::from_page(page) {
            self.newest = self.newest.max(Some(span.last));
            self.order = self.order.after(span, self.range);
        }
        Progress {
            pages: self.pages,
            points: self.points,
            requests,
            allowance_left,
            newest: self.newest.and_then(|at| Timestamp::from_microsecond(at).ok()),
            fraction: if page.is_last { Some(1.0) } else { self.fraction() },
            done: page.is_last,
            // If the estimate is reached before the end, it was too low.
            pages_expected: if page.is_last {
                Some(self.pages)
            } else {
                self.expected.filter(|expected| *expected > self.pages)
            },
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a fraction for display")]
    fn fraction(&self) -> Option<f64> {
        let (Order::Time(span), Some((start, end))) = (self.order, self.range) else { return None };
        let behind = span.last.saturating_sub(start) as f64;
        Some((behind / end.saturating_sub(start) as f64).clamp(0.0, 1.0))
    }
}

impl Span {
    fn from_page(page: &Page) -> Option<Self> {
        let times = page.points.timestamps.values();
        let of_several = page.report.series > 1;
        Some(Self { first: *times.iter().min()?, last: *times.iter().max()?, of_several })
    }

    /// Whether a page with this span follows a page with `before` in time. A page that covers more
    /// than half of the range shows no order: it may contain the end of one series and the start of
    /// the next.
    fn follows(self, before: Self, range: Option<(i64, i64)>) -> bool {
        let half = range.map_or(i64::MAX, |(start, end)| end.saturating_sub(start) / 2);
        let narrow = |span: Self| span.last.saturating_sub(span.first) <= half;
        narrow(before)
            && narrow(self)
            && self.first >= before.first
            && self.last >= before.last
            && self.last > before.first
    }
}

impl Order {
    fn after(self, span: Span, range: Option<(i64, i64)>) -> Self {
        let before = match self {
            Self::Other => return Self::Other,
            Self::Unknown(None) => return Self::Unknown(Some(span)),
            Self::Unknown(Some(before)) | Self::Time(before) => before,
        };
        if !span.follows(before, range) {
            Self::Other
        } else if matches!(self, Self::Time(_)) || (before.of_several && span.of_several) {
            Self::Time(span)
        } else {
            Self::Unknown(Some(span))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Option<(i64, i64)> = Some((0, 100));

    fn order(pages: &[(i64, i64, u64)]) -> Order {
        pages.iter().fold(Order::Unknown(None), |order, &(first, last, series)| {
            order.after(Span { first, last, of_several: series > 1 }, RANGE)
        })
    }

    #[test]
    fn the_order_of_time_is_known_after_the_second_page() {
        assert!(matches!(order(&[(0, 20, 3)]), Order::Unknown(Some(_))));
        assert!(matches!(order(&[(0, 20, 3), (20, 40, 3), (40, 60, 2)]), Order::Time(_)));
        // The page ends inside several buckets, as with services that count envelopes.
        assert!(matches!(order(&[(0, 20, 3), (10, 20, 3)]), Order::Time(_)));
    }

    #[test]
    fn one_series_after_the_other_is_not_in_order_of_time() {
        let one_series = [(0, 30, 1), (30, 60, 1), (60, 90, 1)];
        assert!(matches!(order(&one_series), Order::Unknown(Some(_))));
        assert_eq!(order(&[&one_series[..], &[(0, 99, 2)]].concat()), Order::Other);
        assert_eq!(order(&[(0, 99, 2), (0, 99, 3)]), Order::Other, "complete series on each page");
        assert_eq!(order(&[(0, 20, 3), (20, 40, 3), (0, 20, 3), (20, 40, 3)]), Order::Other);
    }
}
