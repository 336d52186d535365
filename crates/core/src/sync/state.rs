//! The state of one feed. A [`crate::store::Target`] stores it as opaque bytes.
//!
//! ```text
//! {"version":2,"made_by":"0.2.0", ... }      one line of JSON
//! crc32 89abcdef                             of that line
//! ```
//!
//! Every format has the second line, `version` and `made_by`. They distinguish another format from
//! a damaged state. The state is secret because its bookmarks contain cursors.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::audits::AuditLog;
use super::coverage::{Coverage, Window, WindowState, windows};
use super::feed::{Feed, FeedDifference, START};
use super::given_up::{GivenUp, SkippedRange};
use super::task::Why;
use super::unfinished::{LARGEST, UnfinishedChain};
use crate::client::density::Density;
use crate::data::ranges::{Range, Ranges, floor, instant};
use crate::error::{Error, Kind, Result, excerpt};
use crate::store::Target;

const VERSION: u64 = 2;
/// With more ranges than this, neighbours are joined if that costs no request.
const MOST_READS: usize = 1_000;

/// Times are seconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeedState {
    feed: Feed,
    /// The base URL.
    service: String,
    /// The beginning of the feed after points were forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kept_from: Option<i64>,
    pub(super) next_sequence: u64,
    pub(super) coverage: Coverage,
    pub(super) chains: Vec<UnfinishedChain>,
    #[serde(default, skip_serializing_if = "GivenUp::is_empty")]
    pub(super) given_up: GivenUp,
    pub(super) density: Density,
    pub(super) audits: AuditLog,
    /// The seconds by which the service's clock was ahead of the machine's at the last sync.
    #[serde(default)]
    pub(super) skew: i64,
}

#[derive(Serialize)]
struct Versioned<'a> {
    version: u64,
    made_by: &'a str,
    #[serde(flatten)]
    state: &'a FeedState,
}

impl FeedState {
    /// The state of an unread feed. `service` is the base URL.
    #[must_use]
    pub fn new(feed: &Feed, service: &str) -> Self {
        Self {
            feed: feed.clone(),
            service: service.to_owned(),
            kept_from: None,
            next_sequence: 1,
            coverage: Coverage::default(),
            chains: Vec::new(),
            given_up: GivenUp::default(),
            density: Density::default(),
            audits: AuditLog::default(),
            skew: 0,
        }
    }

    /// Loads the states of these feeds in one read. Unknown feeds get a new state. Fails for
    /// another definition or service of a feed.
    pub(super) fn load_all(
        target: &dyn Target,
        feeds: &[Feed],
        service: &str,
    ) -> Result<Vec<Self>> {
        let names: Vec<&str> = feeds.iter().map(Feed::name).collect();
        let states = feeds.iter().zip(target.states(&names)?);
        states
            .map(|(feed, bytes)| {
                let Some(bytes) = bytes else { return Ok(Self::new(feed, service)) };
                let state = Self::from_bytes(&bytes).map_err(|error| {
                    error.with(|context| {
                        context.message = format!("feed {:?}: {}", feed.name(), context.message);
                    })
                })?;
                state.check(feed, service)?;
                Ok(state)
            })
            .collect()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
        let (line, checksum) = text.split_once('\n').ok_or_else(damaged)?;
        if checksum != checksum_line(line) {
            return Err(damaged());
        }
        let value: Value = serde_json::from_str(line).map_err(|_| damaged())?;
        match value["version"].as_u64() {
            Some(VERSION) => {}
            Some(0) | None => return Err(damaged()),
            Some(version) => return Err(other_version(version, &value)),
        }
        let state: Self = serde_json::from_value(value).map_err(|_| damaged())?;
        let is_plausible = state.next_sequence <= LARGEST
            && state.chains.iter().all(UnfinishedChain::is_plausible)
            && state.audits.findings.is_plausible()
            && state.coverage.is_canonical();
        if is_plausible { Ok(state) } else { Err(damaged()) }
    }

    /// Includes cursors.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let saved = Versioned { version: VERSION, made_by: crate::VERSION, state: self };
        // Text, integers and finite numbers always serialise.
        let line = serde_json::to_string(&saved).unwrap_or_default();
        format!("{line}\n{}", checksum_line(&line)).into_bytes()
    }

    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    pub(super) fn service(&self) -> &str {
        &self.service
    }

    /// The feed with its beginning after the forgotten range.
    pub(super) fn kept(&self) -> Feed {
        self.feed.beginning_at(self.kept_from)
    }

    pub(super) fn since(&self) -> i64 {
        self.feed.since().max(self.kept_from.unwrap_or(i64::MIN))
    }

    #[must_use]
    pub(super) fn forgotten(&self) -> Range {
        Range::new(self.feed.since(), self.since())
    }

    #[must_use]
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// The sequence number of the newest page that was applied; 0 before the first.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.next_sequence.saturating_sub(1)
    }

    #[must_use]
    pub fn unfinished_chains(&self) -> usize {
        self.chains.len()
    }

    /// The time up to which everything from the feed's beginning is settled.
    #[must_use]
    pub fn settled_through(&self) -> Option<Timestamp> {
        self.through(&self.coverage.settled(&self.feed))
    }

    /// The end of the range that contains the feed's beginning.
    fn through(&self, ranges: &Ranges) -> Option<Timestamp> {
        let first = ranges.iter().find(|range| range.end > self.since())?;
        (first.start <= self.since()).then(|| instant(first.end))
    }

    /// The time up to which everything from the feed's beginning has been read.
    #[must_use]
    pub fn read_through(&self) -> Option<Timestamp> {
        self.through(&self.coverage.covered())
    }

    /// The newest instant that was read: the end of the newest range.
    #[must_use]
    pub fn newest(&self) -> Option<Timestamp> {
        self.coverage.end().map(instant)
    }

    /// The ranges of unfinished and abandoned chains.
    #[must_use]
    pub(super) fn begun(&self) -> Ranges {
        self.chains.iter().map(|chain| chain.range).chain(self.given_up.begun()).collect()
    }

    /// The ranges that a sync at this time skips, because the service did not end their chain.
    #[must_use]
    pub fn set_aside(&self, now: Timestamp) -> Vec<SkippedRange> {
        self.given_up.set_aside(now.as_second()).collect()
    }

    /// The beginning of the newest chain that was read to its end, by the service's time.
    #[must_use]
    pub fn newest_read(&self) -> Option<Timestamp> {
        self.coverage.iter().map(|read| read.read_at).max().map(instant)
    }

    /// The windows from the feed's beginning to `now` less the settle lag, ascending, without gaps.
    #[must_use]
    pub fn windows(&self, now: Timestamp) -> Vec<Window> {
        let forgotten = |part| Window::new(part, WindowState::Forgotten, None);
        let mut all = windows(&self.kept(), &self.coverage, now);
        all.splice(..0, self.forgotten().cut(self.feed.window()).map(forgotten));
        self.given_up.mark(all, now.as_second())
    }

    /// They do not depend on the current time.
    #[must_use]
    pub fn settled(&self) -> Ranges {
        let Some(newest) = self.newest_read() else { return Ranges::none() };
        let to_horizon = self.kept().range_to(self.feed.horizon(newest.as_second()));
        self.coverage.settled(&self.feed).and(&to_horizon.into())
    }

    /// Rejects a changed definition of the feed, and another service.
    pub fn check(&self, feed: &Feed, service: &str) -> Result<()> {
        let mut differences = self.feed.differences(feed, self.forgotten().is_empty());
        if self.service != service {
            let (known, new) = (self.service.clone(), service.to_owned());
            let may_change = false;
            differences.push(FeedDifference { member: "base_url", known, new, may_change });
        }
        if differences.is_empty() { Ok(()) } else { Err(changed(&self.feed, &differences)) }
    }

    /// The same state with another definition of the feed. Durations, page size and window may
    /// change, but not the queried points. The feed may begin earlier unless its beginning was
    /// forgotten. A change other than an earlier beginning abandons unfinished chains and releases
    /// ranges that are set aside.
    pub fn redefine(&self, feed: &Feed) -> Result<Self> {
        let differences = self.feed.differences(feed, self.forgotten().is_empty());
        let fixed: Vec<FeedDifference> =
            differences.iter().filter(|one| !one.may_change).cloned().collect();
        if !fixed.is_empty() {
            return Err(changed(&self.feed, &fixed));
        }
        let mut state = Self { feed: feed.clone(), ..self.clone() };
        if differences.is_empty() || differences.iter().any(|one| one.member != START) {
            if self.feed.input().page_size != feed.input().page_size {
                state.density = state.density.with_other_pages();
            }
            state.given_up.release();
            state.abandon(|_, _| true);
        }
        Ok(state)
    }

    /// The same state with a later beginning, on the grid of its buckets. Earlier ranges are never
    /// read again. Chains that begin before the time are abandoned. Fails for a time after the
    /// newest instant that was read.
    pub fn forget(&self, before: Timestamp) -> Result<Self> {
        let from = floor(before.as_second(), self.feed.width());
        if from <= self.since() {
            return Ok(self.clone());
        }
        let newest = self.coverage.end().unwrap_or(self.since());
        if from > newest {
            let (name, newest) = (self.feed.name(), instant(newest));
            let message = format!(
                "before={before} is after {newest}, the newest instant of feed {name:?} that was read"
            );
            return Err(Error::new(Kind::QueryError, message)
                .with_hint("Use an earlier time: only ranges that were read can be forgotten."));
        }
        let mut state = self.clone();
        state.kept_from = Some(from);
        state.abandon(|_, chain| chain.range.start < from);
        state.given_up.remove(Range::new(i64::MIN, from));
        state.coverage.forget(from);
        Ok(state)
    }

    /// Whether the chain is an audit of a partly settled range.
    pub(super) fn audits_settled(&self, chain: &UnfinishedChain) -> bool {
        let settled = self.coverage.settled(&self.feed);
        chain.why == Why::Audit && !settled.and(&chain.range.into()).is_empty()
    }

    pub(super) fn has_unfinished(&self) -> bool {
        !self.chains.is_empty() || !self.given_up.is_empty()
    }

    /// The skipped range among these with the earliest retry.
    pub(super) fn set_aside_of(&self, ranges: &Ranges, now: Timestamp) -> Option<SkippedRange> {
        let is_endless = self.given_up.is_endless(now.as_second());
        let is_in = |one: &SkippedRange| is_endless || !ranges.overlapping(one.range()).is_empty();
        self.given_up.set_aside(now.as_second()).filter(is_in).min_by_key(|one| one.until)
    }

    /// Replaces a chain with the same range.
    pub(super) fn keep_chain(&mut self, chain: UnfinishedChain) {
        self.drop_chain(chain.range);
        self.chains.push(chain);
    }

    pub(super) fn drop_chain(&mut self, range: Range) {
        self.chains.retain(|known| known.range != range);
    }

    /// Whether the chain is obsolete: its range is due again, or a later chain has read all of it.
    pub(super) fn is_superseded(&self, chain: &UnfinishedChain, now: i64) -> bool {
        let Some(began) = chain.began else { return false };
        let is_due = chain.range.end <= self.feed.settled_before(now);
        (is_due && self.feed.settled_before(began) <= chain.range.start)
            || self.coverage.since(began).contains(chain.range)
    }

    pub(super) fn drop_superseded(&mut self, now: i64) {
        self.abandon(|state, chain| state.is_superseded(chain, now));
    }

    /// The same state without cursors, for a public place. Unfinished chains start again.
    #[must_use]
    pub fn without_cursors(mut self) -> Self {
        self.abandon(|_, _| true);
        self
    }

    /// Ranges that no other chain has covered are recorded as begun.
    fn abandon(&mut self, is_dropped: impl Fn(&Self, &UnfinishedChain) -> bool) {
        let chains = std::mem::take(&mut self.chains).into_iter();
        let (dropped, kept): (Vec<_>, _) = chains.partition(|chain| is_dropped(self, chain));
        self.chains = kept;
        let covered = self.coverage.covered();
        for chain in dropped {
            for range in Ranges::from(chain.range).without(&covered).iter() {
                self.given_up.add(range, chain.pages.max(1), None);
            }
        }
    }

    /// With a time and an error, the range is set aside.
    pub(super) fn give_up(&mut self, chain: &UnfinishedChain, set_aside: Option<(i64, Kind)>) {
        self.drop_chain(chain.range);
        self.given_up.add(chain.range, chain.pages.max(1), set_aside);
    }

    /// Adds a chain that was read to its end to the coverage. It covers its range only up to the
    /// settle lag at its beginning, even if its query extended further.
    pub(super) fn cover(&mut self, chain: &UnfinishedChain, on_last: u64) {
        self.drop_chain(chain.range);
        let Some(began) = chain.began else { return };
        let covered = chain.range.and(Range::new(i64::MIN, self.feed.horizon(began)));
        if !covered.is_empty() {
            self.coverage.cover(covered, began);
            self.given_up.remove(covered);
            if self.coverage.len() > MOST_READS {
                self.coverage.thin(&self.feed);
            }
            self.density.learn(covered.seconds(), chain.pages, chain.points, on_last);
        }
    }
}

fn checksum_line(line: &str) -> String {
    format!("crc32 {:08x}\n", libdeflater::crc32(line.as_bytes()))
}

fn damaged() -> Error {
    Error::new(Kind::StoreCorrupt, "the state of the feed is damaged")
        .with_hint("Restore the store from a backup, or sync the feed into a new store.")
}

fn other_version(version: u64, value: &Value) -> Error {
    let made_by = excerpt(value["made_by"].as_str().unwrap_or("unknown"));
    let hint = if version > VERSION {
        format!("Upgrade siteline: this is version {}.", crate::VERSION)
    } else {
        "Sync into a new store or target.".to_owned()
    };
    Error::new(Kind::StoreError, format!("the state of the feed was made by siteline {made_by}"))
        .with_hint(hint)
}

fn changed(feed: &Feed, differences: &[FeedDifference]) -> Error {
    let members: Vec<String> = differences
        .iter()
        .map(|one| format!("{} was {}, is {}", one.member, excerpt(&one.known), excerpt(&one.new)))
        .collect();
    let (name, members) = (feed.name(), members.join("; "));
    let message = format!("the store contains feed {name:?} with another definition: {members}");
    let hint = if differences.iter().all(|one| one.may_change) {
        "Accept the new definition with store.redefine(feed), or give the feed a new name."
    } else if differences.iter().all(|one| one.may_change || one.member == START) {
        "Write the start= of the store, or give the feed a new name. A relative start= such as \
         \"-7d\" is another time in each run."
    } else {
        "The new definition queries other points. Correct it, or give the feed a new name."
    };
    Error::new(Kind::FeedChanged, message).with_hint(hint)
}
