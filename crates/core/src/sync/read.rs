//! Selects points of a stored feed, and opens the snapshot that they are read from.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::feed::Feed;
use super::range_coverage::{RangeCoverage, Unread};
use super::state::FeedState;
use crate::data::AskedRange;
use crate::data::ranges::{Range, Ranges};
use crate::data::reshape::{Coverage, Expected};
use crate::error::{Error, Kind, Result, escaped};
use crate::store::{
    FeedSnapshot, Flagged, PointFilter, Reader, SeriesFilter, Store, StoreResult, View,
};

/// A selection of the points of a feed. Each [`ReadSpec::open`] reads the store again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadSpec {
    pub feed: String,
    /// `None` for the feed's beginning.
    pub start: Option<Timestamp>,
    /// Exclusive; `None` for all.
    pub end: Option<Timestamp>,
    pub settled_only: bool,
    pub flagged: Flagged,
    pub unread: Unread,
    pub view: View,
    pub series: SeriesFilter,
}

/// A read with a fixed result. It ignores the newer versions that a later sync adds.
#[derive(Debug, Clone)]
pub struct PinnedRead {
    pub state: PinnedState,
    pub feed: Feed,
    pub coverage: RangeCoverage,
}

/// A [`PinnedRead`] for another process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PinnedState {
    pub spec: ReadSpec,
    /// The sequence number of the newest page in the result.
    pub sequence: u64,
    /// The bucket timestamps to read, in microseconds.
    ranges: Ranges,
    kept_from: i64,
}

impl PinnedRead {
    /// Restores a read from its state, in the same store.
    pub fn restore(store: &Store, state: PinnedState) -> Result<Self> {
        let PinnedState { spec, sequence, .. } = &state;
        let (known, coverage) = store.look_up(&spec.feed, |known| {
            let is_now = known.sequence() == *sequence;
            let view = if is_now { spec.view } else { View::as_of(*sequence) };
            ReadSpec { view, ..spec.clone() }.coverage_in(known)
        })?;
        Ok(Self { feed: known.feed().clone(), coverage, state })
    }

    /// Opens a reader of the points, or of the points with other flags. Fails if points were
    /// removed in the meantime.
    pub fn open(&self, store: &Store, flagged: Flagged) -> Result<Reader> {
        let PinnedState { spec, sequence, ranges, kept_from } = &self.state;
        let (found, ()) = store.read_with(&spec.feed, |known| {
            let is_now = known.sequence() == *sequence;
            let view = if is_now { spec.view } else { spec.view.fixed(*sequence) };
            Ok((PointFilter { view, flagged, ..spec.filter(ranges) }, ()))
        })?;
        let first = ranges.iter().next().map_or(i64::MAX, |range| range.start);
        if found.kept_from() > first.max(*kept_from) {
            let feed = &spec.feed;
            let message = format!("points of feed {feed:?} were removed after this table was read");
            let hint = "Read the remaining points with store.read(...).";
            return Err(Error::new(Kind::StoreError, message).with_hint(hint));
        }
        Ok(found)
    }

    /// The part of the read between two bucket timestamps, and a warning if parts of it are
    /// missing.
    pub fn within(
        &self,
        store: &Store,
        start: Option<i64>,
        end: Option<i64>,
    ) -> Result<(Self, Option<String>)> {
        let PinnedState { spec, ranges, .. } = &self.state;
        let instant = |at: Option<i64>| at.and_then(|at| Timestamp::from_microsecond(at).ok());
        let bounds = Range::new(start.unwrap_or(i64::MIN), end.unwrap_or(i64::MAX));
        let part = PinnedState {
            spec: ReadSpec {
                start: spec.start.max(instant(start)),
                end: [spec.end, instant(end)].into_iter().flatten().min(),
                ..spec.clone()
            },
            ranges: ranges.and(&bounds.into()),
            ..self.state
        };
        let part = Self::restore(store, part)?;
        let warning = part.coverage.check(&spec.feed, spec.unread)?;
        // The read itself has warned, or ends with its settled points.
        let is_named = spec.start.is_some() || spec.end.is_some();
        let is_known = spec.settled_only && (self.coverage.complete || is_named);
        Ok((part, warning.filter(|_| !is_known)))
    }

    /// How much of its time was read. Unsettled time counts as unread for settled points.
    #[must_use]
    pub fn read_coverage(&self) -> Coverage {
        let RangeCoverage { read, unread, settled, .. } = &self.coverage;
        let spec = &self.state.spec;
        let is_selection = spec.view.is_log() || spec.flagged == Flagged::Only;
        let given = if spec.settled_only { settled.as_ref() } else { Some(read) };
        let Some(given) = given.filter(|_| !is_selection) else {
            return Coverage::part(
                "these are a part of the points",
                "Use store.read(...) of their range, with withdrawn=\"keep\" or \"drop\".",
            );
        };
        let interval = self.feed.input().interval_seconds;
        let asked = read.with(unread).microseconds();
        Coverage::Known(Expected::new(interval, asked.iter(), given.microseconds().iter()))
    }
}

impl ReadSpec {
    /// Selects all points of a range, including flagged points. Fails for an empty range.
    pub fn new(
        feed: String,
        (start, end): (Option<Timestamp>, Option<Timestamp>),
        view: View,
    ) -> Result<Self> {
        if let (Some(start), Some(end)) = (start, end)
            && start >= end
        {
            let message = format!("start={start} is not before end={end}.");
            let hint = "A range begins before it ends: are start and end swapped?";
            return Err(Error::new(Kind::QueryError, message).with_hint(hint));
        }
        let (flagged, unread) = (Flagged::Keep, Unread::Error);
        let series = SeriesFilter::default();
        Ok(Self { feed, start, end, settled_only: false, flagged, unread, view, series })
    }

    fn coverage_in(&self, feed: &FeedSnapshot<'_>) -> StoreResult<(FeedState, RangeCoverage)> {
        let state = FeedState::from_bytes(&feed.state()?)?;
        let past = self.view.until.map(|sequence| feed.chains_until(sequence)).transpose()?;
        let (range, is_log) = ((self.start, self.end), self.view.is_log());
        let coverage = RangeCoverage::new(range, &state, past.as_ref(), is_log);
        let coverage = if self.settled_only { coverage.settled_only() } else { coverage };
        Ok((state, coverage))
    }

    /// Opens a reader of the current points. Also returns what it reads, and a warning if parts are
    /// missing.
    pub fn open(&self, store: &Store) -> Result<(Reader, PinnedRead, Option<String>)> {
        let (reader, (read, warning)) = store.read_with(&self.feed, |known| {
            // Before the coverage, because the coverage of a past that is not kept is also unknown.
            known.check_history(self.view, self.start.map(Timestamp::as_microsecond))?;
            let (state, coverage) = self.coverage_in(known)?;
            let warning = coverage.check(&self.feed, self.unread)?;
            let sequence = self.view.until.unwrap_or(known.sequence());
            let ranges = self.ranges(&state, &coverage);
            let (filter, feed) = (self.filter(&ranges), state.feed().clone());
            let kept_from = known.kept_from();
            let state = PinnedState { spec: self.clone(), sequence, ranges, kept_from };
            Ok((filter, (PinnedRead { state, feed, coverage }, warning)))
        })?;
        Ok((reader, read, warning))
    }

    /// In microseconds, if both are set.
    #[must_use]
    pub fn bounds(&self) -> Option<(i64, i64)> {
        Some((self.start?.as_microsecond(), self.end?.as_microsecond()))
    }

    fn filter(&self, ranges: &Ranges) -> PointFilter {
        let (view, flagged) = (self.view, self.flagged);
        PointFilter { ranges: ranges.clone(), view, flagged, series: self.series.clone() }
    }

    /// The bucket timestamps to read, in microseconds.
    fn ranges(&self, state: &FeedState, coverage: &RangeCoverage) -> Ranges {
        let start = self.start.map_or(i64::MIN, Timestamp::as_microsecond);
        let end = self.end.map_or(i64::MAX, Timestamp::as_microsecond);
        let asked = Ranges::from(Range::new(start, end));
        if self.settled_only {
            return state.settled().microseconds().and(&asked);
        }
        if self.unread == Unread::Keep || self.view.is_log() {
            return asked;
        }
        // Points may be later than the newest instant that was read. With a wrong clock, a chain
        // reaches into the service's future and covers less than it reads.
        let end = coverage.newest.map_or(end, |newest| end.min(newest.as_microsecond()));
        // The service may return a bucket that begins before its range. So this excludes the unread
        // ranges instead of including the read ones.
        Ranges::from(Range::new(start, end)).without(&coverage.unread.microseconds())
    }
}

/// Replaces relative bounds by instants. Relative times count back from the newest instant of the
/// feed that was read, as of the view, because a store does not know the service's clock.
pub fn fixed_range(
    store: &Store,
    feed: &str,
    asked: AskedRange,
    view: View,
) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    asked.fixed(|| {
        let whole = ReadSpec::new(feed.to_owned(), (None, None), view)?;
        let (state, coverage) = store.look_up(feed, |known| whole.coverage_in(known))?;
        coverage.check(feed, Unread::Error)?;
        let nothing = || Error::new(Kind::UnreadRange, format!("feed {feed:?}: {coverage}"));
        let newest = coverage.newest.ok_or_else(nothing)?;
        Ok((newest, state.feed().input().interval_seconds))
    })
}

impl fmt::Display for ReadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped(&self.feed))?;
        if let Some(since) = self.view.since {
            write!(f, " since page {since}")?;
        }
        if let Some(until) = self.view.until {
            write!(f, " as of page {until}")?;
        }
        if let Some(start) = self.start {
            write!(f, ", from {start}")?;
        }
        if let Some(end) = self.end {
            write!(f, ", to {end}")?;
        }
        write!(f, "{}", self.series)?;
        if self.settled_only {
            f.write_str(", final")?;
        }
        f.write_str(match self.flagged {
            Flagged::Keep => "",
            Flagged::Drop => ", without withdrawn",
            Flagged::Only => ", withdrawn only",
        })?;
        f.write_str(match self.unread {
            Unread::Error | Unread::Warn => "",
            Unread::Keep => ", unread parts too",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::feed::FeedInput;
    use super::*;
    use crate::data::ranges::instant;

    const DAY: i64 = 86_400;

    fn spec(start: Option<i64>, end: Option<i64>) -> ReadSpec {
        let range = (start.map(instant), end.map(instant));
        ReadSpec::new("feed".to_owned(), range, View::LATEST).expect("a spec")
    }

    /// A feed with days 1 and 2 settled, and day 4 read.
    fn state() -> FeedState {
        let feed = Feed::new(FeedInput::new("feed", instant(DAY))).expect("a feed");
        let mut state = FeedState::new(&feed, "http://127.0.0.1:1");
        state.coverage.cover(Range::new(DAY, 3 * DAY), 9 * DAY);
        state.coverage.cover(Range::new(4 * DAY, 5 * DAY), 5 * DAY);
        state
    }

    /// The ranges requested from the store, in days. The minimum and maximum times are unchanged.
    fn asked(spec: &ReadSpec) -> Vec<(i64, i64)> {
        let state = state();
        let coverage = RangeCoverage::new((spec.start, spec.end), &state, None, spec.view.is_log());
        let in_days =
            |at: i64| if [i64::MIN, i64::MAX].contains(&at) { at } else { at / DAY / 1_000_000 };
        let ranges = spec.ranges(&state, &coverage);
        ranges.iter().map(|range| (in_days(range.start), in_days(range.end))).collect()
    }

    #[test]
    fn unread_and_empty_ranges_are_not_requested() {
        let within = |start, end| spec(Some(start * DAY), Some(end * DAY));
        // A feed may return a bucket that begins before its range, so nothing is cut off there.
        assert_eq!(asked(&spec(None, None)), vec![(i64::MIN, 3), (4, 5)]);
        assert_eq!(asked(&within(2, 9)), vec![(2, 3), (4, 5)]);
        assert_eq!(asked(&within(3, 5)), vec![(4, 5)], "begins in an unread range");
        assert_eq!(asked(&within(1, 4)), vec![(1, 3)], "ends in an unread range");
        let settled = |spec| asked(&ReadSpec { settled_only: true, ..spec });
        assert_eq!(settled(spec(None, None)), vec![(1, 3)]);
        assert_eq!(settled(within(2, 9)), vec![(2, 3)]);
        assert_eq!(settled(within(3, 9)), vec![], "begins at the end of the settled range");
    }

    #[test]
    fn all_arrived_points_within_bounds_are_requested() {
        for (unread, view) in
            [(Unread::Keep, View::LATEST), (Unread::Error, View::changed_since(0))]
        {
            let asked = |start: Option<i64>, end: Option<i64>| {
                let spec = spec(start.map(|day| day * DAY), end.map(|day| day * DAY));
                asked(&ReadSpec { unread, view, ..spec })
            };
            assert_eq!(asked(None, None), vec![(i64::MIN, i64::MAX)], "everything");
            assert_eq!(asked(Some(2), None), vec![(2, i64::MAX)]);
            assert_eq!(asked(None, Some(9)), vec![(i64::MIN, 9)]);
            assert_eq!(asked(Some(2), Some(9)), vec![(2, 9)]);
        }
    }
}
