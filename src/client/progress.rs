//! [`Progress`]: how far a read has come, as far as that is truly known.
//!
//! Nobody says beforehand how many pages there are (§4.3), nor in which order the points come. So
//! pages, points and requests are counted, and a fraction of the range is given only while the pages
//! themselves show that they come in order of time.

use jiff::Timestamp;

use crate::data::{Page, Query};

/// How far a read has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Pages that this read has read.
    pub pages: u64,
    /// Points on them, repeats included.
    pub points: u64,
    /// Requests that were made for them, retries included, and for the next one, where it is asked for
    /// already.
    pub requests: u64,
    /// What is left of the client's daily allowance, where one is known.
    pub allowance_left: Option<u64>,
    /// The newest bucket timestamp on them.
    pub newest: Option<Timestamp>,
    /// How much of the range lies behind: where all pages so far came in order of time and there is
    /// more than one series to see it by; 1 after the last page.
    pub fraction: Option<f64>,
    /// Whether the last page has been read.
    pub done: bool,
}

/// Counts the pages of one read.
#[derive(Debug)]
pub(super) struct Meter {
    range: Option<(i64, i64)>,
    pages: u64,
    points: u64,
    newest: Option<i64>,
    order: Order,
}

/// What the pages so far show about the order of points.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    /// Nothing yet: the newest page with points, where there is one.
    Unseen(Option<Span>),
    /// Page after page goes on in time, for all series together.
    Time(Span),
    Other,
}

/// The times on one page.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    first: i64,
    last: i64,
    /// One series alone in order of time may be the first of many.
    of_several: bool,
}

impl Meter {
    /// Nothing read yet.
    pub(super) fn new(query: &Query) -> Self {
        let range = match (query.start(), query.end()) {
            (Some(start), Some(end)) => Some((start.as_microsecond(), end.as_microsecond())),
            _ => None,
        };
        Self { range, pages: 0, points: 0, newest: None, order: Order::Unseen(None) }
    }

    /// Counts one more page.
    pub(super) fn count(
        &mut self,
        page: &Page,
        requests: u64,
        allowance_left: Option<u64>,
    ) -> Progress {
        self.pages += 1;
        self.points += page.rows() as u64;
        if let Some(span) = Span::of(page) {
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
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a fraction for the eye")]
    fn fraction(&self) -> Option<f64> {
        let (Order::Time(span), Some((start, end))) = (self.order, self.range) else { return None };
        let behind = span.last.saturating_sub(start) as f64;
        Some((behind / end.saturating_sub(start) as f64).clamp(0.0, 1.0))
    }
}

impl Span {
    fn of(page: &Page) -> Option<Self> {
        let times = page.points.timestamps.values();
        let of_several = page.report.series > 1;
        Some(Self { first: *times.iter().min()?, last: *times.iter().max()?, of_several })
    }

    /// Whether a page with `self` follows one with `before` in order of time. A page that covers
    /// more than half of the range shows no order: it may hold the end of one series and the
    /// beginning of the next.
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
            Self::Unseen(None) => return Self::Unseen(Some(span)),
            Self::Unseen(Some(before)) | Self::Time(before) => before,
        };
        if !span.follows(before, range) {
            Self::Other
        } else if matches!(self, Self::Time(_)) || (before.of_several && span.of_several) {
            Self::Time(span)
        } else {
            Self::Unseen(Some(span))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Option<(i64, i64)> = Some((0, 100));

    /// The order after pages of `(first, last, series)`.
    fn seen(pages: &[(i64, i64, u64)]) -> Order {
        pages.iter().fold(Order::Unseen(None), |order, &(first, last, series)| {
            order.after(Span { first, last, of_several: series > 1 }, RANGE)
        })
    }

    #[test]
    fn pages_in_order_of_time_show_it_at_the_second() {
        assert!(matches!(seen(&[(0, 20, 3)]), Order::Unseen(Some(_))));
        assert!(matches!(seen(&[(0, 20, 3), (20, 40, 3), (40, 60, 2)]), Order::Time(_)));
        // Cut within a block of several buckets, as services do that count envelopes.
        assert!(matches!(seen(&[(0, 20, 3), (10, 20, 3)]), Order::Time(_)));
    }

    #[test]
    fn one_series_after_the_other_is_no_order_of_time() {
        let first_alone = [(0, 30, 1), (30, 60, 1), (60, 90, 1)];
        assert!(matches!(seen(&first_alone), Order::Unseen(Some(_))));
        assert_eq!(seen(&[&first_alone[..], &[(0, 99, 2)]].concat()), Order::Other);
        assert_eq!(seen(&[(0, 99, 2), (0, 99, 3)]), Order::Other, "several whole series a page");
        assert_eq!(seen(&[(0, 20, 3), (20, 40, 3), (0, 20, 3), (20, 40, 3)]), Order::Other);
    }
}
