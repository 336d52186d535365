//! What a run reads, in which order, and how many pages that is expected to take. Except [`plan`] this
//! is pure arithmetic: no clock, no request.

use jiff::Timestamp;
use serde::Serialize;

use super::chains::chains;
use super::coverage::Coverage;
use super::feed::{Feed, check_distinct};
use super::ranges::{Range, Ranges, floor};
use super::run_state::{FeedRun, RunState};
use super::settings::{Only, SyncSettings};
use super::state::FeedState;
use super::task::{Task, Why};
use super::unfinished::UnfinishedChain;
use crate::client::Client;
use crate::error::Result;
use crate::http::AllowanceState;
use crate::store::Target;

/// How old, in seconds, the beginning of an unfinished chain may be whose points count as new.
const RECENT: i64 = 3_600;

/// What the next run would read.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// The chains, in the order in which they would be read.
    pub tasks: Vec<Task>,
    /// Expected pages of all tasks; `None` where those of one are not known.
    pub pages: Option<u64>,
    /// The current state of the allowance.
    pub allowance: AllowanceState,
    /// Pages reserved for windows that become due before the allowance resets.
    pub reserve: u64,
    /// The number of ranges that a sync leaves out, because the service did not end their chain.
    pub skipped: usize,
    /// The time that the plan is for.
    pub now: Timestamp,
}

/// The settings of planning, in seconds since the Unix epoch by the service's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanTerms<'a> {
    pub(super) now: i64,
    pub(super) until: Option<i64>,
    pub(super) reread: &'a Ranges,
    /// The service's time, at which ranges are set aside. `None` plans these, and what this run leaves to
    /// another one, like the others.
    pub(super) clock: Option<i64>,
}

/// One planned chain of the feed with this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlanStep {
    pub(super) feed: usize,
    pub(super) why: Why,
    pub(super) range: Range,
    pub(super) pages: Option<u64>,
    /// The chain fills a range that was never read, or is an audit: it may not spend pages that others
    /// need.
    pub(super) fills: bool,
}

impl PlanTerms<'_> {
    /// The end of the range that the feed needs.
    fn end(&self, feed: &Feed) -> i64 {
        feed.horizon(self.now).min(self.until.unwrap_or(i64::MAX))
    }
}

/// The chains to read of all feeds, in order.
pub(super) fn steps(feeds: &[FeedRun], terms: &PlanTerms<'_>) -> Vec<PlanStep> {
    let numbered = feeds.iter().enumerate();
    let mut steps: Vec<PlanStep> =
        numbered.flat_map(|(number, known)| steps_of(number, known, terms)).collect();
    steps.sort_by_key(|step| (step.why, step.range.start, step.feed));
    steps
}

/// The chains to read of one feed, each class in order.
pub(super) fn steps_of(number: usize, known: &FeedRun, terms: &PlanTerms<'_>) -> Vec<PlanStep> {
    let FeedState { density, coverage, given_up, .. } = &known.state;
    let feed = &known.state.kept();
    if terms.reread.is_empty() && terms.clock.is_some_and(|clock| given_up.is_endless(clock)) {
        return Vec::new();
    }
    if let Some(only) = &known.only {
        return steps_within(number, known, terms, only);
    }
    let mut coverage = coverage.clone();
    let mut steps = Vec::new();
    for chain in resumable(known, terms) {
        let pages = density.pages(chain.range().seconds());
        let pages = pages.map(|pages| pages.saturating_sub(chain.pages).max(1));
        let (range, fills) = (chain.range(), matches!(chain.why, Why::Backfill | Why::Audit));
        steps.push(PlanStep { feed: number, why: Why::Resume, range, pages, fills });
        // The rest is planned as if this chain had been read to its end.
        let began = chain.began.unwrap_or(terms.now);
        coverage.cover(range.and(feed.range_to(feed.horizon(began))), began);
    }
    let set_aside = terms.clock.map_or_else(Ranges::none, |clock| {
        given_up.ranges(clock).without(&terms.reread.widened(feed.width()))
    });
    let out = known.done.with(&known.put_off(terms)).with(&set_aside);
    let fresh = Range::new(coverage.end().unwrap_or(i64::MIN), i64::MAX).into();
    for (why, ranges) in needs(feed, &coverage, terms) {
        let ranges = ranges.without(&out);
        if why == Why::Recent && ranges.and(&fresh).is_empty() {
            // What overlaps is read again only together with fresh data.
            continue;
        }
        for range in chains(&ranges, feed, density) {
            let pages = density.pages(range.seconds());
            steps.push(PlanStep { feed: number, why, range, pages, fills: why == Why::Backfill });
        }
    }
    if terms.until.is_none() {
        for (range, pages) in known.state.audits.ranges(feed, (&coverage, density), &out, terms.now)
        {
            let why = Why::Audit;
            steps.push(PlanStep { feed: number, why, range, pages: Some(pages), fills: true });
        }
    }
    steps
}

/// The chains that read what is asked for. An unfinished chain is resumed where it began recently, or settles
/// what it reads: what it has brought is as good as new. What lies within the settle lag, or ahead, counts
/// as read by none: it is one chain, always a new one.
fn steps_within(
    number: usize,
    known: &FeedRun,
    terms: &PlanTerms<'_>,
    only: &Only,
) -> Vec<PlanStep> {
    let FeedState { density, given_up, .. } = &known.state;
    let feed = &known.state.kept();
    let set_aside = terms.clock.map_or_else(Ranges::none, |clock| given_up.ranges(clock));
    let kept = Ranges::from(Range::new(feed.since(), i64::MAX));
    let wanted = only.ranges.without(&known.state.settled()).widened(feed.width()).and(&kept);
    let put_off = known.put_off(terms);
    let mut wanted = wanted.without(&known.done).without(&put_off).without(&set_aside);
    let mut steps = Vec::new();
    let recent = terms.now.saturating_sub(RECENT);
    let recent = only.resumed_since.map_or(recent, |since| recent.min(since.as_second()));
    let is_new = |chain: &&UnfinishedChain| {
        let began = chain.began.unwrap_or(terms.now);
        let as_good = began >= recent || chain.end <= feed.settled_before(began);
        as_good && chain.end <= feed.horizon(began) && chain.why != Why::Audit
    };
    for chain in resumable(known, terms).filter(is_new) {
        let range = chain.range();
        if wanted.contains(range) {
            let pages = density.pages(range.seconds());
            let pages = pages.map(|pages| pages.saturating_sub(chain.pages).max(1));
            steps.push(PlanStep { feed: number, why: Why::Resume, range, pages, fills: false });
            wanted = wanted.without(&range.into());
        }
    }
    let horizon = feed.horizon(terms.now);
    let behind = wanted.and(&Range::new(i64::MIN, horizon).into());
    let ahead = wanted.and(&Range::new(horizon, i64::MAX).into());
    for range in chains(&behind, feed, density).into_iter().chain(ahead.iter()) {
        let within = range.and(Range::new(i64::MIN, terms.now));
        let pages = density.pages(within.seconds()).map(|pages| pages.max(1));
        steps.push(PlanStep { feed: number, why: Why::Reread, range, pages, fills: false });
    }
    steps
}

/// The unfinished chains that are worth resuming.
fn resumable<'a>(
    known: &'a FeedRun,
    terms: &'a PlanTerms<'_>,
) -> impl Iterator<Item = &'a UnfinishedChain> {
    let put_off = known.put_off(terms);
    known.state.chains.iter().filter(move |chain| {
        !known.state.is_superseded(chain, terms.now)
            && terms.until.is_none_or(|until| chain.end <= until)
            && !put_off.contains(chain.range())
    })
}

/// The ranges that a feed needs, each in one class, in order.
fn needs(feed: &Feed, coverage: &Coverage, terms: &PlanTerms<'_>) -> [(Why, Ranges); 4] {
    let required = Ranges::from(feed.range_to(terms.end(feed)));
    let (covered, settled) = (coverage.covered(), coverage.settled(feed));
    let reread = terms.reread.widened(feed.width()).and(&required);
    // A window that is due is read completely, except for its settled parts.
    let due = Ranges::from(Range::new(i64::MIN, feed.settled_before(terms.now)));
    let settling = covered.without(&settled).and(&due);
    let settle = settling.widened(feed.window()).and(&required).without(&settled).without(&reread);
    let edge = edge_of(feed, coverage.end(), terms, &settled).and(&required);
    let edge = edge.without(&settle).without(&reread);
    let fill = required.without(&covered).without(&edge).without(&settle).without(&reread);
    [(Why::Reread, reread), (Why::Recent, edge), (Why::Settle, settle), (Why::Backfill, fill)]
}

/// The fresh range and its overlap with the newest range that was read. After a pause longer than a
/// window only the last window is fresh. Without a new bucket there is no edge.
fn edge_of(feed: &Feed, last: Option<i64>, terms: &PlanTerms<'_>, settled: &Ranges) -> Ranges {
    let end = terms.end(feed);
    let line = floor(end.saturating_sub(1), feed.window());
    let Some(last) = last else { return Range::new(line, end).into() };
    if last >= end {
        return Ranges::none();
    }
    let paused = end.saturating_sub(last) > feed.window();
    let fresh = Range::new(if paused { last.max(line) } else { last }, end);
    let overlap = Range::new(last.saturating_sub(feed.overlap()), last);
    Ranges::from(overlap).without(settled).with(&fresh.into())
}

/// Pages to reserve for windows that were read and become due after `now` and before the allowance
/// resets. Windows that were never read are filled, without a reserve.
pub(super) fn reserve<'a>(
    states: impl Iterator<Item = &'a FeedState>,
    now: i64,
    allowance: &AllowanceState,
) -> u64 {
    if allowance.left.is_none() {
        return 0;
    }
    let resets_at = allowance.resets_at.as_second();
    states.map(|state| reserve_of(state, now, resets_at)).fold(0, u64::saturating_add)
}

/// The pages that one feed needs of the reserve.
pub(super) fn reserve_of(state: &FeedState, now: i64, resets_at: i64) -> u64 {
    reserve_for(state, &state.coverage, now, resets_at)
}

/// The pages that one feed will need of the reserve once this range has been read.
pub(super) fn reserve_after(state: &FeedState, range: Range, now: i64, resets_at: i64) -> u64 {
    let mut coverage = state.coverage.clone();
    coverage.cover(range.and(state.kept().range_to(state.feed().horizon(now))), now);
    reserve_for(state, &coverage, now, resets_at)
}

fn reserve_for(state: &FeedState, coverage: &Coverage, now: i64, resets_at: i64) -> u64 {
    let feed = &state.kept();
    let end = resets_at.saturating_sub(1);
    let becoming_due = Range::new(feed.settled_before(now), feed.settled_before(end));
    let read = coverage.covered().widened(feed.window()).and(&becoming_due.into());
    let windows = read.iter().flat_map(|range| range.cut(feed.window()));
    windows.map(|window| state.density.pages(window.seconds()).unwrap_or(1)).sum()
}

impl PlanStep {
    pub(super) fn task(&self, state: &FeedState) -> Task {
        let (start, end) = self.range.instants();
        let feed = state.feed().name().to_owned();
        Task { feed, why: self.why, start, end, pages: self.pages }
    }
}

/// Plans what a run would read if it began now. Makes no request.
pub fn plan(
    client: &Client,
    target: &dyn Target,
    feeds: &[Feed],
    settings: &SyncSettings,
) -> Result<Plan> {
    check_distinct(feeds)?;
    let states = FeedState::load_all(target, feeds, client.base_url().as_str())?;
    let run = RunState::new(states, settings, client.now())?;
    let terms = run.terms(Some(run.clock.as_second()));
    let steps = steps(&run.parts, &terms);
    let allowance = client.allowance()?;
    Ok(Plan {
        pages: steps.iter().map(|step| step.pages).sum(),
        reserve: reserve(run.parts.iter().map(|part| &part.state), terms.now, &allowance),
        tasks: steps.iter().map(|step| step.task(run.state(step.feed))).collect(),
        skipped: run.left_out().count(),
        allowance,
        now: run.now,
    })
}
