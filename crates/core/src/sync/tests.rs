//! Tests of planning and running against a simulated service that always answers.

mod coverage;
mod feeds;
mod forgetting;
mod lateness;
mod planning;
mod running;
mod schedule;
mod shares;
mod simulation;
mod states;
mod stored;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::feed::{Feed, FeedInput};
use super::plan::{PlanStep, PlanTerms, steps};
use super::run_state::FeedRun;
use super::state::FeedState;
use super::task::Why;
use super::unfinished::UnfinishedChain;
use crate::data::ranges::{Range, Ranges, instant};
use crate::data::report::PageReport;
use crate::data::{Identity, Page, TableBuilder};
use crate::http::AllowanceState;
use crate::http::test_server::assert_error;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The midnight at which these feeds begin.
const SINCE: i64 = 20_000 * DAY;

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.unsigned_abs())
}

/// The range between two days after the feeds' beginning.
fn days(from: i64, to: i64) -> Range {
    Range::new(SINCE + from * DAY, SINCE + to * DAY)
}

fn day(number: i64) -> Range {
    days(number, number + 1)
}

fn hours(from: i64, to: i64) -> Range {
    Range::new(SINCE + from * HOUR, SINCE + to * HOUR)
}

fn allowance(left: Option<u64>, resets_at: i64) -> AllowanceState {
    AllowanceState {
        token_requests: 0,
        token_requests_this_hour: 0,
        used: 0,
        limit: left,
        left,
        resets_at: instant(resets_at),
    }
}

fn page(sequence: u64, is_last: bool, minutes: std::ops::Range<i64>) -> Arc<Page> {
    let mut table = TableBuilder::new(8);
    for minute in minutes {
        table.push((SINCE + minute * MINUTE) * 1_000_000, [Some(1.0), None, None], None);
    }
    table.series(&Identity::from([Some(Arc::from("S")), None, None, None, None]));
    let points = Arc::new(table.finish().expect("points"));
    let (report, raw, bookmark) = (PageReport::default(), None, None);
    Arc::new(Page { points, report, sequence, raw, bookmark, is_last })
}

/// A feed with buckets of one minute, and these changes.
fn feed(change: impl FnOnce(&mut FeedInput)) -> Feed {
    let input = FeedInput::new("feed", instant(SINCE));
    let mut input = FeedInput { interval_seconds: Some(60), ..input };
    change(&mut input);
    Feed::new(input).expect("a feed")
}

fn state(change: impl FnOnce(&mut FeedInput)) -> FeedState {
    FeedState::new(&feed(change), "http://127.0.0.1:1")
}

fn planned(state: &FeedState, now: i64, done: &Ranges) -> Vec<PlanStep> {
    let none = Ranges::none();
    let mut known = FeedRun::new(state.clone(), None);
    known.done = done.clone();
    steps(&[known], &PlanTerms { now, until: None, reread: &none, clock: None })
}

/// The class and the range of each step, in hours after the feeds' beginning.
fn in_hours(steps: &[PlanStep]) -> Vec<(Why, i64, i64)> {
    let hours = |second: i64| (second - SINCE) / HOUR;
    steps.iter().map(|step| (step.why, hours(step.range.start), hours(step.range.end))).collect()
}

/// Reads the range of a step in one chain of pages of a thousand points, one a minute.
fn read(state: &mut FeedState, step: &PlanStep, began: i64) {
    let points = (step.range.seconds() / MINUTE).unsigned_abs();
    let chain = UnfinishedChain {
        began: Some(began),
        pages: points / 1_000 + 1,
        points,
        ..UnfinishedChain::new(step.range, step.why, 0)
    };
    state.cover(&chain, points % 1_000);
}

/// The chains that a run at this time reads. The service's time does not advance.
fn run(state: &mut FeedState, now: i64) -> Vec<PlanStep> {
    run_of(state, now, now)
}

/// A run that is planned for one time and happens at another.
fn run_of(state: &mut FeedState, planned_for: i64, now: i64) -> Vec<PlanStep> {
    let mut done = Ranges::none();
    let mut read_steps = Vec::new();
    while let Some(step) = planned(state, planned_for, &done).first().copied() {
        assert!(read_steps.len() < 10_000, "a run without an end");
        read(state, &step, now);
        done.add(step.range);
        read_steps.push(step);
    }
    read_steps
}
