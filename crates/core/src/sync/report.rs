//! The report of a run.

use jiff::Timestamp;
use serde::Serialize;

use super::given_up::SkippedRange;
use super::run_state::{FeedRun, RunState};
use super::task::Task;
use crate::http::AllowanceState;
use crate::store::Applied;

#[derive(Debug, Clone, Serialize)]
pub struct SyncReport {
    /// In the order of the arguments.
    pub feeds: Vec<FeedReport>,
    /// Includes retries.
    pub requests: u64,
    /// Whether all planned chains were read.
    pub complete: bool,
    /// Why the run ended before all planned chains were read.
    pub ended_by: Option<EndedBy>,
    /// When to sync again, if the allowance ended the run or ranges were skipped.
    pub resumes_at: Option<Timestamp>,
    /// The chains that are left to read.
    pub tasks: Vec<Task>,
    pub allowance: AllowanceState,
    pub now: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The allowance is used up, or the rest of it is reserved.
    Allowance,
    /// The run reached its page limit. Another run can continue immediately.
    MaxPages,
    /// The run skipped everything that is left.
    Skipped,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FeedReport {
    pub name: String,
    /// Chains that were read to their end.
    pub chains: u64,
    pub pages: u64,
    #[serde(flatten)]
    pub applied: Applied,
    /// Points that arrived or changed after the lateness, as found by audits.
    pub late: u64,
    /// The sequence number of the newest page, for `changes(since=)` and `as_of()`.
    pub sequence: u64,
    pub settled_through: Option<Timestamp>,
    pub read_through: Option<Timestamp>,
    pub newest: Option<Timestamp>,
    /// Ranges that are skipped for a day because the service did not end their chain.
    pub skipped: Vec<SkippedRange>,
}

impl RunState {
    /// Why the run ended before everything was read, and when to sync again. A run that reached its
    /// page limit can continue immediately.
    pub(super) fn ended_by(
        &self,
        allowance: &AllowanceState,
    ) -> (Option<EndedBy>, Option<Timestamp>) {
        let clock = self.clock.as_second();
        let is_put_off =
            |part: &FeedRun| !part.put_off.without(&part.state.given_up.ranges(clock)).is_empty();
        let held_back = self.no_fill || self.parts.iter().any(is_put_off);
        let set_aside = self.parts.iter().flat_map(|part| part.state.set_aside(self.clock));
        let set_aside = set_aside.map(|one| one.until).min();
        let is_bounded = !self.may_ask(0) && self.could_go_on();
        if is_bounded && allowance.left != Some(0) {
            return (Some(EndedBy::MaxPages), None);
        }
        let is_spent = is_bounded || held_back;
        match self.stopped.or(is_spent.then_some(allowance.resets_at)) {
            Some(resets_at) => (Some(EndedBy::Allowance), Some(resets_at)),
            None => (set_aside.map(|_| EndedBy::Skipped), set_aside),
        }
    }

    /// The ranges that this run skips because they are set aside, each with its feed.
    pub(super) fn left_out(&self) -> impl Iterator<Item = (usize, SkippedRange)> {
        let set_aside = self.parts.iter().enumerate().flat_map(|(feed, part)| {
            part.state.set_aside(self.clock).into_iter().map(move |one| (feed, one))
        });
        set_aside.filter(|(_, one)| !self.reread.contains(one.range()))
    }

    pub(super) fn log_warnings(&mut self) {
        for (feed, text) in std::mem::take(&mut self.warnings) {
            let name = self.state(feed).feed().name();
            log::warn!(target: "siteline::sync", feed = name; "{name}: {text}");
        }
    }

    pub(super) fn reports(&self) -> Vec<FeedReport> {
        let report = |part: &FeedRun| FeedReport {
            name: part.state.feed().name().to_owned(),
            sequence: part.state.sequence(),
            settled_through: part.state.settled_through(),
            read_through: part.state.read_through(),
            newest: part.state.newest(),
            skipped: part.state.set_aside(self.clock),
            ..part.counts.clone()
        };
        self.parts.iter().map(report).collect()
    }
}
