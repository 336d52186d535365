//! Computes which feeds of a store provide a requested range, and which feeds read the rest.
//!
//! Every feed with the parameters of the query has the same points, so its settled ranges are as
//! good as a new read. A feed also reads the rest if that leaves no gap in its range. Otherwise the
//! store adds a feed for such reads, which begins at the earliest requested time.

use std::time::Duration;

use super::feed::{Feed, FeedInput, check_name};
use super::state::FeedState;
use crate::data::ranges::{Range, Ranges, ceil, floor, instant};
use crate::data::{Query, Selection, spelled};
use crate::error::{Error, Kind, Result};

const DAY: i64 = 86_400;
/// A longer name of a feed ends with a checksum of the whole name.
const LONGEST_NAME: usize = 180;

/// The part of a range that one feed provides.
#[derive(Debug, Clone)]
pub(super) struct FeedShare {
    /// It can be new, or begin earlier than the state in the store.
    pub(super) state: FeedState,
    /// Whether this state replaces the one in the store.
    pub(super) is_redefined: bool,
    pub(super) settled: Ranges,
    pub(super) missing: Ranges,
    /// The missing ranges that this scan has not read yet.
    pub(super) left: Ranges,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) query: &'a Query,
    pub(super) range: Range,
    pub(super) service: &'a str,
    /// The settle lag of a feed that the store adds.
    pub(super) settle_lag: Duration,
    /// As in [`super::ThroughStore`].
    pub(super) reads_once: bool,
}

impl Asked<'_> {
    /// Whether a feed has the same points. The page size does not matter.
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

    pub(super) fn ranges(&self) -> Ranges {
        self.settled.with(&self.missing)
    }

    pub(super) fn is_left(&self) -> bool {
        !self.left.is_empty()
    }
}

/// Together the shares cover the range. Fails if only a feed with a forgotten beginning could read
/// a part.
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
            left: Ranges::none(),
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

/// The share of the feed for such reads, which begins early enough to read the rest.
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
        let (settled, left) = (Ranges::none(), Ranges::none());
        return Ok(FeedShare { state, is_redefined: false, settled, missing: rest, left });
    };
    if !rest.is_empty() && !share.state.forgotten().is_empty() {
        let message = format!(
            "The points of feed {own:?} before {} were forgotten.",
            instant(share.state.since())
        );
        return Err(Error::new(Kind::QueryError, message).with_hint(
            "Begin at that time, or omit store= to read the range without storing it.",
        ));
    }
    let missing = share.missing.with(&rest);
    let known = share.state.feed().input();
    let since = since.unwrap_or(known.since);
    // Unfinished chains cannot continue with another page size.
    let is_fixed = missing.is_empty() || share.state.has_unfinished();
    let page_size = if is_fixed { None } else { input.page_size }.or(known.page_size);
    let feed = Feed::new(FeedInput { page_size, since, ..known.clone() })?;
    if feed == *share.state.feed() {
        return Ok(FeedShare { missing, ..share });
    }
    let state = share.state.redefine(&feed)?;
    Ok(FeedShare { state, is_redefined: true, missing, ..share })
}

/// The widest window that contains the whole range, so that the range is one chain.
fn widest_window(range: Range) -> u64 {
    let is_one = |width: &i64| floor(range.start, *width) == floor(range.end - 1, *width);
    let mut days = (1..=3_650).rev().map(|days| days * DAY);
    days.find(is_one).unwrap_or(3_650 * DAY).unsigned_abs()
}

/// The name of the feed for reads with these parameters. No feed with other points has this name.
fn own_name(states: &[(String, FeedState)], asked: &Asked<'_>) -> String {
    let name = plain_name(asked.query);
    let is_taken = states.iter().any(|(known, state)| *known == name && !asked.is_same(state));
    if name.chars().count() <= LONGEST_NAME && check_name(&name).is_ok() && !is_taken {
        return name;
    }
    let prefix = name.chars().take(LONGEST_NAME).map(|c| if c.is_control() { '?' } else { c });
    let mut input = asked.query.input().clone();
    (input.start, input.end, input.page_size) = (None, None, None);
    input.selection = Selection::default();
    // Text and numbers always serialise.
    let exact = serde_json::to_string(&(asked.service, input)).unwrap_or_default();
    format!("{} #{:08x}", prefix.collect::<String>(), libdeflater::crc32(exact.as_bytes()))
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

/// In whole seconds. Fails for a query without a start.
pub(super) fn range_of(query: &Query) -> Result<Range> {
    let (start, end) = query.start().zip(query.end()).ok_or_else(|| {
        let message = "with start=None the service chooses the start, which a store does not know";
        Error::new(Kind::QueryError, message).with_hint("Set start=, or omit store=.")
    })?;
    Ok(Range::between(start, end))
}
