//! Planning with a simulated service that always answers: what a year of runs reads, and that
//! nothing stays unsettled.

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

use std::time::Duration;

use jiff::Timestamp;

use super::feed::{Feed, FeedInput};
use super::plan::{PlanStep, PlanTerms, steps};
use super::ranges::{Range, Ranges};
use super::run_state::FeedRun;
use super::state::FeedState;
use super::task::Why;
use super::unfinished::UnfinishedChain;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The midnight at which these feeds begin.
const SINCE: i64 = 20_000 * DAY;

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.unsigned_abs())
}

/// A feed with buckets of a minute, with these changes.
fn feed(change: impl FnOnce(&mut FeedInput)) -> Feed {
    let since = Timestamp::from_second(SINCE).expect("a timestamp");
    let mut input = FeedInput { interval_seconds: Some(60), ..FeedInput::new("feed", since) };
    change(&mut input);
    Feed::new(input).expect("a feed")
}

fn state(change: impl FnOnce(&mut FeedInput)) -> FeedState {
    FeedState::new(&feed(change), "http://127.0.0.1:1")
}

/// The plan for one feed.
fn planned(state: &FeedState, now: i64, done: &Ranges) -> Vec<PlanStep> {
    let none = Ranges::none();
    let mut known = FeedRun::new(state.clone(), None);
    known.done = done.clone();
    steps(&[known], &PlanTerms { now, until: None, reread: &none, clock: None })
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

/// The chains that a run at this time reads; the service's time does not advance.
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
