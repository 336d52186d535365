//! Reads the states, coverage and lateness of feeds from a store.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::arrival::DelaySummary;
use super::coverage::Window;
use super::feed::Feed;
use super::state::FeedState;
use crate::clock::Clock;
use crate::data::ranges::Range;
use crate::error::Result;
use crate::store::{Delays, Freed, Store, Target as _, Watch};

pub fn read_state(store: &Store, feed: &str) -> Result<FeedState> {
    store.look_up(feed, |feed| Ok(FeedState::from_bytes(&feed.state()?)?))
}

/// With their names, sorted by name.
pub fn read_states(store: &Store) -> Result<Vec<(String, FeedState)>> {
    let names = store.feeds()?;
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    // Feeds are never removed from a store, so each name has a state.
    let states = store.states(&known)?.into_iter().flatten();
    let decoded =
        |(name, state): (&String, Vec<u8>)| Ok((name.clone(), FeedState::from_bytes(&state)?));
    names.iter().zip(states).map(decoded).collect()
}

/// Changes the definition of a feed in the store, as [`FeedState::redefine`] allows.
pub fn redefine(store: &Store, feed: &Feed) -> Result<()> {
    let name = feed.name();
    read_state(store, name)?;
    let _lock = store.lock(name)?;
    // Read again under the lock, because another process may have written it.
    let redefined = read_state(store, name)?.redefine(feed)?;
    store.apply(name, None, &redefined.to_bytes()).map(drop)
}

/// Forgets the time before an instant. Its points are removed, the feed then begins there, and no
/// sync reads the earlier time again.
pub fn forget(store: &Store, feed: &str, before: Timestamp, watch: &Watch) -> Result<Freed> {
    read_state(store, feed)?;
    let _lock = store.lock(feed)?;
    let state = read_state(store, feed)?.forget(before)?;
    if state.forgotten().is_empty() {
        return Ok(Freed::default());
    }
    // Continue even if nothing is new, because an earlier call may have been killed.
    let kept_from = state.forgotten().microseconds().end;
    store.forget(feed, kept_from, &state.to_bytes(), watch)
}

/// Removes older versions of points in the settled windows of these feeds, and returns the free
/// space of the file. Afterwards `as_of` and `changes` reject earlier sequence numbers.
pub fn compact(store: &Store, feeds: &[String], watch: &Watch) -> Result<Freed> {
    let mut removed = Freed::default();
    for feed in feeds {
        read_state(store, feed)?;
        let _lock = store.lock(feed)?;
        let settled = read_state(store, feed)?.settled();
        removed += store.compact(feed, settled.microseconds(), watch)?;
    }
    removed.returned = store.give_back(watch)?;
    Ok(removed)
}

/// The windows of a feed, and which of them have points.
#[derive(Debug, Clone, Serialize)]
pub struct FeedCoverage {
    pub feed: Feed,
    /// The time for which the windows are computed.
    pub now: Timestamp,
    pub windows: Vec<Window>,
}

impl FeedCoverage {
    /// By default at the service's time.
    pub fn read(store: &Store, feed: &str, now: Option<Timestamp>) -> Result<Self> {
        let mut coverage = Self::of_state(&read_state(store, feed)?, now);
        let range = |window: &Window| Range::between(window.start, window.end).microseconds();
        let ranges: Vec<_> = coverage.windows.iter().map(range).collect();
        for (window, has_points) in coverage.windows.iter_mut().zip(store.holds(feed, &ranges)?) {
            window.empty = window.read_at.map(|_| !has_points);
        }
        Ok(coverage)
    }

    /// The coverage of a state, without the windows' points.
    #[must_use]
    pub fn of_state(state: &FeedState, now: Option<Timestamp>) -> Self {
        let now = now.unwrap_or_else(|| service_time(state));
        Self { feed: state.feed().clone(), now, windows: state.windows(now) }
    }
}

/// The machine's clock corrected by the skew of the last sync, or the newest read if that is later.
#[must_use]
pub fn service_time(state: &FeedState) -> Timestamp {
    let newest = state.newest_read().unwrap_or(Timestamp::MIN);
    let skew = SignedDuration::from_secs(state.skew);
    let wall = Clock::system().wall();
    wall.checked_add(skew).unwrap_or(wall).max(newest)
}

#[derive(Debug, Clone, Serialize)]
pub struct FeedLateness {
    pub feed: Feed,
    pub points: DelaySummary,
    pub revisions: DelaySummary,
    /// The total length of the settled ranges, in seconds.
    pub settled: u64,
}

impl FeedLateness {
    pub fn read(store: &Store, feed: &str) -> Result<Self> {
        let state = read_state(store, feed)?;
        let width = i64::from(state.feed().input().interval_seconds.unwrap_or_default());
        let delays = store.delays(feed, width.saturating_mul(1_000_000))?;
        Ok(Self::new(&state, &delays))
    }

    /// From the newest audits in the state. Available for every target.
    #[must_use]
    pub fn of_state(state: &FeedState) -> Self {
        Self::new(state, &state.audits.findings.delays())
    }

    fn new(state: &FeedState, delays: &Delays) -> Self {
        let settled = state.settled().seconds().unsigned_abs();
        let summary = |seen| DelaySummary::new(seen, state.feed().input().lateness);
        let (points, revisions) = (summary(&delays.points), summary(&delays.revisions));
        Self { feed: state.feed().clone(), points, revisions, settled }
    }
}
