//! What a run keeps in mind between its pages, and whose it is.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::pending_write::PendingWrite;
use super::super::report::EndedBy;
use super::super::run::Run;
use super::super::run_state::RunState;
use super::super::settings::SyncSettings;
use super::*;
use crate::client::test_idle::{idle_client, warnings};
use crate::data::report::PageReport;
use crate::data::{Identity, Page, TableBuilder};
use crate::error::{Error, Kind, Result};
use crate::fork::pretend;
use crate::http::AllowanceState;
use crate::store::{Applied, Delivery, Target};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a timestamp")
}

fn run_of_state(state: FeedState, now: i64) -> RunState {
    RunState::new(vec![state], &SyncSettings::default(), at(now)).expect("a run")
}

fn day(number: i64) -> Range {
    Range::new(SINCE + number * DAY, SINCE + (number + 1) * DAY)
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

fn page(sequence: u64, is_last: bool, rows: usize) -> Page {
    let mut table = TableBuilder::new(rows);
    for row in 0..rows {
        let minute = SINCE + i64::try_from(row).expect("small") * MINUTE;
        table.push(minute * 1_000_000, [Some(1.0), None, None], None);
    }
    table.series(&Identity::from([Some(Arc::from("S")), None, None, None, None]));
    let points = Arc::new(table.finish().expect("points"));
    Page { points, report: PageReport::default(), sequence, raw: None, bookmark: None, is_last }
}

/// A page of this chain as the pending write.
fn pending(chain: UnfinishedChain, is_last: bool, begun_here: bool) -> PendingWrite {
    let page = Arc::new(page(chain.pages, is_last, 3));
    PendingWrite::Page { feed: 0, page, read_at: at(SINCE), chain, begun_here }
}

fn allowance() -> AllowanceState {
    AllowanceState {
        token_requests: 0,
        token_requests_this_hour: 0,
        used: 1,
        limit: Some(9),
        left: Some(8),
        resets_at: at(SINCE + 99 * DAY),
    }
}

#[test]
fn a_step_continues_the_chain_of_its_range_only_if_it_resumes_it() {
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
fn p13_an_audit_that_is_given_up_sets_nothing_aside() {
    for (why, is_set_aside) in [(Why::Audit, false), (Why::Settle, true)] {
        let mut state = state(|_| {});
        state.keep_chain(begun(why));
        let run = run_of_state(state, SINCE + 9 * DAY);
        let error = Error::new(Kind::CursorRejected, "refused");
        let now = at(SINCE + 9 * DAY);
        let after =
            run.after(&PendingWrite::Abandoned { feed: 0, chain: begun(why), error, at: now });
        assert_eq!(after.set_aside(now).len(), usize::from(is_set_aside), "{why}");
        assert_eq!(!after.begun().is_empty(), is_set_aside, "{why}: its range was read before");
        assert_eq!(after.unfinished_chains(), 0);
    }
}

#[test]
fn the_last_page_of_a_chain_says_how_many_its_query_took() {
    let feed = feed(|_| {});
    let chain = UnfinishedChain { pages: 3, points: 9, ..begun(Why::Backfill) };
    let (start, end) = day(0).instants();
    let query = feed.query(start, end).expect("a query");
    assert_eq!(pending(chain.clone(), true, true).ended(&feed), Some((query, 3, 9, 3)));
    assert_eq!(pending(chain.clone(), false, true).ended(&feed), None);
    assert_eq!(PendingWrite::Restart { feed: 0, chain }.ended(&feed), None);
}

/// A run of a feed whose first two days are settled, as what its audit of the first day brings.
struct Audit {
    run: RunState,
    pages: u64,
}

impl Audit {
    fn new() -> Self {
        let mut state = state(|input| input.audit_pages = 9);
        state.coverage.cover(Range::new(SINCE, SINCE + 2 * DAY), SINCE + 5 * DAY);
        assert!(warnings().is_empty());
        Self { run: run_of_state(state, SINCE + 9 * DAY), pages: 0 }
    }

    /// The next page, which inserts, revises and flags so many points.
    fn page(&mut self, changed: [u64; 3], is_last: bool, begun_here: bool) {
        self.pages += 1;
        let chain = UnfinishedChain { pages: self.pages, ..begun(Why::Audit) };
        let pending = pending(chain, is_last, begun_here);
        let state = self.run.after(&pending);
        let [inserted, revised, flagged] = changed;
        let applied = Applied { inserted, revised, flagged, unchanged: 1 };
        self.run.applied(&pending, state, Some(applied));
        if is_last {
            self.pages = 0;
        }
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
fn s21_what_an_audit_finds_late_is_counted_over_its_pages_and_warned_of_once() {
    let mut audit = Audit::new();
    audit.page([1, 0, 2], false, true);
    assert_eq!((audit.warnings(), audit.run.pending.is_empty()), (vec![], true), "it goes on");
    audit.page([1, 2, 1], true, true);
    let next = audit.run.pending.pop_front().expect("what it found is written");
    assert!(matches!(*next, PendingWrite::Audited { feed: 0, settled: None }));
    let warnings = audit.warnings();
    let [text] = &warnings[..] else { panic!("{warnings:?}") };
    let part = "feed: 7 points of 2024-10-04T00:00:00Z to 2024-10-05T00:00:00Z came or changed after \
                the lateness of 1d";
    assert!(text.starts_with(part), "{text}");
    assert_eq!(audit.run.reports()[0].late, 7);
    assert_eq!(audit.settled(), day(1).into(), "its window is read again");
    assert_eq!(audit.warnings(), Vec::<String>::new(), "once");
    audit.page([0, 1, 0], true, true);
    assert_eq!(audit.run.reports()[0].late, 7, "nothing is late of what is not settled");
}

#[test]
fn s21_what_an_audit_leaves_unchanged_is_settled_again_unless_an_older_run_began_it() {
    for begun_here in [true, false] {
        let mut audit = Audit::new();
        audit.page([0, 0, 0], false, begun_here);
        assert!(audit.run.pending.is_empty(), "it goes on");
        audit.page([0, 0, 0], true, begun_here);
        assert_eq!(audit.warnings(), Vec::<String>::new());
        // Until the next write its window is due.
        assert_eq!(audit.settled(), day(1).into());
        let next = audit.run.pending.pop_front();
        assert_eq!(next.is_some(), begun_here, "what an older run found is not known");
        if let Some(next) = next {
            let after = audit.run.after(&next);
            assert_eq!(after.settled(), Range::new(SINCE, SINCE + 2 * DAY).into());
        }
        assert_eq!(audit.run.reports()[0].late, 0);
    }
}

#[test]
fn s21_an_audit_that_finds_something_leaves_nothing_to_the_next_one() {
    let mut audit = Audit::new();
    let first = Range::new(SINCE + DAY, SINCE + 2 * DAY);
    audit.page([4, 0, 0], true, true);
    audit.warnings();
    let chain = UnfinishedChain { pages: 1, ..begun(Why::Audit) };
    let chain = UnfinishedChain { start: first.start, end: first.end, ..chain };
    let pending = pending(chain, true, true);
    let state = audit.run.after(&pending);
    audit.run.applied(&pending, state, Some(Applied::default()));
    assert_eq!(audit.warnings(), Vec::<String>::new());
    let last = audit.run.pending.back().expect("its range is settled again");
    assert!(matches!(**last, PendingWrite::Audited { settled: Some(_), .. }));
}

#[test]
fn s21_what_an_audit_found_that_was_given_up_is_not_of_the_next_one() {
    for is_too_long in [false, true] {
        let mut audit = Audit::new();
        audit.page([0, 2, 0], false, true);
        let (chain, at) = (begun(Why::Audit), at(SINCE + 9 * DAY));
        let error = Error::new(Kind::CursorRejected, "refused");
        let range = chain.range();
        let given_up = if is_too_long {
            PendingWrite::TooLong { feed: 0, range }
        } else {
            PendingWrite::Abandoned { feed: 0, chain, error, at }
        };
        audit.run.write(given_up);
        let given_up = Arc::clone(audit.run.pending.front().expect("it was added"));
        let state = audit.run.after(&given_up);
        audit.run.applied(&given_up, state, Some(Applied::default()));
        audit.warnings();
        audit.pages = 0;
        audit.page([0, 0, 0], true, true);
        assert_eq!(audit.warnings(), Vec::<String>::new());
        let last = audit.run.pending.back().expect("its range is settled again");
        assert!(matches!(**last, PendingWrite::Audited { settled: Some(_), .. }));
    }
}

#[test]
fn s21_a_state_has_what_audits_found_where_the_target_said_it_of_each_page() {
    let mut audit = Audit::new();
    audit.page([1, 0, 0], false, true);
    audit.page([0, 1, 0], true, true);
    assert!(!audit.run.state(0).audits.findings.is_empty());
    let unknown = |told: [bool; 2], begun_here| {
        let mut audit = Audit::new();
        for (number, told) in (1..).zip(told) {
            let chain = UnfinishedChain { pages: number, ..begun(Why::Audit) };
            let pending = pending(chain, number == 2, begun_here);
            let state = audit.run.after(&pending);
            audit.run.applied(&pending, state, told.then(Applied::default));
        }
        audit.run.state(0).audits.findings.is_empty()
    };
    assert!(!unknown([true, true], true));
    assert!(unknown([false, true], true) && unknown([true, false], true));
    assert!(unknown([true, true], false), "an older run began it");
}

#[test]
fn a_run_says_when_to_sync_again_only_if_it_left_something() {
    let clock = SINCE + 9 * DAY;
    let set_aside = |mut state: FeedState| {
        state.give_up(&begun(Why::Backfill), Some((clock - HOUR, Kind::EndlessChain)));
        state
    };
    let skip = |run: &mut RunState, range| {
        run.skip(0, range, Error::new(Kind::RequestRejected, "refused"));
    };
    let mut run = run_of_state(state(|_| {}), clock);
    assert_eq!(run.ended_by(&allowance()), (None, None));
    skip(&mut run, day(3));
    let put_off = (Some(EndedBy::Allowance), Some(allowance().resets_at));
    assert_eq!(run.ended_by(&allowance()), put_off);
    // What is set aside is tried again after its day.
    let until = (Some(EndedBy::Skipped), Some(at(clock - HOUR + DAY)));
    let mut run = run_of_state(set_aside(state(|_| {})), clock);
    assert_eq!(run.ended_by(&allowance()), until);
    skip(&mut run, day(0));
    assert_eq!(run.ended_by(&allowance()), until);
    skip(&mut run, day(3));
    assert_eq!(run.ended_by(&allowance()), put_off);
}

/// A run that may ask for so many pages.
fn bounded(state: FeedState, pages: u64) -> RunState {
    let settings = SyncSettings { max_pages: Some(pages), ..SyncSettings::default() };
    RunState::new(vec![state], &settings, at(SINCE + 9 * DAY)).expect("a run")
}

#[test]
fn a_run_may_ask_for_so_many_pages_answered_and_under_way_together() {
    let mut run = bounded(state(|_| {}), 3);
    assert!(run.may_ask(0) && run.may_ask(2) && !run.may_ask(3));
    run.answered = 2;
    assert!(run.may_ask(0) && !run.may_ask(1));
    run.answered = 3;
    assert!(!run.may_ask(0));
    assert!(run_of_state(state(|_| {}), SINCE).may_ask(usize::MAX), "without a limit");
}

#[test]
fn a_run_that_may_ask_for_no_other_page_says_so_if_it_could_go_on_at_once() {
    let mut run = bounded(state(|_| {}), 3);
    run.answered = 2;
    assert_eq!(run.ended_by(&allowance()), (None, None));
    run.answered = 3;
    assert_eq!(run.ended_by(&allowance()), (Some(EndedBy::MaxPages), None));
    // Another run could read nothing before the allowance is reset.
    let none_left = AllowanceState { left: Some(0), ..allowance() };
    let reserved = (Some(EndedBy::Allowance), Some(allowance().resets_at));
    assert_eq!(run.ended_by(&none_left), reserved);
    run.stopped = Some(at(SINCE + 10 * DAY));
    let spent = (Some(EndedBy::Allowance), Some(at(SINCE + 10 * DAY)));
    assert_eq!(run.ended_by(&allowance()), spent);
    // What is left is reserved, or set aside, and would be without the limit.
    let mut run = bounded(state(|_| {}), 3);
    run.answered = 3;
    run.skip(0, Range::new(SINCE, SINCE + 9 * DAY), Error::new(Kind::RequestRejected, "refused"));
    assert_eq!(run.ended_by(&allowance()), reserved);
}

#[test]
fn what_a_bounded_run_expects_is_no_more_than_it_may_ask_for() {
    let mut run = bounded(state(|_| {}), 3);
    assert_eq!(run.still_allowed(), 3);
    run.answered = 1;
    run.write(pending(begun(Why::Backfill), false, true));
    assert_eq!(run.still_allowed(), 3, "the page that is not yet applied is one of them");
    run.pending.clear();
    assert_eq!(run.still_allowed(), 2);
    assert!(!run.left().1, "it is not over");
    run.answered = 3;
    assert_eq!((run.still_allowed(), run.left().1), (0, true));
    assert_eq!(run_of_state(state(|_| {}), SINCE).still_allowed(), u64::MAX);
}

#[test]
fn p13_a_run_warns_of_what_it_leaves_aside_unless_it_is_asked_for() {
    let clock = SINCE + 9 * DAY;
    let begin = |reread: Vec<Range>| {
        let mut state = state(|_| {});
        state.give_up(&begun(Why::Backfill), Some((clock, Kind::EndlessChain)));
        let reread = reread.into_iter().map(Range::instants).collect();
        let settings = SyncSettings { reread, ..SyncSettings::default() };
        assert!(warnings().is_empty());
        RunState::new(vec![state], &settings, at(clock)).expect("a run").log_warnings();
        warnings()
    };
    let text = "feed: 2024-10-04T00:00:00Z to 2024-10-05T00:00:00Z is skipped until \
                2024-10-14T00:00:00Z (EndlessChain); reread= tries it before";
    assert_eq!(begin(vec![]), [text]);
    assert_eq!(begin(vec![Range::new(SINCE, SINCE + HOUR)]), [text], "only a part is asked for");
    assert_eq!(begin(vec![day(0)]), Vec::<String>::new());
}

/// A target of nothing, with one lock.
#[derive(Debug, Default)]
struct Locked(Arc<AtomicBool>);

struct Unlock(Arc<AtomicBool>);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Target for Locked {
    fn lock(&self, _: &str) -> Result<Box<dyn Any + Send>> {
        if self.0.swap(true, Ordering::SeqCst) {
            return Err(Error::new(Kind::StoreBusy, "locked"));
        }
        Ok(Box::new(Unlock(Arc::clone(&self.0))))
    }

    fn state(&self, _: &str) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn apply(&self, _: &str, _: Option<&Delivery>, _: &[u8]) -> Result<Applied> {
        Ok(Applied::default())
    }
}

/// A run of one feed, and whether the feed is locked.
fn locked_run() -> (Run, Arc<AtomicBool>) {
    let target = Arc::new(Locked::default());
    let is_locked = Arc::clone(&target.0);
    let run = Run::begin(&idle_client(), target, &[feed(|_| {})], SyncSettings::default());
    (run.expect("a run"), is_locked)
}

#[test]
fn a_run_that_is_over_has_unlocked_its_feeds_and_applies_nothing() {
    let (run, is_locked) = locked_run();
    run.apply().expect("nothing is pending");
    assert!(is_locked.load(Ordering::SeqCst));
    run.release();
    assert!(!is_locked.load(Ordering::SeqCst));
    assert_eq!(run.apply().expect_err("it is over").kind(), Kind::ClosedError);
    let (run, is_locked) = locked_run();
    drop(run);
    assert!(!is_locked.load(Ordering::SeqCst));
}

#[test]
fn a_forked_child_neither_continues_the_run_of_its_parent_nor_unlocks_its_feeds() {
    let (run, is_locked) = locked_run();
    let child = pretend(1);
    let kind = |outcome: Result<()>| outcome.expect_err("it is the parent's").kind();
    assert_eq!(kind(run.check_process()), Kind::ForkError);
    assert_eq!(kind(run.apply().map(drop)), Kind::ForkError);
    assert_eq!(kind(run.keep()), Kind::ForkError);
    assert_eq!(kind(run.report().map(drop)), Kind::ForkError);
    run.release();
    assert!(is_locked.load(Ordering::SeqCst));
    drop(child);
    run.check_process().expect("the parent goes on");
    run.apply().expect("nothing is pending");
    let child = pretend(2);
    drop(run);
    assert!(is_locked.load(Ordering::SeqCst), "the child ends before its parent");
    drop(child);
}
