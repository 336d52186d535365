//! How much of a range that a user asks for has been read, and what a read does with the rest.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::given_up::GivenUp;
use super::ranges::{Range, Ranges, instant};
use super::state::FeedState;
use crate::error::{Error, Kind, Result};
use crate::store::{Choice, PageChains};

/// Most ranges that a text lists.
const SHOWN: usize = 3;

/// What a read does where a part of its range was never read to the end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unread {
    /// `UnreadRange` where a named range has such a part before the newest instant that was read.
    #[default]
    Error,
    /// Such parts are left out, with a warning.
    Warn,
    /// Gives the points of them that have arrived.
    Keep,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Choice for Unread {
    const OPTION: &'static str = "unread";
    const CHOICES: &'static str = "\"error\", \"warn\" and \"keep\"";
}

/// What has been read of a feed, as of some page request.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// The feed's beginning, after what was forgotten.
    since: i64,
    /// What was forgotten.
    forgotten: Ranges,
    /// The ranges that chains read to their end.
    covered: Ranges,
    /// The ranges of chains that have begun and not ended.
    begun: Ranges,
    /// The settled ranges; `None` as of an older page request.
    settled: Option<Ranges>,
    /// The ranges whose chain was given up.
    given_up: GivenUp,
}

impl Known {
    /// As of now.
    pub(super) fn of(state: &FeedState) -> Self {
        Self {
            since: state.since(),
            forgotten: state.forgotten().into(),
            covered: state.coverage().covered(),
            begun: state.begun(),
            settled: Some(state.settled()),
            given_up: state.given_up.clone(),
        }
    }

    /// As of an older page request, by the chains that were read until then.
    pub(super) fn as_of(state: &FeedState, chains: &PageChains) -> Self {
        let ranges = |times: &[(i64, i64)]| -> Ranges {
            times.iter().map(|(start, end)| Range::of_microseconds(*start, *end)).collect()
        };
        // A chain covers its range only up to the settle lag at its beginning, which the state knows.
        let covered = ranges(&chains.ended).and(&state.coverage().covered());
        let begun = ranges(&chains.begun);
        let (since, forgotten) = (state.since(), state.forgotten().into());
        Self { since, forgotten, covered, begun, ..Self::default() }
    }

    fn newest(&self) -> Option<i64> {
        self.covered.iter().next_back().map(|range| range.end)
    }

    fn first(&self) -> i64 {
        self.covered.iter().next().map_or(self.since, |range| range.start.min(self.since))
    }
}

/// What has been read of a range, or of a whole feed where no range was named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RangeCoverage {
    /// The newest instant that was read: the end of the newest range. `None` for an unread feed.
    pub newest: Option<Timestamp>,
    /// The parts that were read to the end of a chain.
    pub read: Ranges,
    /// The parts that were not: those before `newest`, a named range's rest after it, and, where no
    /// range was named, the ranges of chains that have not ended.
    pub unread: Ranges,
    /// The unread parts that were read once, and whose points were removed by `forget`.
    pub forgotten: Ranges,
    /// The settled parts; `None` for a view of the past.
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
    /// A read also gives the points of chains that have not ended.
    #[serde(skip)]
    counts_begun: bool,
    /// When the unread parts that were set aside are tried again.
    #[serde(skip)]
    set_aside: Option<Timestamp>,
    /// The start of what can be read: the feed's beginning.
    #[serde(skip)]
    first: Timestamp,
}

/// What of a range is unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnreadPart {
    Nothing,
    /// Only time after the newest instant.
    After,
    Parts,
    Everything,
}

impl RangeCoverage {
    /// Compares a range with what is known. `counts_begun`: a read gives the points of chains that have
    /// not ended.
    pub(super) fn new(
        (start, end): (Option<Timestamp>, Option<Timestamp>),
        known: &Known,
        counts_begun: bool,
    ) -> Self {
        let (first, newest) = (known.first(), known.newest());
        let is_named = start.is_some() || end.is_some();
        let from = start.map_or(first, Timestamp::as_second);
        let to = end.map_or(newest.unwrap_or(from), rounded_up);
        let asked = Ranges::from(Range::new(from, to));
        let begun = if is_named { Ranges::none() } else { known.begun.clone() };
        let read = known.covered.and(&asked);
        let unread = asked.with(&begun).without(&known.covered);
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
            settled: known.settled.as_ref().map(|settled| settled.and(&asked)),
            complete: missing == UnreadPart::Nothing,
            unsettled: Ranges::none(),
            set_aside: known.given_up.until(&unread),
            forgotten: unread.and(&known.forgotten),
            read,
            unread,
            missing,
            is_named,
            counts_begun,
            first: instant(first),
        }
    }

    /// The coverage for a read of settled points. Without an end it ends with them.
    pub(super) fn settled_only(mut self, has_end: bool) -> Self {
        if let Some(settled) = self.settled.as_ref().filter(|_| self.is_named) {
            self.unsettled = self.read.with(&self.unread).without(settled);
            if !has_end {
                let end = settled.iter().next_back().map_or(i64::MIN, |last| last.end);
                self.unsettled = self.unsettled.and(&Range::new(i64::MIN, end).into());
            }
            self.complete &= self.unsettled.is_empty();
        }
        self
    }

    /// What a read of the feed warns of; `None` where nothing is missing from its points.
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
            _ if self.counts_begun => "of these parts only the points that have arrived are given",
            UnreadPart::After => "its points end there",
            _ => "these parts are left out",
        };
        Ok(Some(format!("feed {feed:?}: {self}; {points}. store.coverage({feed:?}) shows more.")))
    }

    fn starts_at_or_after(&self, at: Timestamp) -> bool {
        self.unread.iter().all(|range| range.start >= at.as_second())
    }

    fn error(&self, feed: &str) -> Error {
        let first = self.first;
        let mut hint = Vec::new();
        if !self.forgotten.is_empty() {
            hint.push(format!(
                "What lies before {first} was removed by store.forget(), and no sync reads it again: a feed \
                 of another name can."
            ));
        }
        if self.unread != self.forgotten {
            hint.push(match self.set_aside {
                None => "client.sync() reads what is due.".to_owned(),
                Some(until) => format!(
                    "The chain of an unread part was not read to its end: a sync tries it again after \
                     {until}, or at once with reread=(start, end)."
                ),
            });
        }
        hint.push(format!(
            "store.coverage({feed:?}) shows what has been read. unread=\"warn\" leaves unread parts out, \
             unread=\"keep\" also gives the points of them that have arrived."
        ));
        if self.forgotten.is_empty() && !self.starts_at_or_after(first) {
            hint.push(format!(
                "The feed begins at {first}: a feed of another name may have an earlier start=."
            ));
        }
        let hint = hint.join(" ");
        let error = Error::new(Kind::UnreadRange, format!("feed {feed:?}: {self}")).with_hint(hint);
        error.with(|context| context.spans = self.unread.iter().map(Range::instants).collect())
    }
}

/// A clause: what of the range has been read.
impl fmt::Display for RangeCoverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.missing, self.newest) {
            (UnreadPart::Nothing | UnreadPart::After, _) if !self.unsettled.is_empty() => {
                write!(f, "not settled: {}", listed(&self.unsettled))
            }
            (UnreadPart::Nothing, _) => f.write_str("wholly read"),
            (_, None) => f.write_str("no range of it has been read to the end yet"),
            (UnreadPart::Everything, Some(newest)) if self.starts_at_or_after(newest) => write!(
                f,
                "nothing of this range has been read: the newest instant that was read is {newest}"
            ),
            (UnreadPart::After, Some(newest)) => {
                write!(f, "read up to {newest}, the newest instant that was read")
            }
            (UnreadPart::Parts | UnreadPart::Everything, Some(_)) => {
                let unread = self.unread.without(&self.forgotten);
                let parts = [("unread", &unread), ("forgotten", &self.forgotten)];
                let shown = parts.into_iter().filter(|(_, ranges)| !ranges.is_empty());
                let shown: Vec<String> =
                    shown.map(|(what, ranges)| format!("{what}: {}", listed(ranges))).collect();
                f.write_str(&shown.join("; "))
            }
        }
    }
}

/// The first ranges, and how many more there are.
fn listed(ranges: &Ranges) -> String {
    let span = |range: Range| {
        let (start, end) = range.instants();
        format!("{start} to {end}")
    };
    let first: Vec<String> = ranges.iter().take(SHOWN).map(span).collect();
    match ranges.iter().count().saturating_sub(SHOWN) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn rounded_up(at: Timestamp) -> i64 {
    at.as_second().saturating_add(i64::from(at.subsec_nanosecond() > 0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECONDS: i64 = 60;

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
        fn s16_a_read_fails_or_warns_where_and_only_where_something_is_unread(
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
            let settled = Some(covered.clone());
            let (covered_, begun_) = (covered.clone(), begun.clone());
            let given_up = GivenUp::default();
            let forgotten = Ranges::none();
            let known =
                Known { since, forgotten, covered: covered_, begun: begun_, settled, given_up };
            let found = RangeCoverage::new((start.map(instant), end.map(instant)), &known, counts_begun);

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
    fn long_lists_are_cut_and_the_hint_names_the_feeds_beginning_where_that_helps() {
        let covered: Ranges = (0..6).map(|day| Range::new(day * 20 + 10, day * 20 + 20)).collect();
        let known = Known { since: 10, covered, ..Known::default() };
        let error = |start, end| {
            let found =
                RangeCoverage::new((Some(instant(start)), Some(instant(end))), &known, false);
            found.check("feed", Unread::Error).expect_err("gaps").to_string()
        };
        assert!(error(10, 120).contains("1970-01-01T00:01:00Z to 1970-01-01T00:01:10Z and 2 more"));
        assert!(!error(10, 120).contains("another name"));
        assert!(error(0, 20).contains("begins at 1970-01-01T00:00:10Z: a feed of another name"));
        assert!(error(500, 600).contains("newest instant that was read is 1970-01-01T00:02:00Z"));
    }

    fn known(covered: &[(i64, i64)]) -> Known {
        let covered = covered.iter().map(|(start, end)| Range::new(*start, *end)).collect();
        Known { covered, ..Known::default() }
    }

    #[test]
    fn s16_a_warning_says_what_is_given_of_the_unread_parts() {
        let all = "only the points that have arrived are given";
        let (ends, left_out) = ("its points end there", "these parts are left out");
        for (covered, end, counts_begun, said) in [
            (vec![(0, 10)], 20, false, ends),
            (vec![(0, 10)], 20, true, all),
            (vec![(0, 10), (15, 20)], 20, false, left_out),
            (vec![(0, 10), (15, 20)], 20, true, all),
            (vec![(30, 40)], 20, false, left_out),
        ] {
            let range = (Some(instant(0)), Some(instant(end)));
            let found = RangeCoverage::new(range, &known(&covered), counts_begun);
            let text = found.check("feed", Unread::Warn).expect("a warning").expect("unread parts");
            for one in [all, ends, left_out] {
                assert_eq!(text.contains(one), one == said, "{covered:?} {counts_begun}: {text}");
            }
        }
    }

    #[test]
    fn s16_an_unread_range_before_the_newest_instant_is_named_itself() {
        let text = |start, end| {
            let range = (Some(instant(start)), Some(instant(end)));
            RangeCoverage::new(range, &known(&[(100, 200)]), false).to_string()
        };
        assert_eq!(text(0, 60), "unread: 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z");
        let newest = "the newest instant that was read is 1970-01-01T00:03:20Z";
        assert_eq!(text(200, 260), format!("nothing of this range has been read: {newest}"));
        assert_eq!(
            text(199, 260),
            "read up to 1970-01-01T00:03:20Z, the newest instant that was read"
        );
    }

    #[test]
    fn s16_a_range_that_ends_within_a_second_needs_that_second() {
        let complete = |milliseconds: i64| {
            let end = Timestamp::from_millisecond(milliseconds).expect("a timestamp");
            RangeCoverage::new((Some(instant(0)), Some(end)), &known(&[(0, 10)]), false).complete
        };
        assert_eq!([9_999, 10_000, 10_001].map(complete), [true, true, false]);
    }

    #[test]
    fn s17_a_view_of_the_past_knows_the_beginning_of_the_feed_and_what_had_begun() {
        let input = super::super::feed::FeedInput::new("feed", instant(5));
        let feed = super::super::feed::Feed::new(input).expect("a feed");
        let mut state = FeedState::new(&feed, "http://127.0.0.1:1");
        state.coverage.cover(Range::new(10, 40), 1_000);
        let times = |start: i64, end: i64| (start * 1_000_000, end * 1_000_000);
        // The chain went further than it covers, and what came later is not known of the past.
        let chains = PageChains { ended: vec![times(30, 50)], begun: vec![times(60, 70)] };
        let found = RangeCoverage::new((None, None), &Known::as_of(&state, &chains), false);
        assert_eq!(found.read, Range::new(30, 40).into());
        let unread = [Range::new(5, 30), Range::new(60, 70)];
        assert_eq!(found.unread, unread.into_iter().collect());
        assert_eq!((found.newest, found.settled), (Some(instant(40)), None));
    }

    #[test]
    fn what_a_read_does_with_unread_parts_is_one_of_three_words() {
        let words = [Unread::Error, Unread::Warn, Unread::Keep].map(|unread| unread.to_string());
        assert_eq!(words, ["error", "warn", "keep"]);
    }
}
