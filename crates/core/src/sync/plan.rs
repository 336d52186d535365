//! Plans the chains of a run (also for the reconciliation of due windows), their order, and their
//! expected pages. Except for [`plan`], this is pure arithmetic without a clock or a request.

use jiff::Timestamp;
use serde::Serialize;

use super::coverage::Coverage;
use super::feed::{Feed, check_distinct};
use super::run_state::{FeedRun, RunState};
use super::settings::{Only, SyncSettings};
use super::state::FeedState;
use super::task::{Task, Why};
use super::unfinished::UnfinishedChain;
use crate::client::Client;
use crate::client::density::Density;
use crate::data::ranges::{Range, Ranges, floor};
use crate::error::Result;
use crate::http::AllowanceState;
use crate::store::Target;

/// The maximum age in seconds of an unfinished chain with points that count as new.
const RECENT: i64 = 3_600;

/// The maximum of expected pages of a planned chain, so that a rejected cursor costs little.
pub(super) const MOST_PAGES: u64 = 100;
/// The maximum length of a chain in windows. The service's own limit is not documented.
const MOST_WINDOWS: i64 = 31;

/// The chains that the next run would read.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// In the order in which they would be read.
    pub tasks: Vec<Task>,
    /// The sum over all tasks; `None` if one of them has no estimate.
    pub pages: Option<u64>,
    pub allowance: AllowanceState,
    /// Pages reserved for windows that become due before the allowance resets.
    pub reserve: u64,
    /// The number of ranges that a sync skips because the service did not end their chain.
    pub skipped: usize,
    pub now: Timestamp,
}

/// In seconds since the Unix epoch by the service's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanTerms<'a> {
    pub(super) now: i64,
    pub(super) until: Option<i64>,
    pub(super) reread: &'a Ranges,
    /// The time at which ranges are set aside. With `None`, these ranges and those left to the next
    /// run are planned as well.
    pub(super) clock: Option<i64>,
}

/// One planned chain. `feed` is an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlanStep {
    pub(super) feed: usize,
    pub(super) why: Why,
    pub(super) range: Range,
    pub(super) pages: Option<u64>,
    /// Whether it is a fill or an audit, which may not spend pages that other chains need.
    pub(super) fills: bool,
}

impl PlanTerms<'_> {
    /// The end of the range that the feed needs.
    fn end(&self, feed: &Feed) -> i64 {
        feed.horizon(self.now).min(self.until.unwrap_or(i64::MAX))
    }
}

pub(super) fn steps(feeds: &[FeedRun], terms: &PlanTerms<'_>) -> Vec<PlanStep> {
    let numbered = feeds.iter().enumerate();
    let mut steps: Vec<PlanStep> =
        numbered.flat_map(|(number, known)| steps_of(number, known, terms)).collect();
    steps.sort_by_key(|step| (step.why, step.range.start, step.feed));
    steps
}

/// The chains of one feed, each class in order.
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
        let fills = matches!(chain.why, Why::Backfill | Why::Audit);
        let step = resumed(number, chain, density, fills);
        let range = step.range;
        steps.push(step);
        // The rest is planned as if this chain had ended.
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
            // An overlap is read again only together with fresh data.
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

/// The chains of an explicit request. An unfinished chain is resumed if it began recently or
/// settles its range, because its points are as good as new. The range within the settle lag, or
/// after it, never counts as read. It is always one new chain.
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
        let as_good = began >= recent || chain.range.end <= feed.settled_before(began);
        as_good && chain.range.end <= feed.horizon(began) && chain.why != Why::Audit
    };
    for chain in resumable(known, terms).filter(is_new) {
        let range = chain.range;
        if wanted.contains(range) {
            steps.push(resumed(number, chain, density, false));
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

fn resumed(feed: usize, chain: &UnfinishedChain, density: &Density, fills: bool) -> PlanStep {
    let range = chain.range;
    let pages = density.pages(range.seconds());
    let pages = pages.map(|pages| pages.saturating_sub(chain.pages).max(1));
    PlanStep { feed, why: Why::Resume, range, pages, fills }
}

fn resumable<'a>(
    known: &'a FeedRun,
    terms: &'a PlanTerms<'_>,
) -> impl Iterator<Item = &'a UnfinishedChain> {
    let put_off = known.put_off(terms);
    known.state.chains.iter().filter(move |chain| {
        !known.state.is_superseded(chain, terms.now)
            && terms.until.is_none_or(|until| chain.range.end <= until)
            && !put_off.contains(chain.range)
    })
}

/// The chains that read these ranges, in order. Neighbouring windows are joined into a chain of at
/// most [`MOST_PAGES`] expected pages and at most twice the longest chain read so far. The first
/// chain is one window. A window with more pages is divided on a smaller grid.
fn chains(ranges: &Ranges, feed: &Feed, density: &Density) -> Vec<Range> {
    let step = step(feed, density);
    let most = feed.window().saturating_mul(MOST_WINDOWS);
    let limit = density.allowed().clamp(feed.window(), most);
    let is_short = |range: Range| {
        let pages = density.pages(range.seconds());
        pages.is_none_or(|pages| pages <= MOST_PAGES) && range.seconds() <= limit
    };
    let mut chains: Vec<Range> = Vec::new();
    for range in ranges.iter() {
        for part in range.cut(step) {
            let joined = chains.last().map(|last| Range::new(last.start, part.end));
            match (chains.last_mut(), joined) {
                (Some(last), Some(joined)) if last.end == part.start && is_short(joined) => {
                    *last = joined;
                }
                _ => chains.push(part),
            }
        }
    }
    chains
}

/// The widest grid with at most [`MOST_PAGES`] per step.
fn step(feed: &Feed, density: &Density) -> i64 {
    let is_short = |step: &i64| density.pages(*step).is_none_or(|pages| pages <= MOST_PAGES);
    feed.steps().find(is_short).or_else(|| feed.steps().last()).unwrap_or(feed.window())
}

/// The ranges that a feed needs, each in one class, in order of urgency.
fn needs(feed: &Feed, coverage: &Coverage, terms: &PlanTerms<'_>) -> [(Why, Ranges); 4] {
    let required = Ranges::from(feed.range_to(terms.end(feed)));
    let (covered, settled) = (coverage.covered(), coverage.settled(feed));
    let reread = terms.reread.widened(feed.width()).and(&required);
    // A due window is read completely, except for its settled parts.
    let due = Ranges::from(Range::new(i64::MIN, feed.settled_before(terms.now)));
    let settling = covered.without(&settled).and(&due);
    let settle = settling.widened(feed.window()).and(&required).without(&settled).without(&reread);
    let edge = edge_of(feed, coverage.end(), terms, &settled).and(&required);
    let edge = edge.without(&settle).without(&reread);
    let fill = required.without(&covered).without(&edge).without(&settle).without(&reread);
    [(Why::Reread, reread), (Why::Recent, edge), (Why::Settle, settle), (Why::Backfill, fill)]
}

/// The fresh range, and its overlap with the newest range that was read. After a pause longer than
/// a window, only the last window is fresh. Without a new bucket the range is empty.
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

/// The pages of the reserve that one feed needs with this coverage: for read windows that become due
/// before the allowance resets.
pub(super) fn reserve_of(state: &FeedState, coverage: &Coverage, now: i64, resets_at: i64) -> u64 {
    let feed = &state.kept();
    let end = resets_at.saturating_sub(1);
    let becoming_due = Range::new(feed.settled_before(now), feed.settled_before(end));
    let read = coverage.covered().widened(feed.window()).and(&becoming_due.into());
    let windows = read.iter().flat_map(|range| range.cut(feed.window()));
    windows.map(|window| state.density.pages(window.seconds()).unwrap_or(1)).sum()
}

/// The pages of the reserve that one feed will need after this range has been read.
pub(super) fn reserve_after(state: &FeedState, range: Range, now: i64, resets_at: i64) -> u64 {
    let mut coverage = state.coverage.clone();
    coverage.cover(range.and(state.kept().range_to(state.feed().horizon(now))), now);
    reserve_of(state, &coverage, now, resets_at)
}

impl PlanStep {
    pub(super) fn task(&self, state: &FeedState) -> Task {
        let (start, end) = self.range.instants();
        let feed = state.feed().name().to_owned();
        Task { feed, why: self.why, start, end, pages: self.pages }
    }
}

/// Makes no request.
pub fn plan(
    client: &Client,
    target: &dyn Target,
    feeds: &[Feed],
    settings: &SyncSettings,
) -> Result<Plan> {
    check_distinct(feeds)?;
    let states = FeedState::load_all(target, feeds, client.base_url().as_str())?;
    let mut run = RunState::new(states, settings, client.now())?;
    let allowance = client.allowance()?;
    run.set_reset(&allowance);
    let terms = run.terms(Some(run.clock.as_second()));
    let steps = steps(&run.parts, &terms);
    Ok(Plan {
        pages: steps.iter().map(|step| step.pages).sum(),
        reserve: run.reserve().0,
        tasks: steps.iter().map(|step| step.task(run.state(step.feed))).collect(),
        skipped: run.left_out().count(),
        allowance,
        now: run.now,
    })
}
