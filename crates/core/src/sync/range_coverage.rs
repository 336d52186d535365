//! Computes which parts of a requested range have been read, and how a read treats the other parts.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

use super::state::FeedState;
use crate::data::Choice;
use crate::data::ranges::{Range, Ranges, instant};
use crate::error::{Error, Kind, Result};
use crate::store::PageChains;

/// The number of ranges that a text lists.
const LISTED: usize = 3;

/// How a read treats unread parts of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unread {
    /// Fails if a named range has an unread part before the newest read instant.
    #[default]
    Error,
    /// Omits unread parts, with a warning.
    Warn,
    /// Returns the points of unread parts that have arrived.
    Keep,
}

impl Choice for Unread {
    const OPTION: &'static str = "unread";
    const CHOICES: &'static str = "\"error\", \"warn\" and \"keep\"";
}

/// Which parts of a range have been read, or of a whole feed if no range was named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct RangeCoverage {
    /// The end of the newest range that was read. `None` for an unread feed.
    pub newest: Option<Timestamp>,
    #[serde(serialize_with = "instants")]
    pub read: Ranges,
    /// The other parts: before `newest`, the rest of a named range after it, and, without a named
    /// range, the ranges of unfinished chains.
    #[serde(serialize_with = "instants")]
    pub unread: Ranges,
    /// The unread parts with points that `forget` removed.
    #[serde(serialize_with = "instants")]
    pub forgotten: Ranges,
    /// `None` for a view of the past.
    #[serde(serialize_with = "known_instants")]
    pub settled: Option<Ranges>,
    /// Whether nothing is unread, nor unsettled in a read of settled points.
    pub complete: bool,
    /// The parts of a named range that a read of settled points leaves out.
    #[serde(skip)]
    unsettled: Ranges,
    #[serde(skip)]
    missing: UnreadPart,
    #[serde(skip)]
    is_named: bool,
    /// Whether the read returns settled points only.
    #[serde(skip)]
    is_final: bool,
    /// Whether the read also returns the points of unfinished chains.
    #[serde(skip)]
    counts_begun: bool,
    /// The time of the next attempt to read the unread parts that are set aside.
    #[serde(skip)]
    set_aside: Option<Timestamp>,
    #[serde(skip)]
    first: Timestamp,
    /// Whether the range has no part after `first`.
    #[serde(skip)]
    is_before_first: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnreadPart {
    Nothing,
    /// Only time after the newest instant.
    After,
    Parts,
    Everything,
}

impl RangeCoverage {
    /// `past` has the chains that had been read by an earlier page request.
    pub(super) fn new(
        (start, end): (Option<Timestamp>, Option<Timestamp>),
        state: &FeedState,
        past: Option<&PageChains>,
        counts_begun: bool,
    ) -> Self {
        let ranges = |times: &[Range]| times.iter().copied().map(whole_seconds).collect::<Ranges>();
        let (mut covered, mut begun) = (state.coverage().covered(), state.begun());
        if let Some(past) = past {
            // Only the state contains the settle lag at the beginning of each chain.
            covered = ranges(&past.ended).and(&covered);
            begun = ranges(&past.begun);
        }
        let since = state.since();
        let first = covered.iter().next().map_or(since, |range| range.start.min(since));
        let newest = covered.iter().next_back().map(|range| range.end);
        let is_named = start.is_some() || end.is_some();
        let from = start.map_or(first, Timestamp::as_second);
        let to = end.map_or(newest.unwrap_or(from), rounded_up);
        let asked = Ranges::from(Range::new(from, to));
        let begun = if is_named { Ranges::none() } else { begun };
        let read = covered.and(&asked);
        let unread = asked.with(&begun).without(&covered);
        let missing = if read.is_empty() && (begun.is_empty() || !counts_begun) {
            UnreadPart::Everything
        } else if unread.is_empty() {
            UnreadPart::Nothing
        } else if unread.iter().all(|range| Some(range.start) >= newest) {
            UnreadPart::After
        } else {
            UnreadPart::Parts
        };
        Self {
            newest: newest.map(instant),
            settled: past.is_none().then(|| state.settled().and(&asked)),
            complete: missing == UnreadPart::Nothing,
            unsettled: Ranges::none(),
            set_aside: state.given_up.until(&unread).filter(|_| past.is_none()),
            forgotten: unread.and(&state.forgotten().into()),
            read,
            unread,
            missing,
            is_named,
            is_final: false,
            counts_begun,
            first: instant(first),
            is_before_first: end.is_some() && to <= first,
        }
    }

    /// The coverage for a read of settled points. Without a range it ends with them.
    pub(super) fn settled_only(mut self) -> Self {
        self.is_final = true;
        if let Some(settled) = self.settled.as_ref().filter(|_| self.is_named) {
            self.unsettled = self.read.with(&self.unread).without(settled);
            self.complete &= self.unsettled.is_empty();
        }
        self
    }

    /// Returns a warning if points are missing.
    pub(super) fn check(&self, feed: &str, unread: Unread) -> Result<Option<String>> {
        if self.complete || unread == Unread::Keep {
            return Ok(None);
        }
        let fails = match self.missing {
            UnreadPart::Everything => true,
            UnreadPart::Parts => self.is_named,
            UnreadPart::After | UnreadPart::Nothing => false,
        };
        if fails && unread == Unread::Error {
            return Err(self.error(feed));
        }
        let points = match self.missing {
            UnreadPart::Nothing | UnreadPart::After if !self.unsettled.is_empty() => {
                "only settled points are returned"
            }
            _ if self.counts_begun => {
                "only the points of these parts that have arrived are returned"
            }
            UnreadPart::After => "its points end there",
            _ => "these parts are omitted",
        };
        Ok(Some(format!(
            "feed {feed:?}: {self}; {points}. store.coverage({feed:?}) shows details."
        )))
    }

    fn starts_at_or_after(&self, at: Timestamp) -> bool {
        self.unread.iter().all(|range| range.start >= at.as_second())
    }

    fn error(&self, feed: &str) -> Error {
        let first = self.first;
        let mut hint = Vec::new();
        if !self.forgotten.is_empty() {
            hint.push(format!(
                "store.forget() removed the points before {first}, and no sync reads them again. A feed \
                 with another name can."
            ));
        }
        // No sync changes the past, or reads what is before the feed.
        let is_past = self.settled.is_none();
        if self.unread.is_empty() && !self.is_before_first && !is_past {
            hint.push("client.sync() reads newer data.".to_owned());
        } else if self.unread.iter().any(|range| range.end > first.as_second()) && !is_past {
            hint.push(match self.set_aside {
                None => "client.sync() reads the unread parts.".to_owned(),
                Some(until) => format!(
                    "The chain of an unread part did not end. A sync retries it after {until}, or \
                     immediately with reread=(start, end)."
                ),
            });
        }
        hint.push(format!(
            "store.coverage({feed:?}) shows the ranges that have been read. unread=\"warn\" omits unread \
             parts, unread=\"keep\" also returns their points that have arrived."
        ));
        if self.forgotten.is_empty() && (self.is_before_first || !self.starts_at_or_after(first)) {
            hint.push(format!(
                "The feed begins at {first}. A feed with another name can have an earlier start=. \
                 store.redefine(feed) changes this one."
            ));
        }
        let hint = hint.join(" ");
        let error = Error::new(Kind::UnreadRange, format!("feed {feed:?}: {self}")).with_hint(hint);
        error.with(|context| context.spans = self.unread.instants())
    }
}

impl fmt::Display for RangeCoverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.missing, self.newest) {
            (UnreadPart::Nothing | UnreadPart::After, _) if !self.unsettled.is_empty() => {
                write!(f, "not settled: {}", list(&self.unsettled))
            }
            (UnreadPart::Nothing, _) if self.is_final => match &self.settled {
                Some(settled) if !settled.is_empty() => write!(f, "settled: {}", list(settled)),
                _ => f.write_str("nothing is settled yet"),
            },
            (UnreadPart::Nothing, _) => f.write_str("completely read"),
            (_, None) if self.settled.is_none() => {
                f.write_str("no range has been read completely by that time")
            }
            (_, None) => f.write_str("no range has been read completely yet"),
            (UnreadPart::Everything, _) if self.is_before_first && self.unread.is_empty() => {
                write!(f, "this range ends before {}, the beginning of the feed", self.first)
            }
            (UnreadPart::Everything, Some(newest)) if self.starts_at_or_after(newest) => write!(
                f,
                "this range has not been read: the newest instant that was read is {newest}"
            ),
            (UnreadPart::After, Some(newest)) => {
                write!(f, "read up to {newest}, the newest instant that was read")
            }
            (UnreadPart::Parts | UnreadPart::Everything, Some(_)) => {
                let unread = self.unread.without(&self.forgotten);
                let unsettled = self.unsettled.without(&self.unread);
                let parts = [
                    ("unread", &unread),
                    ("forgotten", &self.forgotten),
                    ("not settled", &unsettled),
                ];
                let listed = parts.into_iter().filter(|(_, ranges)| !ranges.is_empty());
                let listed: Vec<String> =
                    listed.map(|(name, ranges)| format!("{name}: {}", list(ranges))).collect();
                f.write_str(&listed.join("; "))
            }
        }
    }
}

fn list(ranges: &Ranges) -> String {
    let span = |range: Range| {
        let (start, end) = range.instants();
        format!("{start} to {end}")
    };
    let first: Vec<String> = ranges.iter().take(LISTED).map(span).collect();
    match ranges.iter().count().saturating_sub(LISTED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn instants<S: Serializer>(ranges: &Ranges, to: S) -> Result<S::Ok, S::Error> {
    ranges.instants().serialize(to)
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
fn known_instants<S: Serializer>(ranges: &Option<Ranges>, to: S) -> Result<S::Ok, S::Error> {
    ranges.as_ref().map(Ranges::instants).serialize(to)
}

/// Widens a range of microseconds to seconds.
fn whole_seconds(range: Range) -> Range {
    Range::new(range.start.div_euclid(1_000_000), -(-range.end).div_euclid(1_000_000))
}

fn rounded_up(at: Timestamp) -> i64 {
    at.as_second().saturating_add(i64::from(at.subsec_nanosecond() > 0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::feed::{Feed, FeedInput};
    use super::super::task::Why;
    use super::super::unfinished::UnfinishedChain;
    use super::*;

    const SECONDS: i64 = 60;

    fn state(since: i64, covered: &Ranges) -> FeedState {
        let feed = Feed::new(FeedInput::new("feed", instant(since))).expect("a feed");
        let mut state = FeedState::new(&feed, "http://127.0.0.1:1");
        for range in covered.iter() {
            state.coverage.cover(range, 1_000);
        }
        state
    }

    fn any_ranges() -> impl Strategy<Value = Ranges> {
        let pairs = proptest::collection::vec((0_i64..50, 1_i64..12), 0..4);
        pairs.prop_map(|pairs| {
            pairs.into_iter().map(|(start, length)| Range::new(start, start + length)).collect()
        })
    }

    fn any_bound() -> impl Strategy<Value = Option<i64>> {
        proptest::option::of(0_i64..SECONDS)
    }

    proptest! {
        #[test]
        fn s16_unread_ranges_fail_or_warn(
            covered in any_ranges(),
            begun in any_ranges(),
            since in 0_i64..50,
            (start, length) in (any_bound(), proptest::option::of(1_i64..SECONDS)),
            counts_begun in any::<bool>(),
        ) {
            let end = length.map(|length| start.unwrap_or(0) + length);
            let is_named = start.is_some() || end.is_some();
            let newest = covered.iter().map(|range| range.end).max();
            let first = covered.iter().map(|range| range.start).min().unwrap_or(since).min(since);
            let asked = start.unwrap_or(first)..end.or(newest).unwrap_or(0);
            let mut state = state(since, &covered);
            let chain = |range| UnfinishedChain::new(range, Why::Backfill, 0);
            state.chains = begun.iter().map(chain).collect();
            let range = (start.map(instant), end.map(instant));
            let found = RangeCoverage::new(range, &state, None, counts_begun);

            let has = |ranges: &Ranges, at| ranges.contains(Range::new(at, at + 1));
            let mut arrived = false;
            let (mut unread, mut before) = (false, false);
            for at in 0..2 * SECONDS {
                let of_chain = !is_named && has(&begun, at);
                let read = asked.contains(&at) && has(&covered, at);
                let missing = (asked.contains(&at) || of_chain) && !has(&covered, at);
                prop_assert_eq!(has(&found.read, at), read);
                prop_assert_eq!(has(&found.unread, at), missing);
                arrived |= read || (of_chain && counts_begun);
                unread |= missing;
                before |= missing && Some(at) < newest;
            }
            prop_assert_eq!(found.complete, arrived && !unread);
            let fails = !arrived || (is_named && before);
            let outcome = found.check("feed", Unread::Error);
            prop_assert_eq!(outcome.is_err(), fails);
            if let Err(error) = outcome {
                prop_assert_eq!(error.kind(), Kind::UnreadRange);
                let spans: Vec<_> = found.unread.iter().map(Range::instants).collect();
                prop_assert_eq!(&error.context().spans, &spans);
            } else {
                prop_assert_eq!(found.check("feed", Unread::Error).unwrap().is_some(), unread);
            }
            prop_assert_eq!(found.check("feed", Unread::Warn).unwrap().is_some(), !found.complete);
            prop_assert_eq!(found.check("feed", Unread::Keep).unwrap(), None);
        }
    }

    #[test]
    fn long_lists_are_shortened() {
        let covered: Ranges = (0..6).map(|day| Range::new(day * 20 + 10, day * 20 + 20)).collect();
        let state = state(10, &covered);
        let error = |start, end| {
            let range = (Some(instant(start)), Some(instant(end)));
            let found = RangeCoverage::new(range, &state, None, false);
            found.check("feed", Unread::Error).expect_err("gaps").to_string()
        };
        assert!(error(10, 120).contains("1970-01-01T00:01:00Z to 1970-01-01T00:01:10Z and 2 more"));
        assert!(!error(10, 120).contains("begins at"));
        assert!(error(0, 20).contains("begins at 1970-01-01T00:00:10Z. A feed with another name"));
        assert!(!error(0, 20).contains("client.sync()") && error(0, 40).contains("client.sync()"));
        let before = RangeCoverage::new((None, Some(instant(5))), &state, None, false);
        let before = before.check("feed", Unread::Error).expect_err("before the feed").to_string();
        assert!(before.contains("this range ends before 1970-01-01T00:00:10Z"), "{before}");
        assert!(error(500, 600).contains("newest instant that was read is 1970-01-01T00:02:00Z"));
    }

    fn found(
        range: (Option<Timestamp>, Option<Timestamp>),
        covered: &[(i64, i64)],
        counts_begun: bool,
    ) -> RangeCoverage {
        let covered = covered.iter().map(|(start, end)| Range::new(*start, *end)).collect();
        RangeCoverage::new(range, &state(0, &covered), None, counts_begun)
    }

    #[test]
    fn s16_a_warning_names_the_returned_points() {
        let all = "only the points of these parts that have arrived are returned";
        let (ends, left_out) = ("its points end there", "these parts are omitted");
        for (covered, end, counts_begun, said) in [
            (vec![(0, 10)], 20, false, ends),
            (vec![(0, 10)], 20, true, all),
            (vec![(0, 10), (15, 20)], 20, false, left_out),
            (vec![(0, 10), (15, 20)], 20, true, all),
            (vec![(30, 40)], 20, false, left_out),
        ] {
            let range = (Some(instant(0)), Some(instant(end)));
            let found = found(range, &covered, counts_begun);
            let text = found.check("feed", Unread::Warn).expect("a warning").expect("unread parts");
            for one in [all, ends, left_out] {
                assert_eq!(text.contains(one), one == said, "{covered:?} {counts_begun}: {text}");
            }
        }
    }

    #[test]
    fn s16_an_early_unread_range_is_named() {
        let text = |start, end| {
            let range = (Some(instant(start)), Some(instant(end)));
            found(range, &[(100, 200)], false).to_string()
        };
        assert_eq!(text(0, 60), "unread: 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z");
        let newest = "the newest instant that was read is 1970-01-01T00:03:20Z";
        assert_eq!(text(200, 260), format!("this range has not been read: {newest}"));
        assert_eq!(
            text(199, 260),
            "read up to 1970-01-01T00:03:20Z, the newest instant that was read"
        );
    }

    #[test]
    fn s16_a_partial_second_must_be_read() {
        let complete = |milliseconds: i64| {
            let end = Timestamp::from_millisecond(milliseconds).expect("a timestamp");
            found((Some(instant(0)), Some(end)), &[(0, 10)], false).complete
        };
        assert_eq!([9_999, 10_000, 10_001].map(complete), [true, true, false]);
    }

    #[test]
    fn s17_a_past_view_knows_earlier_chains() {
        let state = state(5, &Range::new(10, 40).into());
        let times = |start: i64, end: i64| Range::new(start * 1_000_000, end * 1_000_000);
        // The chain reads further than it covers. The past does not include later chains.
        let chains = PageChains { ended: vec![times(30, 50)], begun: vec![times(60, 70)] };
        let found = RangeCoverage::new((None, None), &state, Some(&chains), false);
        assert_eq!(found.read, Range::new(30, 40).into());
        let unread = [Range::new(5, 30), Range::new(60, 70)];
        assert_eq!(found.unread, unread.into_iter().collect());
        assert_eq!((found.newest, found.settled), (Some(instant(40)), None));
    }
}
