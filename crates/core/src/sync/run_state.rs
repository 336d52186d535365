//! The state of a run: the ranges that it has read or leaves to the next run.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

use super::given_up::SkippedRange;
use super::pending_write::{Change, PendingWrite};
use super::plan::{PlanStep, PlanTerms};
use super::report::FeedReport;
use super::schedule::FeedPlan;
use super::settings::{Only, SyncSettings};
use super::state::FeedState;
use super::task::Why;
use super::under_way::UnderWay;
use super::unfinished::UnfinishedChain;
use crate::client::SharedPause;
use crate::client::page_request::PageReply;
use crate::data::ranges::{Range, Ranges};
use crate::data::{MergeReport, spelled};
use crate::error::{Error, Kind, Result};
use crate::http::AllowanceState;
use crate::store::Applied;

#[derive(Debug)]
pub(super) struct FeedRun {
    pub(super) state: FeedState,
    /// Ranges that this run has read, or leaves to the next run.
    pub(super) done: Ranges,
    /// Ranges of unfinished chains that this run leaves to the next run.
    pub(super) put_off: Ranges,
    /// The only ranges that this run reads; `None` reads what is due.
    pub(super) only: Option<Only>,
    pub(super) failures: usize,
    /// With the counts of this run only.
    pub(super) counts: FeedReport,
    found: AuditCounts,
    /// Computed when it is needed.
    pub(super) plan: OnceCell<FeedPlan>,
}

impl FeedRun {
    pub(super) fn new(state: FeedState, only: Option<Only>) -> Self {
        let (done, put_off) = (Ranges::none(), Ranges::none());
        let (counts, found) = (FeedReport::default(), AuditCounts::default());
        Self { state, done, put_off, only, failures: 0, counts, found, plan: OnceCell::new() }
    }

    /// Ranges of unfinished chains that are not planned.
    pub(super) fn put_off(&self, terms: &PlanTerms<'_>) -> Ranges {
        terms.clock.map_or_else(Ranges::none, |_| self.put_off.clone())
    }
}

/// The changes found by the pages of an audit, including those before its chain was restarted.
#[derive(Debug, Clone, Copy, Default)]
struct AuditCounts {
    counts: Applied,
    /// The target did not report counts for every page.
    is_guess: bool,
}

#[derive(Debug, Default)]
pub(super) struct RunState {
    pub(super) parts: Vec<FeedRun>,
    pub(super) reread: Ranges,
    pub(super) until: Option<i64>,
    /// The service's time for which the run is planned.
    pub(super) now: Timestamp,
    /// The service's time.
    pub(super) clock: Timestamp,
    pub(super) under_way: BTreeMap<usize, UnderWay>,
    /// A pause that the service requested for one chain applies to all chains.
    pub(super) pause: SharedPause,
    /// The writes that have not been applied, in order.
    pub(super) pending: VecDeque<PendingWrite>,
    /// When the allowance resets, if it is used up.
    pub(super) stopped: Option<Timestamp>,
    /// The rest of the allowance is reserved, so the run fills no more ranges.
    pub(super) no_fill: bool,
    /// The reset of the allowance for which the reserve was computed.
    pub(super) resets_at: Option<i64>,
    max_pages: Option<u64>,
    pub(super) answered: u64,
    pub(super) failure: Option<Error>,
    /// The error that ends the run after the requests in flight. No further request is sent.
    pub(super) ended: Option<Error>,
    /// Requests of the chains that have ended.
    pub(super) requests: u64,
    /// The counts of the applied pages.
    pub(super) read: MergeReport,
    pub(super) newest: Option<i64>,
    /// The beginning of the oldest chain that ended without settling its range.
    pub(super) oldest: Option<i64>,
    /// Feeds whose current chain brought values that the target cannot store. It is not continued.
    pub(super) unstorable: BTreeSet<usize>,
    /// Each with its feed. [`Run::fetch`](super::run::Run) logs them.
    pub(super) warnings: Vec<(usize, String)>,
}

impl RunState {
    pub(super) fn new(
        states: Vec<FeedState>,
        settings: &SyncSettings,
        clock: Timestamp,
    ) -> Result<Self> {
        let part = |state: FeedState| {
            let only = settings.only_of(state.feed().name());
            FeedRun::new(state, only)
        };
        let mut run = Self {
            parts: states.into_iter().map(part).collect(),
            reread: settings.reread_ranges()?,
            until: settings.until.map(Timestamp::as_second),
            now: settings.now.unwrap_or(clock),
            clock,
            max_pages: settings.max_pages,
            ..Self::default()
        };
        let warning = |(feed, SkippedRange { start, end, until, error, .. })| {
            let text = format!(
                "{start} to {end} is skipped until {until} ({error}). Use reread= to read it earlier"
            );
            (feed, text)
        };
        run.warnings = run.left_out().map(warning).collect();
        Ok(run)
    }

    pub(super) fn state(&self, feed: usize) -> &FeedState {
        &self.parts[feed].state
    }

    /// The next run reads the range.
    pub(super) fn skip(&mut self, feed: usize, range: Range, error: Error) {
        let (start, end) = range.instants();
        let cause = format!("{error:?}").replace('\n', "; ");
        self.warnings.push((feed, format!("{start} to {end} is skipped: {cause}")));
        self.parts[feed].failures += 1;
        self.parts[feed].put_off.add(range);
        self.failure.get_or_insert(error);
        if self.parts[feed].only.is_some() {
            // All ranges were requested together, so the rest would be paid for in vain.
            self.replan_all();
        }
    }

    pub(super) fn feeds_under_way(&self) -> Vec<usize> {
        self.under_way.keys().copied().collect()
    }

    pub(super) fn is_asked(&self, feed: usize) -> bool {
        self.under_way.get(&feed).is_some_and(|one| one.request.is_some())
    }

    pub(super) fn asked(&self) -> usize {
        self.under_way.values().filter(|one| one.request.is_some()).count()
    }

    /// Whether another page may be requested, with at most `most` unapplied pages.
    pub(super) fn has_room(&self, most: usize) -> bool {
        let asked = self.asked();
        asked + self.pending.len() < most.max(1) && self.may_ask(asked)
    }

    pub(super) fn take_requests(&mut self) -> Vec<(usize, PageReply)> {
        let chains = self.under_way.iter_mut();
        chains.filter_map(|(feed, one)| Some((*feed, one.request.take()?))).collect()
    }

    pub(super) fn put_back(&mut self, requests: impl IntoIterator<Item = (usize, PageReply)>) {
        for (feed, request) in requests {
            if let Some(one) = self.under_way.get_mut(&feed) {
                one.request = Some(request);
            }
        }
    }

    /// The unfinished chain that a step resumes, or a new one.
    pub(super) fn chain(&self, step: &PlanStep) -> UnfinishedChain {
        let state = self.state(step.feed);
        let known = state.chains.iter().find(|chain| chain.range == step.range);
        match known {
            Some(known) if step.why == Why::Resume => known.clone(),
            _ => UnfinishedChain::new(step.range, step.why, 0),
        }
    }

    /// Notes that the service or the allowance rejected a request of this chain.
    pub(super) fn refused(
        &mut self,
        feed: usize,
        chain: &UnfinishedChain,
        allowance: &AllowanceState,
        retry_at: Option<Timestamp>,
    ) {
        if allowance.left.is_none_or(|left| left == 0) {
            self.stopped = Some(retry_at.unwrap_or(allowance.resets_at));
            self.replan_all();
        } else if chain.why == Why::Backfill {
            self.no_fill = true;
            self.replan_all();
        } else {
            // A retry would have spent the reserve. Other chains may need no retry.
            self.parts[feed].put_off.add(chain.range);
        }
    }

    /// The state of the feed after a pending write.
    pub(super) fn after(&self, pending: &PendingWrite) -> FeedState {
        let PendingWrite { feed, chain, change } = pending;
        let mut state = self.state(*feed).clone();
        match change {
            Change::Page { page, .. } => {
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
                    // The changes that it finds are only known after the write.
                    let feed = state.feed().clone();
                    state.coverage.unsettle(chain.range, &feed);
                }
            }
            Change::Restart => state.keep_chain(chain.clone()),
            Change::TooLong => {
                state.drop_chain(chain.range);
                state.density.refuse(chain.range.seconds());
            }
            // The range of an audit was read before.
            Change::Abandoned { error, .. } if chain.why == Why::Audit => {
                state.drop_chain(chain.range);
                if error.context().unstorable {
                    // Without this count, every run would pay for it again.
                    state.audits.count(self.now.as_second(), true);
                }
            }
            Change::Abandoned { error, at } => {
                let is_service = error.kind() != Kind::BookmarkError;
                state.give_up(chain, is_service.then(|| (at.as_second(), error.kind())));
            }
            Change::Audited { settled } => {
                if let Some(coverage) = settled {
                    state.coverage = coverage.clone();
                }
            }
        }
        state
    }

    pub(super) fn write(&mut self, feed: usize, chain: UnfinishedChain, change: Change) {
        self.pending.push_back(PendingWrite { feed, chain, change });
    }

    pub(super) fn writes(&self, feed: usize) -> bool {
        self.pending.iter().any(|write| write.feed == feed)
    }

    /// Notes that the target has stored this write with this state. Without counts from the target,
    /// all points of a page count as new.
    pub(super) fn applied(
        &mut self,
        write: &PendingWrite,
        state: FeedState,
        applied: Option<Applied>,
    ) {
        let feed = write.feed;
        let before = std::mem::replace(&mut self.parts[feed].state, state);
        if let Change::Abandoned { error, .. } = &write.change {
            self.skip(feed, write.chain.range, error.clone());
        }
        if let Change::Abandoned { .. } | Change::TooLong = &write.change {
            // The earlier findings of the audit do not apply to the next one.
            self.parts[feed].found = AuditCounts::default();
        }
        self.count(write, &before, applied);
        self.replan(feed);
        // A chain that runs without others keeps the reserve that was computed at its beginning.
        if self.under_way.keys().any(|other| *other != feed) {
            self.hold_back();
        }
    }

    /// Adds the counts of pages that the target stored later than the run counted them.
    pub(super) fn add_counts(&mut self, feed: &str, applied: Applied) {
        let part = self.parts.iter_mut().find(|part| part.state.feed().name() == feed);
        if let Some(part) = part {
            part.counts.applied = part.counts.applied.plus(applied);
        }
    }

    fn count(&mut self, write: &PendingWrite, before: &FeedState, applied: Option<Applied>) {
        let PendingWrite { feed, chain, change: Change::Page { page, begun_here, .. } } = write
        else {
            return;
        };
        let part = &mut self.parts[*feed];
        part.counts.pages += 1;
        self.read.pages += 1;
        let rows = page.rows() as u64;
        let counted = applied.unwrap_or(Applied { inserted: rows, ..Applied::default() });
        part.counts.applied = part.counts.applied.plus(counted);
        if page.is_last {
            part.counts.chains += 1;
            // The next plan decides whether a range that an earlier run began must be read again. A
            // range that was requested explicitly was read again, unless that chain is as good.
            if (*begun_here || part.only.is_some()) && chain.why != Why::Audit {
                part.done.add(chain.range);
            }
            let settles = chain
                .began
                .is_some_and(|began| chain.range.end <= part.state.feed().settled_before(began));
            if !settles {
                self.oldest = self.oldest.into_iter().chain(chain.began).min();
            }
        }
        let times = &page.points.timestamps;
        self.newest = self.newest.max(times.values().iter().max().copied());
        self.read.points_read += rows;
        self.read.quality.merge(&page.report);
        if chain.why == Why::Audit {
            part.found.counts = part.found.counts.plus(counted);
            part.found.is_guess |= applied.is_none();
            if before.audits_settled(chain) {
                part.counts.late = part.counts.late.saturating_add(counted.changed());
            }
            if page.is_last {
                self.audited(*feed, chain, before, *begun_here);
            }
        }
    }

    /// Notes the changes that an audit found. A settled range without changes stays settled. If
    /// another run began the audit, the changes on its first pages are unknown.
    fn audited(
        &mut self,
        feed: usize,
        chain: &UnfinishedChain,
        before: &FeedState,
        begun_here: bool,
    ) {
        let part = &mut self.parts[feed];
        let found = std::mem::take(&mut part.found);
        let (changed, audits_settled) = (found.counts.changed(), before.audits_settled(chain));
        let began = chain.began.filter(|_| begun_here && !found.is_guess);
        if let Some(began) = began {
            let counts = (found.counts.inserted, found.counts.revised);
            let findings = &mut part.state.audits.findings;
            findings.add((chain.range, began), &before.coverage, chain.points, counts);
        }
        if audits_settled && changed > 0 {
            let (start, end) = chain.range.instants();
            let lateness = spelled(part.state.feed().input().lateness);
            let text = format!(
                "{changed} points from {start} to {end} arrived or changed after the lateness of \
                 {lateness}: their window is read again. See store.lateness()"
            );
            self.warnings.push((feed, text));
        }
        let settled = (audits_settled && changed == 0 && begun_here).then(|| {
            let mut state = before.clone();
            state.cover(chain, 0);
            state.coverage
        });
        if began.is_some() || settled.is_some() {
            self.write(feed, chain.clone(), Change::Audited { settled });
        }
    }

    /// Whether the run may request another page while this number of requests is in flight.
    pub(super) fn may_ask(&self, under_way: usize) -> bool {
        self.max_pages.is_none_or(|most| self.answered.saturating_add(under_way as u64) < most)
    }

    /// The number of pages that the run may still apply.
    pub(super) fn still_allowed(&self) -> u64 {
        let is_page = |write: &&PendingWrite| matches!(write.change, Change::Page { .. });
        let pending = self.pending.iter().filter(is_page).count() as u64;
        self.max_pages.map_or(u64::MAX, |most| most.saturating_sub(self.answered) + pending)
    }
}
