//! Planning against a service that always answers, without a network: what a year of runs reads,
//! and that nothing stays unsettled.

mod planning;
mod simulation;
mod states;

use std::time::Duration;

use jiff::Timestamp;

use super::feed::{Feed, FeedInput};
use super::plan::{Known, Step, Terms, Why, steps};
use super::ranges::{Range, Ranges};
use super::state::State;
use super::unfinished::Unfinished;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Midnight at which these feeds begin.
const SINCE: i64 = 20_000 * DAY;

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.unsigned_abs())
}

/// A feed by the minute with these changes.
fn feed(change: impl FnOnce(&mut FeedInput)) -> Feed {
    let since = Timestamp::from_second(SINCE).expect("a timestamp");
    let mut input = FeedInput { interval_seconds: Some(60), ..FeedInput::new("feed", since) };
    change(&mut input);
    Feed::new(input).expect("a feed")
}

fn state(change: impl FnOnce(&mut FeedInput)) -> State {
    State::new(&feed(change), "http://127.0.0.1:1")
}

/// What is planned for one feed.
fn planned(state: &State, now: i64, done: &Ranges) -> Vec<Step> {
    let none = Ranges::none();
    let known = Known { state, done, put_off: &none };
    steps(&[known], &Terms { now, until: None, reread: &none })
}

/// Reads the range of a step in one chain of pages of a thousand points, one a minute.
fn read(state: &mut State, step: &Step, began: i64) {
    let points = (step.range.seconds() / MINUTE).unsigned_abs();
    let chain = Unfinished {
        began: Some(began),
        pages: points / 1_000 + 1,
        points,
        ..Unfinished::new(step.range, step.why, 0)
    };
    state.cover(&chain, points % 1_000);
}

/// All that a run at this time reads, chain by chain; the service's time stands still.
fn run(state: &mut State, now: i64) -> Vec<Step> {
    run_of(state, now, now)
}

/// A run that is planned for one time and happens at another.
fn run_of(state: &mut State, planned_for: i64, now: i64) -> Vec<Step> {
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
