//! The state of a run between its pages, and its locks.

use std::any::Any;
use std::sync::Arc;

use super::super::pending_write::{Change, PendingWrite};
use super::super::report::EndedBy;
use super::super::run::Run;
use super::super::run_state::RunState;
use super::super::settings::SyncSettings;
use super::*;
use crate::auth::test_harness::warnings;
use crate::client::test_idle::idle_client;
use crate::error::{Error, Kind, Result};
use crate::fork::pretend;
use crate::store::{Applied, Delivery, Target};

fn run_of_state(state: FeedState, now: i64) -> RunState {
    RunState::new(vec![state], &SyncSettings::default(), instant(now)).expect("a run")
}

/// A chain of the first day that has read two pages.
fn begun(why: Why) -> UnfinishedChain {
    let bookmark = Some("bookmark".to_owned());
    UnfinishedChain {
        began: Some(SINCE + 9 * DAY),
        pages: 2,
        points: 5,
        bookmark,
        ..UnfinishedChain::new(day(0), why, 0)
    }
}

fn pending(chain: UnfinishedChain, is_last: bool, begun_here: bool) -> PendingWrite {
    let page = page(chain.pages, is_last, 0..3);
    let change = Change::Page { page, read_at: instant(SINCE), begun_here };
    PendingWrite { feed: 0, chain, change }
}

fn some_left() -> AllowanceState {
    allowance(Some(8), SINCE + 99 * DAY)
}

#[test]
fn only_resume_steps_continue_a_chain() {
    let mut state = state(|_| {});
    state.keep_chain(begun(Why::Backfill));
    let run = run_of_state(state, SINCE + 9 * DAY);
    let step = |why, range| PlanStep { feed: 0, why, range, pages: None, fills: false };
    assert_eq!(run.chain(&step(Why::Resume, day(0))), begun(Why::Backfill));
    let anew = |why, range| UnfinishedChain::new(range, why, 0);
    assert_eq!(run.chain(&step(Why::Settle, day(0))), anew(Why::Settle, day(0)));
    assert_eq!(run.chain(&step(Why::Backfill, day(1))), anew(Why::Backfill, day(1)));
}

#[test]
fn p13_an_abandoned_audit_sets_nothing_aside() {
    for (why, is_set_aside) in [(Why::Audit, false), (Why::Settle, true)] {
        let mut state = state(|_| {});
        state.keep_chain(begun(why));
        let run = run_of_state(state, SINCE + 9 * DAY);
        let error = Error::new(Kind::CursorRejected, "refused");
        let now = instant(SINCE + 9 * DAY);
        let change = Change::Abandoned { error, at: now };
        let after = run.after(&PendingWrite { feed: 0, chain: begun(why), change });
        assert_eq!(after.set_aside(now).len(), usize::from(is_set_aside), "{why}");
        assert_eq!(!after.begun().is_empty(), is_set_aside, "{why}: its range was read before");
        assert_eq!(after.unfinished_chains(), 0);
    }
}

#[test]
fn the_last_page_reports_the_chain_length() {
    let feed = feed(|_| {});
    let chain = UnfinishedChain { pages: 3, points: 9, ..begun(Why::Backfill) };
    let (start, end) = day(0).instants();
    let query = feed.query(start, end).expect("a query");
    assert_eq!(pending(chain.clone(), true, true).ended(&feed), Some((query, 3, 9, 3)));
    assert_eq!(pending(chain.clone(), false, true).ended(&feed), None);
    assert_eq!(PendingWrite { feed: 0, chain, change: Change::Restart }.ended(&feed), None);
}

/// A run of a feed with two settled days, and an audit of the first day.
struct Audit {
    run: RunState,
    pages: u64,
}

impl Audit {
    fn new() -> Self {
        let mut state = state(|input| input.audit_pages = 9);
        state.coverage.cover(days(0, 2), SINCE + 5 * DAY);
        assert!(warnings().is_empty());
        Self { run: run_of_state(state, SINCE + 9 * DAY), pages: 0 }
    }

    /// Applies the next page, which inserts, revises and flags these numbers of points.
    fn page(&mut self, changed: [u64; 3], is_last: bool, begun_here: bool) {
        self.pages += 1;
        let chain = UnfinishedChain { pages: self.pages, ..begun(Why::Audit) };
        let pending = pending(chain, is_last, begun_here);
        let state = self.run.after(&pending);
        let [inserted, revised, flagged] = changed;
        let applied = Applied { inserted, revised, flagged, unchanged: 1 };
        self.run.applied(&pending, state, Some(applied));
        self.pages *= u64::from(!is_last);
    }

    fn warnings(&mut self) -> Vec<String> {
        self.run.log_warnings();
        warnings()
    }

    fn settled(&self) -> Ranges {
        self.run.state(0).settled()
    }
}

#[test]
fn s21_late_points_are_counted_and_warned_once() {
    let mut audit = Audit::new();
    audit.page([1, 0, 2], false, true);
    assert_eq!((audit.warnings(), audit.run.pending.is_empty()), (vec![], true), "it continues");
    audit.page([1, 2, 1], true, true);
    let next = audit.run.pending.pop_front().expect("a write");
    assert!(matches!(next.change, Change::Audited { settled: None }));
    let warnings = audit.warnings();
    let [text] = &warnings[..] else { panic!("{warnings:?}") };
    let part = "feed: 7 points from 2024-10-04T00:00:00Z to 2024-10-05T00:00:00Z arrived or \
                changed after the lateness of 1d";
    assert!(text.starts_with(part), "{text}");
    assert_eq!(audit.run.reports()[0].late, 7);
    assert_eq!(audit.settled(), day(1).into(), "its window is read again");
    assert_eq!(audit.warnings(), Vec::<String>::new(), "once");
    audit.page([0, 1, 0], true, true);
    assert_eq!(audit.run.reports()[0].late, 7, "unsettled points are never late");
}

#[test]
fn s21_an_unchanged_audit_settles_its_range_again() {
    for begun_here in [true, false] {
        let mut audit = Audit::new();
        audit.page([0, 0, 0], false, begun_here);
        assert!(audit.run.pending.is_empty(), "it continues");
        audit.page([0, 0, 0], true, begun_here);
        assert_eq!(audit.warnings(), Vec::<String>::new());
        // The window is due until the next write.
        assert_eq!(audit.settled(), day(1).into());
        let next = audit.run.pending.pop_front();
        assert_eq!(next.is_some(), begun_here, "findings of an older run are unknown");
        if let Some(next) = next {
            let after = audit.run.after(&next);
            assert_eq!(after.settled(), days(0, 2).into());
        }
        assert_eq!(audit.run.reports()[0].late, 0);
    }
}

#[test]
fn s21_findings_do_not_carry_over() {
    let error = Error::new(Kind::CursorRejected, "refused");
    let abandoned = Change::Abandoned { error, at: instant(SINCE + 9 * DAY) };
    let next = UnfinishedChain { pages: 1, range: day(1), ..begun(Why::Audit) };
    for end in [Some(Change::TooLong), Some(abandoned), None] {
        let mut audit = Audit::new();
        audit.page([0, 2, 0], end.is_none(), true);
        if let Some(end) = end {
            let end = PendingWrite { feed: 0, chain: begun(Why::Audit), change: end };
            let state = audit.run.after(&end);
            audit.run.applied(&end, state, Some(Applied::default()));
        }
        audit.warnings();
        let pending = pending(next.clone(), true, true);
        let state = audit.run.after(&pending);
        audit.run.applied(&pending, state, Some(Applied::default()));
        assert_eq!(audit.warnings(), Vec::<String>::new());
        let last = audit.run.pending.back().expect("its range is settled again");
        assert!(matches!(last.change, Change::Audited { settled: Some(_) }));
    }
}

#[test]
fn s21_findings_need_counts_for_every_page() {
    let mut audit = Audit::new();
    audit.page([1, 0, 0], false, true);
    audit.page([0, 1, 0], true, true);
    assert!(!audit.run.state(0).audits.findings.is_empty());
    let unknown = |has_counts: [bool; 2], begun_here| {
        let mut audit = Audit::new();
        for (number, has_counts) in (1..).zip(has_counts) {
            let chain = UnfinishedChain { pages: number, ..begun(Why::Audit) };
            let pending = pending(chain, number == 2, begun_here);
            let state = audit.run.after(&pending);
            audit.run.applied(&pending, state, has_counts.then(Applied::default));
        }
        audit.run.state(0).audits.findings.is_empty()
    };
    assert!(!unknown([true, true], true));
    assert!(unknown([false, true], true) && unknown([true, false], true));
    assert!(unknown([true, true], false), "an older run began it");
}

#[test]
fn resumes_at_is_set_for_unread_ranges() {
    let clock = SINCE + 9 * DAY;
    let set_aside = |mut state: FeedState| {
        state.give_up(&begun(Why::Backfill), Some((clock - HOUR, Kind::EndlessChain)));
        state
    };
    let skip = |run: &mut RunState, range| {
        run.skip(0, range, Error::new(Kind::RequestRejected, "refused"));
    };
    let mut run = run_of_state(state(|_| {}), clock);
    assert_eq!(run.ended_by(&some_left()), (None, None));
    skip(&mut run, day(3));
    let put_off = (Some(EndedBy::Allowance), Some(some_left().resets_at));
    assert_eq!(run.ended_by(&some_left()), put_off);
    // A range that is set aside is retried after a day.
    let until = (Some(EndedBy::Skipped), Some(instant(clock - HOUR + DAY)));
    let mut run = run_of_state(set_aside(state(|_| {})), clock);
    assert_eq!(run.ended_by(&some_left()), until);
    skip(&mut run, day(0));
    assert_eq!(run.ended_by(&some_left()), until);
    skip(&mut run, day(3));
    assert_eq!(run.ended_by(&some_left()), put_off);
}

#[test]
fn p13_skipped_ranges_are_warned_of() {
    let clock = SINCE + 9 * DAY;
    let begin = |reread: Vec<Range>| {
        let mut state = state(|_| {});
        state.give_up(&begun(Why::Backfill), Some((clock, Kind::EndlessChain)));
        let reread = reread.into_iter().map(Range::instants).collect();
        let settings = SyncSettings { reread, ..SyncSettings::default() };
        assert!(warnings().is_empty());
        RunState::new(vec![state], &settings, instant(clock)).expect("a run").log_warnings();
        warnings()
    };
    let text = "feed: 2024-10-04T00:00:00Z to 2024-10-05T00:00:00Z is skipped until \
                2024-10-14T00:00:00Z (EndlessChain). Use reread= to read it earlier";
    assert_eq!(begin(vec![]), [text]);
    assert_eq!(begin(vec![Range::new(SINCE, SINCE + HOUR)]), [text], "only a part is requested");
    assert_eq!(begin(vec![day(0)]), Vec::<String>::new());
}

/// A target without states. Its locks are references to one object.
#[derive(Debug, Default)]
struct Locked(Arc<()>);

impl Locked {
    fn is_locked(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Target for Locked {
    fn lock(&self, _: &str) -> Result<Box<dyn Any + Send>> {
        Ok(Box::new(Arc::clone(&self.0)))
    }

    fn state(&self, _: &str) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn apply(&self, _: &str, _: Option<&Delivery>, _: &[u8]) -> Result<Applied> {
        Ok(Applied::default())
    }
}

fn locked_run() -> (Run, Arc<Locked>) {
    let target = Arc::new(Locked::default());
    let feeds = [feed(|_| {})];
    let run = Run::begin(&idle_client(), target.clone(), &feeds, SyncSettings::default());
    (run.expect("a run"), target)
}

#[test]
fn a_released_run_unlocks_its_feeds() {
    let (run, target) = locked_run();
    run.apply().expect("nothing is pending");
    assert!(target.is_locked());
    run.release();
    assert!(!target.is_locked());
    assert_eq!(run.apply().expect_err("released").kind(), Kind::ClosedError);
    let (run, target) = locked_run();
    drop(run);
    assert!(!target.is_locked());
}

#[test]
fn a_forked_child_cannot_use_the_run() {
    let (run, target) = locked_run();
    let child = pretend(1);
    let kind = |outcome: Result<()>| outcome.expect_err("a forked child").kind();
    assert_eq!(kind(run.check_process()), Kind::ForkError);
    assert_eq!(kind(run.apply().map(drop)), Kind::ForkError);
    assert_eq!(kind(run.keep()), Kind::ForkError);
    assert_eq!(kind(run.report().map(drop)), Kind::ForkError);
    run.release();
    assert!(target.is_locked());
    drop(child);
    run.check_process().expect("the parent process");
    run.apply().expect("nothing is pending");
    let child = pretend(2);
    drop(run);
    assert!(target.is_locked(), "dropped by the child");
    drop(child);
}
