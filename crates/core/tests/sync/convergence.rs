//! Random runs and faults. After the lateness, one more sync makes the target equal the truth.

use fastrand::Rng;
use siteline_base::clock::Clock;
use siteline_core::Kind;
use siteline_core::data::{MissingCursor, Shape};
use siteline_core::sync::{Feed, FeedInput, SyncSettings};
use siteline_sandbox::{
    Effect, ErrorBody, Fault, Options, PageCounts, PointOrder, TimestampForm, When,
};

use crate::harness::{DAY, HOUR, Harness, MINUTE, at, input, on_data, reply, seconds};
use crate::test_kit::trials;

fn pick<T: Copy>(random: &mut Rng, all: &[T]) -> T {
    all[random.usize(..all.len())]
}

fn options(random: &mut Rng) -> Options {
    Options {
        seed: random.u64(..),
        daily_allowance: (random.u8(..3) == 0).then(|| random.u64(25..80)),
        array: pick(random, &["series", "data", "items"]).to_owned(),
        timestamps: pick(
            random,
            &[
                TimestampForm::IsoZ,
                TimestampForm::IsoOffset,
                TimestampForm::IsoFraction,
                TimestampForm::EpochSeconds,
                TimestampForm::EpochMilliseconds,
            ],
        ),
        order: pick(random, &[PointOrder::SeriesThenTime, PointOrder::TimeThenSeries]),
        page_counts: pick(random, &[PageCounts::Points, PageCounts::Points, PageCounts::Envelopes]),
        envelope_points: random.u32(2..12),
        to_inclusive: random.bool(),
        error_body: pick(random, &[ErrorBody::OAuth, ErrorBody::Problem]),
        extra_members: random.bool(),
        omit_nulls: random.bool(),
        omit_last_cursor: random.u8(..4) == 0,
        spaced: random.bool(),
        ..Options::default()
    }
}

fn feed(random: &mut Rng, options: &Options) -> FeedInput {
    let envelopes = options.page_counts == PageCounts::Envelopes;
    FeedInput {
        interval_seconds: Some(pick(random, &[300, 420, 600, 900])),
        page_size: Some(if envelopes { random.u32(2..9) } else { random.u32(9..90) }),
        since: at("2026-11-01T06:00:00Z")
            .checked_add(seconds(random.u64(..8 * HOUR) / MINUTE * MINUTE))
            .expect("a time"),
        settle_lag: seconds(random.u64(..20) * MINUTE),
        overlap: seconds(random.u64(..3) * 30 * MINUTE),
        window: seconds(pick(random, &[2 * HOUR, 6 * HOUR, DAY])),
        filters: if random.bool() { Vec::new() } else { input().filters },
        ..input()
    }
}

/// Up to four other feeds of all machines or of one machine.
fn others(random: &mut Rng, first: &FeedInput) -> Vec<Feed> {
    let count = random.usize(..5);
    let feed = |number| {
        let machine = pick(random, &["M1", "M2"]).to_owned();
        let some = vec![("machineId".to_owned(), vec![machine])];
        let filters = if random.bool() { Vec::new() } else { some };
        let window = seconds(pick(random, &[2 * HOUR, 6 * HOUR, DAY]));
        Feed::new(FeedInput { name: format!("other {number}"), filters, window, ..first.clone() })
    };
    (0..count).map(feed).map(|feed| feed.expect("a feed")).collect()
}

fn fault(random: &mut Rng) -> Fault {
    let reply_after = |status: u16, seconds: u64| {
        let headers = vec![("Retry-After".to_owned(), seconds.to_string())];
        Effect::Reply { status, headers, body: "{}".into() }
    };
    let effect = match random.u8(..10) {
        0 => reply(401),
        1 => reply_after(429, 3),
        2 => reply(429),
        3 => reply(503),
        // Shorter than any body: if the connection were closed after a complete reply, the client
        // would notice it only with the next request, which it counts and the service never gets.
        4 => Effect::Cut { after: random.usize(..2) },
        5 => Effect::ForgetCursors,
        6 => Effect::ForgetTokens,
        7 => Effect::CycleCursors(random.usize(1..4)),
        8 => Effect::EmptyPage,
        _ => reply_after(429, 4_000),
    };
    let when = match random.u8(..3) {
        0 => When::Nth(random.u64(1..12)),
        1 => When::Times { count: random.u64(1..4), skip: random.u64(..9) },
        _ => When::Chance { probability: 0.1, seed: random.u64(..) },
    };
    on_data(when, effect)
}

/// Errors that end a run. The next run can continue.
fn is_expected(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::AuthenticationError
            | Kind::RateLimited
            | Kind::ServiceUnavailable
            | Kind::TruncatedBody
            | Kind::CursorRejected
            | Kind::CursorLoop
            | Kind::StoreFull
            | Kind::TransportTimeout
    )
}

fn change_settings(random: &mut Rng, harness: &mut Harness) {
    let now = harness.now();
    let before =
        |random: &mut Rng| now.checked_sub(seconds(random.u64(..30 * HOUR))).expect("a time");
    harness.settings.until = (random.u8(..4) == 0).then(|| before(random));
    harness.settings.now = (random.u8(..8) == 0).then(|| before(random));
    harness.settings.concurrency = random.usize(1..=8);
    harness.settings.reread.clear();
    if random.u8(..4) == 0 {
        let start = before(random);
        let end = start.checked_add(seconds(random.u64(1..9 * HOUR))).expect("a time");
        harness.settings.reread.push((start, end));
    }
}

/// A run that stops at its end, at an error, between two pages, or between a page and its write. Returns
/// the number of requests that may be in flight at that point.
async fn one_run(harness: &Harness, random: &mut Rng) -> u64 {
    let in_flight = harness.settings.concurrency as u64 - 1;
    let run = harness.begin().expect("a run");
    let mut pages_left = if random.bool() { usize::MAX } else { random.usize(..12) };
    loop {
        let more = match run.fetch().await {
            Ok(more) => more,
            Err(error) if is_expected(error.kind()) => return 0,
            Err(error) => panic!("{error:?} {:?}", error.context()),
        };
        if !more || pages_left == 0 {
            return if more { in_flight } else { 0 };
        }
        pages_left -= 1;
        harness.target.fail(u32::from(random.u8(..15) == 0));
        match run.apply() {
            Ok(progress) => assert!(progress.fraction.is_none() || progress.done),
            Err(error) if is_expected(error.kind()) => {
                if random.bool() {
                    return in_flight;
                }
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

async fn converges(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let options = options(&mut random);
    let clock = Clock::frozen_at(at("2026-11-01T16:00:00Z"));
    let feed = feed(&mut random, &options);
    let allowance = options.daily_allowance.filter(|_| random.bool());
    let missing_cursor =
        if options.omit_last_cursor { MissingCursor::End } else { MissingCursor::Error };
    let mut harness = Harness::with(options, feed, clock.clone(), clock, |settings| {
        settings.daily_allowance = allowance;
    });
    harness.others = others(&mut random, harness.feed.input());
    harness.settings.shape = Shape { missing_cursor, ..Shape::default() };
    let mut dropped = 0;
    for _ in 0..random.usize(4..14) {
        for _ in 0..random.usize(..3) {
            harness.sandbox.fault(fault(&mut random));
        }
        change_settings(&mut random, &mut harness);
        dropped += one_run(&harness, &mut random).await;
        harness.target.fail(0);
        harness.sandbox.clear_faults();
        harness.advance(pick(&mut random, &[MINUTE, 20 * MINUTE, HOUR, 7 * HOUR, 13 * HOUR]));
    }
    harness.settings = SyncSettings { shape: harness.settings.shape.clone(), ..Default::default() };
    harness.settle().await;
    // A request that was dropped with its run is counted, and may have been sent.
    let (ours, theirs) = (harness.client.data_requests(), harness.sandbox.stats().data_requests);
    assert!(ours >= theirs && ours <= theirs + dropped, "{ours} {theirs} {dropped}");
}

#[test]
fn p10_a_store_equals_the_truth() {
    let fifty = |first: u64| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        for seed in first..first + u64::from(trials(50)) {
            eprintln!("seed {seed}");
            runtime.block_on(converges(seed));
        }
    };
    std::thread::scope(|scope| {
        for first in [0, 50, 100, 150] {
            scope.spawn(move || fifty(first));
        }
    });
}
