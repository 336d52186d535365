//! Which feeds of a store have a range, and which are to read the rest of it.
//!
//! Any feed with the parameters of the query has the same points. What one of them has settled is as good
//! as a new read. The rest is read by a feed that it continues: a gap in a feed of the user's would be one in
//! all that is asked of it. What none continues is read by a feed that the store gets for such reads, which
//! begins as early as it was ever asked for.

use std::time::Duration;

use jiff::Timestamp;

use super::feed::{Feed, FeedInput};
use super::ranges::{Range, Ranges, ceil, floor, instant};
use super::state::FeedState;
use crate::data::{Query, Selection, spelled};
use crate::error::{Error, Kind, Result};

const DAY: i64 = 86_400;
/// A longer name of a feed ends with a checksum of the whole.
const LONGEST_NAME: usize = 180;

/// What one feed gives of a range.
#[derive(Debug, Clone)]
pub(super) struct FeedShare {
    /// Its state, perhaps a new one, or one that begins earlier than that in the store.
    pub(super) state: FeedState,
    /// Whether the store is to have this state in the place of its own.
    pub(super) is_redefined: bool,
    /// The parts that it has settled.
    pub(super) settled: Ranges,
    /// The parts that it is to read.
    pub(super) missing: Ranges,
}

/// The reads that shares are made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) query: &'a Query,
    pub(super) range: Range,
    /// The base URL of the service.
    pub(super) service: &'a str,
    /// The settle lag of a feed that the store gets.
    pub(super) settle_lag: Duration,
    /// As of [`super::ThroughStore`].
    pub(super) reads_once: bool,
}

impl Asked<'_> {
    /// Whether a feed has the same points. Pages of another size have.
    fn is_same(&self, state: &FeedState) -> bool {
        let (feed, input) = (state.feed().input(), self.query.input());
        state.service() == self.service
            && (feed.site.as_slice(), feed.line.as_slice()) == (&*input.site, &*input.line)
            && (&feed.filters, feed.interval_seconds) == (&input.filters, input.interval_seconds)
    }
}

impl FeedShare {
    pub(super) fn name(&self) -> &str {
        self.state.feed().name()
    }

    /// All parts of the range that come from this feed.
    pub(super) fn ranges(&self) -> Ranges {
        self.settled.with(&self.missing)
    }
}

/// What each feed gives of the range, together all of it.
///
/// # Errors
/// `QueryError` where only a feed whose beginning was forgotten could read a part.
pub(super) fn shares(states: &[(String, FeedState)], asked: &Asked<'_>) -> Result<Vec<FeedShare>> {
    let own = own_name(states, asked);
    let range = Ranges::from(asked.range);
    let same = states.iter().map(|(_, state)| state).filter(|state| asked.is_same(state));
    let mut shares: Vec<FeedShare> = same
        .map(|state| FeedShare {
            settled: if asked.reads_once { state.coverage().covered() } else { state.settled() }
                .and(&range),
            state: state.clone(),
            is_redefined: false,
            missing: Ranges::none(),
        })
        .collect();
    shares.sort_by_key(|share| (share.name() == own, -share.settled.seconds()));
    let mut rest = range;
    for share in &mut shares {
        share.settled = share.settled.and(&rest);
        rest = rest.without(&share.settled);
    }
    for share in &mut shares {
        let since = share.state.since();
        let reached = share.state.coverage.end().map_or(since, |end| end.max(since));
        let kept = rest.and(&Range::new(since, i64::MAX).into());
        let is_own = share.name() == own;
        share.missing = kept.iter().filter(|part| is_own || part.start <= reached).collect();
        rest = rest.without(&share.missing);
    }
    let place = shares.iter().position(|share| share.name() == own);
    let before = place.map(|place| shares.remove(place));
    if !rest.is_empty() || before.is_some() {
        shares.push(own_share(before, rest, &own, asked)?);
    }
    shares.retain(|share| !share.ranges().is_empty());
    Ok(shares)
}

/// The share of the feed for such reads, which begins early enough to read the rest as well, and asks for
/// pages of the size that was given.
fn own_share(
    known: Option<FeedShare>,
    rest: Ranges,
    own: &str,
    asked: &Asked<'_>,
) -> Result<FeedShare> {
    let input = asked.query.input();
    let width = i64::from(input.interval_seconds.unwrap_or(1));
    let since = rest.iter().next().map(|first| instant(floor(first.start, width)));
    let Some(share) = known else {
        let feed = Feed::new(FeedInput {
            site: input.site.first().cloned(),
            line: input.line.first().cloned(),
            filters: input.filters.clone(),
            interval_seconds: input.interval_seconds,
            page_size: input.page_size,
            settle_lag: Duration::from_secs(asked.settle_lag.as_secs()),
            window: Duration::from_secs(if asked.reads_once {
                widest_window(asked.range)
            } else {
                ceil(width, DAY).unsigned_abs()
            }),
            ..FeedInput::new(own, since.unwrap_or(instant(asked.range.start)))
        })?;
        let state = FeedState::new(&feed, asked.service);
        return Ok(FeedShare {
            state,
            is_redefined: false,
            settled: Ranges::none(),
            missing: rest,
        });
    };
    if !rest.is_empty() && !share.state.forgotten().is_empty() {
        let message = format!(
            "feed {own:?} keeps nothing before {}, because of store.forget()",
            instant(share.state.since())
        );
        return Err(Error::new(Kind::QueryError, message)
            .with_hint("Begin there, or leave store= out: the range is read and not kept."));
    }
    let missing = share.missing.with(&rest);
    let known = share.state.feed().input();
    let since = since.unwrap_or(known.since);
    // Chains of pages of another size could not go on.
    let goes_on = missing.is_empty() || share.state.has_unfinished();
    let page_size = if goes_on { None } else { input.page_size }.or(known.page_size);
    let feed = Feed::new(FeedInput { page_size, since, ..known.clone() })?;
    if feed == *share.state.feed() {
        return Ok(FeedShare { missing, ..share });
    }
    let state = share.state.redefine(&feed)?;
    Ok(FeedShare { state, is_redefined: true, missing, ..share })
}

/// The widest window that contains the whole range, which is then one chain.
fn widest_window(range: Range) -> u64 {
    let is_one = |width: &i64| floor(range.start, *width) == floor(range.end - 1, *width);
    let mut days = (1..=3_650).rev().map(|days| days * DAY);
    days.find(is_one).unwrap_or(3_650 * DAY).unsigned_abs()
}

/// The name of the feed for reads with these parameters, which no feed for other points has.
fn own_name(states: &[(String, FeedState)], asked: &Asked<'_>) -> String {
    let name = plain_name(asked.query);
    let is_taken = states.iter().any(|(known, state)| *known == name && !asked.is_same(state));
    let is_plain = name.chars().count() <= LONGEST_NAME
        && name.trim() == name
        && !name.chars().any(char::is_control);
    if is_plain && !is_taken {
        return name;
    }
    let shown = name.chars().take(LONGEST_NAME).map(|c| if c.is_control() { '?' } else { c });
    let mut input = asked.query.input().clone();
    (input.start, input.end, input.page_size) = (None, None, None);
    input.selection = Selection::default();
    // Text and numbers always serialise.
    let exact = serde_json::to_string(&(asked.service, input)).unwrap_or_default();
    format!("{} #{:08x}", shown.collect::<String>(), libdeflater::crc32(exact.as_bytes()))
}

fn plain_name(query: &Query) -> String {
    let input = query.input();
    let ids = [("site", &input.site), ("line", &input.line)];
    let ids = ids.into_iter().filter_map(|(name, id)| Some(format!("{name}={}", id.first()?)));
    let filters = input.filters.iter().map(|(name, values)| format!("{name}={}", values.join(",")));
    let interval = input
        .interval_seconds
        .map(|width| format!("interval={}", spelled(Duration::from_secs(width.into()))));
    let mut parts: Vec<String> = ids.chain(filters).chain(interval).collect();
    if parts.is_empty() {
        parts.push("everything".to_owned());
    }
    format!("data {}", parts.join(" "))
}

/// The range of a query, in whole seconds.
///
/// # Errors
/// `QueryError` for a query without a start: what the service would decide is not known.
pub(super) fn range_of(query: &Query) -> Result<Range> {
    let bounds: Option<(Timestamp, Timestamp)> = query.start().zip(query.end());
    let (start, end) = bounds.ok_or_else(|| {
        let message =
            "start=None leaves the start to the service: what a store has of that is not known";
        Error::new(Kind::QueryError, message).with_hint("Give start=, or leave store= out.")
    })?;
    Ok(Range::between(start, end))
}
