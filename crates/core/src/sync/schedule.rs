//! Decides what a run reads next.
//!
//! Chains of several feeds are read concurrently, one per feed, because the next step of a feed
//! depends on its last chain. Chains begin in the order of the plan, class by class: a chain begins
//! only if no chain of a more urgent class is waiting or in progress. If the allowance runs out, it
//! was spent on the most urgent chains.

use std::sync::Arc;

use jiff::Timestamp;

use super::pending_write::{Change, PendingWrite};
use super::plan::{PlanStep, PlanTerms, reserve_after, reserve_of, steps, steps_of};
use super::run_state::RunState;
use super::task::{Task, Why};
use super::under_way::UnderWay;
use super::unfinished::UnfinishedChain;
use crate::client::Spending;
use crate::data::Chain;
use crate::error::Result;
use crate::http::AllowanceState;

/// A run stops reading a feed after this many failures. Its other ranges probably fail too.
const MOST_FAILURES: usize = 3;

/// The rest of a feed, with its current chain, and its pages of the reserve.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FeedPlan {
    /// The next step. The feed is planned again after it.
    first: Option<PlanStep>,
    /// The expected pages of all steps; `None` if one of them has no estimate.
    pages: Option<u64>,
    /// The pages of the steps that do not fill; one page without an estimate.
    urgent: u64,
    reserved: u64,
    /// The pages that the current chain will add to the reserve.
    coming: u64,
}

/// `None` if one of the pages is unknown.
fn sum(mut pages: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    pages.try_fold(0, |sum: u64, pages| Some(sum.saturating_add(pages?)))
}

impl RunState {
    pub(super) fn terms(&self, clock: Option<i64>) -> PlanTerms<'_> {
        PlanTerms { now: self.now.as_second(), until: self.until, reread: &self.reread, clock }
    }

    /// Plans a feed again when its plan is next needed.
    pub(super) fn replan(&mut self, feed: usize) {
        self.parts[feed].plan.take();
    }

    fn plan(&self, feed: usize) -> &FeedPlan {
        self.parts[feed].plan.get_or_init(|| self.planned(feed))
    }

    fn plans(&self) -> impl Iterator<Item = &FeedPlan> {
        (0..self.parts.len()).map(|feed| self.plan(feed))
    }

    fn planned(&self, feed: usize) -> FeedPlan {
        let mut steps = self.open_steps(feed);
        let current = self.under_way.get(&feed).map(|chain| chain.step);
        let is_current = |step: &PlanStep| current.is_some_and(|one| one.range == step.range);
        let rest = steps.iter().filter(|step| !is_current(step));
        let first = rest.min_by_key(|step| (step.why, step.range.start)).copied();
        if !steps.iter().any(is_current) {
            steps.extend(current);
        }
        let urgent = steps.iter().filter(|step| !step.fills);
        let urgent = sum(urgent.map(|step| Some(step.pages.unwrap_or(1))));
        let (state, now) = (self.state(feed), self.now.as_second());
        let reserve = |resets_at| {
            let reserved = reserve_of(state, &state.coverage, now, resets_at);
            let filling = current.filter(|step| step.fills);
            let then = filling.map(|step| reserve_after(state, step.range, now, resets_at));
            (reserved, then.map_or(0, |then| then.saturating_sub(reserved)))
        };
        let (reserved, coming) = self.resets_at.map_or((0, 0), reserve);
        let pages = sum(steps.iter().map(|step| step.pages));
        FeedPlan { first, pages, urgent: urgent.unwrap_or(u64::MAX), reserved, coming }
    }

    fn open_steps(&self, feed: usize) -> Vec<PlanStep> {
        let part = &self.parts[feed];
        let has_failed = part.only.is_some() && self.failure.is_some();
        if self.stopped.is_some() || part.failures >= MOST_FAILURES || has_failed {
            return Vec::new();
        }
        let mut open = steps_of(feed, part, &self.terms(Some(self.clock.as_second())));
        open.retain(|step| !(step.fills && self.no_fill));
        open
    }

    /// Whether only the page limit stops this run from reading more.
    pub(super) fn could_go_on(&self) -> bool {
        let steps = (0..self.parts.len()).flat_map(|feed| self.open_steps(feed));
        // Audits do not count as unread.
        steps.into_iter().any(|step| step.why != Why::Audit)
    }

    pub(super) fn replan_all(&mut self) {
        (0..self.parts.len()).for_each(|feed| self.replan(feed));
    }

    /// Sets the service's time and the planning time. Updates the plans that depend on them.
    pub(super) fn set_times(&mut self, clock: Timestamp, now: Timestamp) {
        let (before, after) = (self.clock.as_second(), clock.as_second());
        self.clock = clock;
        if now != self.now {
            self.now = now;
            return self.replan_all();
        }
        for feed in 0..self.parts.len() {
            let given_up = &self.parts[feed].state.given_up;
            if given_up.ranges(before) != given_up.ranges(after) {
                self.replan(feed);
            }
        }
    }

    /// The next chain to begin; `None` if another chain must end first. A chain that fills must
    /// leave the pages of all urgent chains and the reserve. Retries of an urgent chain must leave
    /// the reserve.
    pub(super) fn next(
        &mut self,
        allowance: impl FnOnce() -> Result<AllowanceState>,
    ) -> Result<Option<PlanStep>> {
        let Some(step) = self.may_begin() else { return Ok(None) };
        self.set_reset(&allowance()?);
        Ok(Some(step))
    }

    /// Begins the chain of a step.
    pub(super) fn begin(&mut self, step: PlanStep, chain: Chain, record: UnfinishedChain) {
        let pause = Arc::clone(&self.pause);
        let feed = Some(self.state(step.feed).feed().name().into());
        let spending = Spending { pause, feed, ..Spending::default() };
        self.under_way.insert(step.feed, UnderWay::new(step, chain, record, spending));
        self.replan(step.feed);
        self.hold_back();
    }

    fn may_begin(&self) -> Option<PlanStep> {
        let steps = || self.plans().filter_map(|plan| plan.first);
        let class = steps().map(|step| step.why).min()?;
        // These writes give the feed another chain of the same class.
        let begins_again =
            |write: &PendingWrite| matches!(write.change, Change::Restart | Change::TooLong);
        let begins_again = self.pending.iter().any(begins_again);
        if begins_again || self.under_way.values().any(|other| other.step.why < class) {
            return None;
        }
        let is_urgent = self.under_way.values().any(|other| !other.step.fills);
        let is_busy =
            |step: &PlanStep| self.writes(step.feed) || self.under_way.contains_key(&step.feed);
        let is_free = |step: &PlanStep| !(is_busy(step) || is_urgent && step.fills);
        let next = steps().filter(|step| step.why == class && is_free(step));
        next.min_by_key(|step| (step.range.start, step.feed))
    }

    /// Notes that the chain of a feed has ended, or is not continued. If its last page is a pending
    /// write, the feed is planned again after that write.
    pub(super) fn chain_over(&mut self, feed: usize) -> Option<UnderWay> {
        let over = self.under_way.remove(&feed);
        self.requests += over.as_ref().map_or(0, UnderWay::requests);
        if !self.writes(feed) {
            self.replan(feed);
        }
        self.hold_back();
        over
    }

    /// Includes retries.
    pub(super) fn requests(&self) -> u64 {
        self.requests + self.under_way.values().map(UnderWay::requests).sum::<u64>()
    }

    /// The expected pages of the rest, if all chains have an estimate; and whether the run is over.
    /// The last page of a chain counts until it is applied.
    pub(super) fn expected_pages(&self) -> (Option<u64>, bool) {
        let pages = sum(self.plans().map(|plan| plan.pages));
        let pages = pages.map(|pages| pages.min(self.still_allowed()));
        let is_read = self.is_planned_out() && self.under_way.is_empty();
        (pages, self.pending.is_empty() && (is_read || !self.may_ask(0)))
    }

    pub(super) fn is_planned_out(&self) -> bool {
        self.plans().all(|plan| plan.first.is_none())
    }

    pub(super) fn urgent_pages(&self) -> u64 {
        self.plans().fold(0, |sum, plan| sum.saturating_add(plan.urgent))
    }

    /// The pages of the reserve, and the pages that the current chains add to it.
    pub(super) fn reserve(&self) -> (u64, u64) {
        let add = |(reserved, coming): (u64, u64), plan: &FeedPlan| {
            (reserved.saturating_add(plan.reserved), coming.saturating_add(plan.coming))
        };
        self.plans().fold((0, 0), add)
    }

    /// The chains that are left to read, including those that this run may not read.
    pub(super) fn tasks(&self) -> Vec<Task> {
        let rest = steps(&self.parts, &self.terms(None)).into_iter();
        let rest = rest.filter(|step| step.why != Why::Audit);
        rest.map(|step| step.task(self.state(step.feed))).collect()
    }

    /// Sets the pages that each current chain must leave. A chain must leave the pages that the
    /// concurrent chains still need, and the pages that they add to the reserve after filling a
    /// window that becomes due before the allowance resets. Concurrent chains cannot know these
    /// numbers when they begin.
    pub(super) fn hold_back(&self) {
        let (urgent, (reserved, coming)) = (self.urgent_pages(), self.reserve());
        for (feed, chain) in &self.under_way {
            let of_others = coming.saturating_sub(self.plan(*feed).coming);
            let reserve = reserved.saturating_add(of_others);
            let keep = if chain.step.fills { reserve.saturating_add(urgent) } else { 0 };
            chain.spending.hold_back(keep, reserve.max(keep));
        }
    }

    /// The reserve covers windows that become due before the allowance resets.
    pub(super) fn set_reset(&mut self, allowance: &AllowanceState) {
        let resets_at = allowance.left.map(|_| allowance.resets_at.as_second());
        if self.resets_at != resets_at {
            self.resets_at = resets_at;
            self.replan_all();
        }
    }
}
