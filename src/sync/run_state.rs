//! The state of a run: what it has done, and what it leaves to another run.

use std::sync::Arc;

use jiff::Timestamp;

use super::given_up::SetAside;
use super::pending_write::PendingWrite;
use super::plan::{PlanStep, PlanTerms, PlannedFeed, reserve, steps};
use super::ranges::{Range, Ranges};
use super::report::FeedReport;
use super::settings::SyncSettings;
use super::state::FeedState;
use super::task::{Task, Why};
use super::unfinished::UnfinishedChain;
use crate::client::Spending;
use crate::data::spelled;
use crate::error::{Error, Kind, Result};
use crate::http::AllowanceState;
use crate::store::Applied;

/// One feed of a run.
#[derive(Debug)]
struct FeedRun {
    state: FeedState,
    done: Ranges,
    put_off: Ranges,
    /// The number of ranges that were skipped because of an error.
    failures: usize,
    chains: u64,
    pages: u64,
    applied: Applied,
    /// What audits found after the lateness.
    late: u64,
}

/// A run stops reading a feed after this many failures: the other ranges probably fail too, and
/// each costs a request.
const MOST_FAILURES: usize = 3;

/// The state of a run.
#[derive(Debug)]
pub(super) struct RunState {
    parts: Vec<FeedRun>,
    reread: Ranges,
    until: Option<i64>,
    /// The service's time that the run is planned for.
    pub(super) now: Timestamp,
    /// The service's time.
    pub(super) clock: Timestamp,
    pub(super) pending: Option<Arc<PendingWrite>>,
    /// When the allowance resets, where it is spent.
    stopped: Option<Timestamp>,
    /// The rest of the allowance is reserved: nothing is filled any more.
    no_fill: bool,
    /// The error of the first range that was skipped.
    failure: Option<Error>,
    pub(super) spending: Arc<Spending>,
    /// Requests of the chains before the current one.
    requests: u64,
    pub(super) points: u64,
    pub(super) newest: Option<i64>,
    /// What the current audit has changed.
    found: u64,
    /// Warnings for the log, each with its feed. A write has no log: [`Run::fetch`](super::run::Run)
    /// logs them.
    warnings: Vec<(usize, String)>,
}

impl RunState {
    pub(super) fn new(
        states: Vec<FeedState>,
        settings: &SyncSettings,
        clock: Timestamp,
    ) -> Result<Self> {
        let part = |state| FeedRun {
            state,
            done: Ranges::none(),
            put_off: Ranges::none(),
            failures: 0,
            chains: 0,
            pages: 0,
            applied: Applied::default(),
            late: 0,
        };
        let mut run = Self {
            parts: states.into_iter().map(part).collect(),
            reread: settings.reread_ranges()?,
            until: settings.until_second(),
            now: settings.now.unwrap_or(clock),
            clock,
            pending: None,
            stopped: None,
            no_fill: false,
            failure: None,
            spending: Arc::default(),
            requests: 0,
            points: 0,
            newest: None,
            found: 0,
            warnings: Vec::new(),
        };
        run.warn_of_set_aside();
        Ok(run)
    }

    pub(super) fn state(&self, feed: usize) -> &FeedState {
        &self.parts[feed].state
    }

    /// What is left to read, including what this run may not read.
    fn rest(&self) -> Vec<PlanStep> {
        let none = Ranges::none();
        let mut rest = self.steps(|_| &none, None);
        rest.retain(|step| step.why != Why::Audit);
        rest
    }

    /// What this run may still read, in order.
    fn open(&self) -> Vec<PlanStep> {
        if self.stopped.is_some() {
            return Vec::new();
        }
        let mut open = self.steps(|part| &part.put_off, Some(self.clock.as_second()));
        open.retain(|step| !(step.fills && self.no_fill));
        open.retain(|step| self.parts[step.feed].failures < MOST_FAILURES);
        open
    }

    /// Skips a range because of an error: another run reads it.
    pub(super) fn skip(&mut self, feed: usize, range: Range, error: Error) {
        let (start, end) = range.instants();
        let cause = format!("{error:?}").replace('\n', " ");
        self.warnings.push((feed, format!("{start} to {end} is skipped: {cause}")));
        self.parts[feed].failures += 1;
        self.parts[feed].put_off.add(range);
        self.failure.get_or_insert(error);
    }

    /// Takes the error of the first range that was skipped.
    pub(super) fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    fn steps<'a>(
        &'a self,
        put_off: impl Fn(&'a FeedRun) -> &'a Ranges,
        clock: Option<i64>,
    ) -> Vec<PlanStep> {
        let (now, until, reread) = (self.now.as_second(), self.until, &self.reread);
        let terms = PlanTerms { now, until, reread, clock };
        let known = |part: &'a FeedRun| PlannedFeed {
            state: &part.state,
            done: &part.done,
            put_off: put_off(part),
        };
        steps(&self.parts.iter().map(known).collect::<Vec<_>>(), &terms)
    }

    /// The pages that the plan expects this run still to apply, if those of all chains are known; and
    /// whether the run is over.
    pub(super) fn left(&self) -> (Option<u64>, bool) {
        let open = self.open();
        let pages = open.iter().map(|step| step.pages).sum();
        (pages, self.pending.is_none() && open.is_empty())
    }

    /// The next chain. Sets what it may spend: a chain that fills must leave the pages of all urgent
    /// chains and the reserve (§4.5.6); repeats of an urgent chain must leave the reserve.
    pub(super) fn next(&mut self, allowance: &AllowanceState) -> Option<PlanStep> {
        let open = self.open();
        let step = *open.first()?;
        let states = self.parts.iter().map(|part| &part.state);
        let reserve = reserve(states, self.now.as_second(), allowance);
        let urgent = open.iter().filter(|step| !step.fills).map(|step| step.pages.unwrap_or(1));
        let keep = if step.fills { reserve.saturating_add(urgent.sum()) } else { 0 };
        self.requests = self.requests();
        let spending = Spending {
            must_remain: keep,
            must_remain_after_retries: reserve.max(keep),
            ..Spending::default()
        };
        self.spending = Arc::new(spending);
        Some(step)
    }

    /// The chain of a step: the unfinished one that it resumes, or a new one.
    pub(super) fn chain(&self, step: &PlanStep) -> UnfinishedChain {
        let state = self.state(step.feed);
        let known = state.chains.iter().find(|chain| chain.range() == step.range);
        match known {
            Some(known) if step.why == Why::Resume => known.clone(),
            _ => UnfinishedChain::new(step.range, step.why, 0),
        }
    }

    /// Notes that the service or the allowance refused a request of this chain.
    pub(super) fn refused(
        &mut self,
        feed: usize,
        chain: &UnfinishedChain,
        allowance: &AllowanceState,
        retry_at: Option<Timestamp>,
    ) {
        if allowance.left.is_none_or(|left| left == 0) {
            self.stopped = Some(retry_at.unwrap_or(allowance.resets_at));
        } else if chain.why == Why::Fill {
            self.no_fill = true;
        } else {
            // A repeat would have spent the reserve; other chains may need no repeat.
            self.parts[feed].put_off.add(chain.range());
        }
    }

    /// The state of the feed after the pending write.
    pub(super) fn after(&self, pending: &PendingWrite) -> FeedState {
        let mut state = self.state(pending.feed()).clone();
        match pending {
            PendingWrite::Page { page, chain, .. } => {
                state.next_sequence = page.sequence.saturating_add(1);
                state.drop_superseded(self.now.as_second());
                let audits_settled = state.audits_settled(chain);
                if chain.why == Why::Audit {
                    state.audits.count(self.now.as_second(), page.is_last);
                }
                if !page.is_last {
                    state.keep_chain(chain.clone());
                    return state;
                }
                state.cover(chain, page.rows() as u64);
                if audits_settled {
                    // What it changes is not known before it is written.
                    let feed = state.feed().clone();
                    state.coverage.unsettle(chain.range(), &feed);
                }
            }
            PendingWrite::Restart { chain, .. } => state.keep_chain(chain.clone()),
            PendingWrite::TooLong { range, .. } => {
                state.drop_chain(*range);
                state.density.refuse(range.seconds());
            }
            // The range of an audit has been read before.
            PendingWrite::Abandoned { chain, .. } if chain.why == Why::Audit => {
                state.drop_chain(chain.range());
            }
            PendingWrite::Abandoned { chain, error, at, .. } => {
                let is_service = error.kind() != Kind::BookmarkError;
                state.give_up(chain, is_service.then(|| (at.as_second(), error.kind())));
            }
            PendingWrite::Settled { coverage, .. } => state.coverage = coverage.clone(),
        }
        state
    }

    /// Notes that the target has applied the pending write with this state.
    pub(super) fn applied(&mut self, pending: &PendingWrite, state: FeedState, applied: Applied) {
        self.pending = None;
        let before = std::mem::replace(&mut self.parts[pending.feed()].state, state);
        if let PendingWrite::Abandoned { feed, chain, error, .. } = pending {
            self.skip(*feed, chain.range(), error.clone());
        }
        let part = &mut self.parts[pending.feed()];
        let PendingWrite::Page { page, chain, begun_here, .. } = pending else { return };
        part.pages += 1;
        part.applied.inserted += applied.inserted;
        part.applied.revised += applied.revised;
        part.applied.unchanged += applied.unchanged;
        part.applied.flagged += applied.flagged;
        if page.is_last {
            part.chains += 1;
            // The next plan decides whether a range that an older run began must be read again.
            if *begun_here && chain.why != Why::Audit {
                part.done.add(chain.range());
            }
        }
        let times = &page.points.timestamps;
        self.newest = self.newest.max(times.values().iter().max().copied());
        self.points += page.rows() as u64;
        if before.audits_settled(chain) {
            let begun = if *begun_here { Some(before) } else { None };
            self.audited(pending.feed(), chain, page.is_last, begun, applied);
        }
    }

    /// Notes what a page of an audit of a settled range changed. Where the whole audit changed nothing,
    /// its range stays settled; of an audit that another run began that is not known.
    fn audited(
        &mut self,
        feed: usize,
        chain: &UnfinishedChain,
        is_last: bool,
        begun: Option<FeedState>,
        applied: Applied,
    ) {
        let found = applied.inserted + applied.revised + applied.flagged;
        self.found = if chain.pages == 1 { found } else { self.found + found };
        self.parts[feed].late += found;
        if !is_last {
            return;
        }
        if self.found > 0 {
            let (start, end) = chain.range().instants();
            let lateness = spelled(self.state(feed).feed().input().lateness);
            let text = format!(
                "{} points of {start} to {end} came or changed after the lateness of {lateness}: their \
                 window is read again. See store.lateness()",
                self.found
            );
            self.warnings.push((feed, text));
        } else if let Some(mut state) = begun {
            state.cover(chain, 0);
            self.pending = Some(Arc::new(PendingWrite::Settled { feed, coverage: state.coverage }));
        }
    }

    pub(super) fn pages(&self) -> u64 {
        self.parts.iter().map(|part| part.pages).sum()
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests + self.spending.requests.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(super) fn todo(&self) -> Vec<Task> {
        self.rest().iter().map(|step| step.task(self.state(step.feed))).collect()
    }

    /// When to sync again, where the allowance ended the run, or ranges are set aside.
    pub(super) fn resumes_at(&self, allowance: &AllowanceState) -> Option<Timestamp> {
        let clock = self.clock.as_second();
        let is_put_off =
            |part: &FeedRun| !part.put_off.without(&part.state.given_up.ranges(clock)).is_empty();
        let held_back = self.no_fill || self.parts.iter().any(is_put_off);
        let set_aside = self.parts.iter().flat_map(|part| part.state.set_aside(self.clock));
        let set_aside = set_aside.map(|one| one.until).min();
        self.stopped.or(held_back.then_some(allowance.resets_at)).or(set_aside)
    }

    /// Warns of the ranges that this run leaves out.
    fn warn_of_set_aside(&mut self) {
        for (feed, part) in self.parts.iter().enumerate() {
            let set_aside = part.state.set_aside(self.clock).into_iter();
            let left_out =
                set_aside.filter(|one| !self.reread.contains(Range::between(one.start, one.end)));
            self.warnings.extend(left_out.map(|SetAside { start, end, until, error, .. }| {
                let text = format!(
                    "{start} to {end} is set aside until {until} ({error}); reread= tries it before"
                );
                (feed, text)
            }));
        }
    }

    /// Logs the warnings that have come up.
    pub(super) fn log_warnings(&mut self) {
        for (feed, text) in std::mem::take(&mut self.warnings) {
            let name = self.state(feed).feed().name();
            log::warn!(target: "siteline::sync", feed = name; "{name}: {text}");
        }
    }

    pub(super) fn reports(&self) -> Vec<FeedReport> {
        let report = |part: &FeedRun| FeedReport {
            name: part.state.feed().name().to_owned(),
            chains: part.chains,
            pages: part.pages,
            applied: part.applied,
            late: part.late,
            sequence: part.state.sequence(),
            settled_through: part.state.settled_through(),
            read_through: part.state.read_through(),
            newest: part.state.newest(),
            set_aside: part.state.set_aside(self.clock),
        };
        self.parts.iter().map(report).collect()
    }
}
