//! A feed: a named query without an end, and the times at which it is read again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::data::ranges::{Range, ceil, floor, instant};
use crate::data::{Query, QueryInput, spelled};
use crate::error::{Error, Kind, Result, excerpt};

const DAY: u64 = 86_400;
/// Ten years.
const LONGEST: Duration = Duration::from_secs(3_660 * DAY);
const LONGEST_NAME: usize = 200;

/// A feed that is not checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FeedInput {
    pub name: String,
    /// `siteId`.
    pub site: Option<String>,
    /// `lineId`.
    pub line: Option<String>,
    /// Further query parameters by their names on the wire.
    pub filters: Vec<(String, Vec<String>)>,
    /// `aggregationIntervalSeconds`: the bucket width.
    pub interval_seconds: Option<u32>,
    /// `pageSize`.
    pub page_size: Option<u32>,
    /// The first bucket timestamp, in whole seconds.
    #[serde(with = "jiff::fmt::serde::timestamp::second::required")]
    pub since: Timestamp,
    /// How far behind the service's time a read ends; 5 minutes.
    #[serde(with = "seconds")]
    pub settle_lag: Duration,
    /// How much of the newest range is read again together with fresh data; 1 hour.
    #[serde(with = "seconds")]
    pub overlap: Duration,
    /// The time after its end when a window is read again for its final values; 1 day.
    #[serde(with = "seconds")]
    pub lateness: Duration,
    /// A divisor or a multiple of a day; 1 day.
    #[serde(with = "seconds")]
    pub window: Duration,
    /// Pages per day for audits, which measure when points arrive; 0.
    #[serde(default)]
    pub audit_pages: u32,
}

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_secs)
    }
}

/// A checked feed. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "FeedInput", into = "FeedInput")]
pub struct Feed(Arc<FeedInput>);

impl TryFrom<FeedInput> for Feed {
    type Error = Error;

    fn try_from(input: FeedInput) -> Result<Self> {
        Self::new(input)
    }
}

impl From<Feed> for FeedInput {
    fn from(feed: Feed) -> Self {
        Arc::unwrap_or_clone(feed.0)
    }
}

/// A member with different values in two definitions of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FeedDifference {
    pub(super) member: &'static str,
    pub(super) known: String,
    pub(super) new: String,
    /// Whether `store.redefine` accepts the new value.
    pub(super) may_change: bool,
}

impl FeedInput {
    #[must_use]
    pub fn new(name: &str, since: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            site: None,
            line: None,
            filters: Vec::new(),
            interval_seconds: None,
            page_size: None,
            since,
            settle_lag: Duration::from_secs(300),
            overlap: Duration::from_secs(3_600),
            lateness: Duration::from_secs(DAY),
            window: Duration::from_secs(DAY),
            audit_pages: 0,
        }
    }

    fn query(&self, start: Option<Timestamp>, end: Option<Timestamp>) -> Result<Query> {
        Query::new(QueryInput {
            site: self.site.clone().into_iter().collect(),
            line: self.line.clone().into_iter().collect(),
            start,
            end,
            interval_seconds: self.interval_seconds,
            page_size: self.page_size,
            filters: self.filters.clone(),
            ..QueryInput::default()
        })
    }
}

impl Feed {
    /// Sorts the filters. Fails for an invalid name, parameter or duration.
    pub fn new(mut input: FeedInput) -> Result<Self> {
        check_name(&input.name)?;
        if input.since.subsec_nanosecond() != 0 {
            let message = format!("start= is {}: it must be a whole second.", input.since);
            return Err(Error::new(Kind::QueryError, message));
        }
        let soon = input.since.checked_add(SignedDuration::from_secs(1));
        let end = soon.unwrap_or(input.since);
        let query = input.query(Some(input.since), Some(end)).map_err(|error| {
            error.with(|context| context.message = format!("feed: {}", context.message))
        })?;
        input.filters.clone_from(&query.input().filters);
        check_times(&input)?;
        Ok(Self(Arc::new(input)))
    }

    /// A warning if the feed begins within a bucket.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let query = self.0.query(Some(self.0.since), None).ok()?;
        Some(format!("feed {:?}: {}", self.name(), query.grid_warning(None)?))
    }

    #[must_use]
    pub fn input(&self) -> &FeedInput {
        &self.0
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn query(&self, start: Timestamp, end: Timestamp) -> Result<Query> {
        self.0.query(Some(start), Some(end))
    }

    /// The parameters of its queries without their range, or `everything` if there are none.
    #[must_use]
    pub fn parameters(&self) -> String {
        let sent = self.0.query(None, None).map(|query| query.to_string()).unwrap_or_default();
        if sent.is_empty() { "everything".to_owned() } else { sent }
    }

    /// Widens the range to complete buckets.
    pub(super) fn query_of(&self, range: Range) -> Result<Query> {
        let start = floor(range.start, self.width()).max(self.since());
        let (start, end) = Range::new(start, ceil(range.end, self.width())).instants();
        self.query(start, end)
    }

    /// A feed may begin earlier, unless its beginning was forgotten.
    pub(super) fn differences(&self, new: &Self, is_complete: bool) -> Vec<FeedDifference> {
        let begins_earlier = is_complete && new.since() < self.since();
        let (known, new) = (members(&self.0), members(&new.0));
        let pairs = known.into_iter().zip(new).filter(|(known, new)| known.1 != new.1);
        pairs
            .map(|((member, known, may_change), (_, new, _))| FeedDifference {
                member,
                known,
                new,
                may_change: may_change || (member == START && begins_earlier),
            })
            .collect()
    }

    /// The bucket width in seconds; 1 if the feed sets none.
    pub(super) fn width(&self) -> i64 {
        i64::from(self.0.interval_seconds.unwrap_or(1))
    }

    pub(super) fn window(&self) -> i64 {
        whole_seconds(self.0.window)
    }

    pub(super) fn overlap(&self) -> i64 {
        whole_seconds(self.0.overlap)
    }

    pub(super) fn lateness(&self) -> i64 {
        whole_seconds(self.0.lateness)
    }

    pub(super) fn since(&self) -> i64 {
        self.0.since.as_second()
    }

    /// The end of a read that begins at `now`: behind it by the settle lag, on the bucket grid.
    pub(super) fn horizon(&self, now: i64) -> i64 {
        floor(now.saturating_sub(whole_seconds(self.0.settle_lag)), self.width())
    }

    /// The latest window boundary before which a chain that began at this time settles everything.
    /// A bucket that crosses the boundary counts by its end.
    pub(super) fn settled_before(&self, began: i64) -> i64 {
        let lateness = self.lateness();
        let boundary = floor(began.saturating_sub(lateness), self.window());
        let is_over = ceil(boundary, self.width()).saturating_add(lateness) <= began;
        if is_over { boundary } else { boundary.saturating_sub(self.window()) }
    }

    /// The steps of the grids that can divide a window, widest first. If the bucket width divides
    /// the window, it also divides each step.
    pub(super) fn steps(&self) -> impl Iterator<Item = i64> + '_ {
        let (window, width) = (self.window(), self.width());
        let fits = move |step: i64| step >= width && (window % width != 0 || step % width == 0);
        (1..=1_440_i64)
            .filter(move |parts| window % parts == 0)
            .map(move |parts| window / parts)
            .filter(move |step| fits(*step))
    }

    /// The same feed with a later beginning, in seconds.
    pub(super) fn beginning_at(&self, second: Option<i64>) -> Self {
        match second.filter(|second| *second > self.since()) {
            None => self.clone(),
            Some(second) => {
                Self(Arc::new(FeedInput { since: instant(second), ..FeedInput::clone(&self.0) }))
            }
        }
    }

    pub(super) fn range_to(&self, end: i64) -> Range {
        Range::new(self.since(), end)
    }
}

pub(super) const START: &str = "start";
const NOT_SENT: &str = "not sent";
const NONE: &str = "none";

/// Each member, its value as text, and whether `store.redefine` accepts a new value.
fn members(input: &FeedInput) -> [(&'static str, String, bool); 12] {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| NOT_SENT.to_owned());
    let filter = |(name, values): &(String, Vec<String>)| format!("{name}={}", values.join(","));
    let filters = match input.filters.as_slice() {
        [] => NOT_SENT.to_owned(),
        filters => filters.iter().map(filter).collect::<Vec<_>>().join(" "),
    };
    let audits = input.audit_pages;
    let audits = if audits == 0 { NONE.to_owned() } else { audits.to_string() };
    let interval = input.interval_seconds.map(|it| spelled(Duration::from_secs(it.into())));
    [
        ("name", input.name.clone(), false),
        ("site", text(&input.site), false),
        ("line", text(&input.line), false),
        ("filters", filters, false),
        ("interval", text(&interval), false),
        ("page_size", text(&input.page_size.map(|size| size.to_string())), true),
        (START, input.since.to_string(), false),
        ("settle_lag", spelled(input.settle_lag), true),
        ("overlap", spelled(input.overlap), true),
        ("lateness", spelled(input.lateness), true),
        ("window", spelled(input.window), true),
        ("audit_pages", audits, true),
    ]
}

pub(super) fn check_distinct(feeds: &[Feed]) -> Result<()> {
    let mut names = HashSet::new();
    for feed in feeds {
        if !names.insert(feed.name()) {
            let message = format!("the feed {:?} is given twice", feed.name());
            return Err(Error::new(Kind::QueryError, message));
        }
    }
    Ok(())
}

pub(super) fn check_name(name: &str) -> Result<()> {
    let refused = |why: &str| Err(Error::new(Kind::QueryError, format!("the feed's name {why}")));
    if name.trim().is_empty() {
        refused("is empty")
    } else if name.trim() != name || name.chars().any(char::is_control) {
        refused("begins or ends with a space, or contains a control character")
    } else if name.chars().count() > LONGEST_NAME {
        refused("is longer than 200 characters")
    } else {
        Ok(())
    }
}

fn check_times(input: &FeedInput) -> Result<()> {
    let refused = |message: String| Err(Error::new(Kind::QueryError, message));
    let FeedInput { settle_lag, overlap, lateness, window, .. } = input;
    for (name, time) in [
        ("settle_lag", settle_lag),
        ("overlap", overlap),
        ("lateness", lateness),
        ("window", window),
    ] {
        if time.subsec_nanos() != 0 {
            return refused(format!("{name} must be a whole number of seconds"));
        }
        if *time > LONGEST {
            return refused(format!("{name} must be at most ten years, not {}", spelled(*time)));
        }
    }
    let seconds = window.as_secs();
    if seconds == 0 || !(DAY.is_multiple_of(seconds) || seconds.is_multiple_of(DAY)) {
        let window = excerpt(&spelled(*window));
        let message = format!("window={window} must divide a day or be a multiple of a day");
        return Err(Error::new(Kind::QueryError, message)
            .with_hint("Use for example \"1h\", \"6h\", \"1d\" or \"7d\"."));
    }
    match input.interval_seconds {
        Some(width) if u64::from(width) > seconds => refused(format!(
            "window {} is shorter than the interval {}",
            spelled(*window),
            spelled(Duration::from_secs(width.into()))
        )),
        _ => Ok(()),
    }
}

/// Cannot overflow: checked times are far below 2^63.
fn whole_seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_kit::at;

    fn input() -> FeedInput {
        FeedInput {
            site: Some("S1".to_owned()),
            interval_seconds: Some(60),
            ..FeedInput::new("line-2", at("2026-01-01T00:00:00Z"))
        }
    }

    #[test]
    fn invalid_parts_of_a_feed_are_refused() {
        const TEN_YEARS: Duration = Duration::from_secs(86_400 * 3_660);
        let seconds = Duration::from_secs;
        let wrong = [
            FeedInput { site: Some(String::new()), ..input() },
            FeedInput { since: at("2026-01-01T00:00:00.5Z"), ..input() },
            FeedInput { interval_seconds: Some(0), ..input() },
            FeedInput { window: seconds(0), ..input() },
            FeedInput { window: seconds(7_000), ..input() },
            FeedInput { window: seconds(86_400 * 3 / 2), ..input() },
            FeedInput { window: seconds(3_600), interval_seconds: Some(7_200), ..input() },
            FeedInput { overlap: Duration::from_millis(1_500), ..input() },
            FeedInput { lateness: TEN_YEARS + seconds(1), ..input() },
        ];
        Feed::new(FeedInput { lateness: TEN_YEARS, ..input() }).expect("a feed");
        for input in wrong {
            let error = Feed::new(input.clone()).expect_err(&format!("{input:?}"));
            assert_eq!(error.kind(), Kind::QueryError, "{error}");
        }
    }

    #[test]
    fn a_window_settles_after_its_lateness() {
        let day = 86_400;
        let feed = Feed::new(input()).expect("a feed");
        assert_eq!(feed.settled_before(10 * day), 9 * day);
        assert_eq!(feed.settled_before(10 * day - 1), 8 * day);
        // A bucket of seven minutes that crosses midnight ends after it.
        let feed = Feed::new(FeedInput { interval_seconds: Some(420), ..input() }).expect("a feed");
        let end = ceil(9 * day, 420);
        assert_eq!(feed.settled_before(end + day - 1), 8 * day);
        assert_eq!(feed.settled_before(end + day), 9 * day);
    }

    #[test]
    fn a_query_covers_complete_buckets() {
        let query = |width, since: &str, start: &str, end: &str| {
            let (interval_seconds, since) = (Some(width), at(since));
            let feed = Feed::new(FeedInput { interval_seconds, since, ..input() }).expect("a feed");
            let query = feed.query_of(Range::between(at(start), at(end))).expect("a query");
            [query.input().start, query.input().end]
                .map(|bound| bound.expect("a bound").to_string())
        };
        let (since, start, end) =
            ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z");
        assert_eq!(query(60, since, start, end), [start, end]);
        assert_eq!(query(420, since, start, end), ["2026-01-01T23:55:00Z", "2026-01-03T00:04:00Z"]);
        // The feed begins here, so nothing earlier is read.
        assert_eq!(query(420, start, start, end)[0], start);
    }
}
