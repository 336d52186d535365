//! Audits and the estimated lateness, compared with known delays.

use super::super::arrival::DelaySummary;
use super::*;
use crate::store::{Age, Sighting, Sightings};

const WIDTH: i64 = 5 * MINUTE;

/// A service with one point in each bucket. Each point arrives after its own delay.
struct Service {
    delays: Vec<i64>,
}

/// The complete reads of a bucket.
#[derive(Default)]
struct History {
    reads: Vec<(Range, i64)>,
}

impl Service {
    fn new(days: i64, delay: impl Fn(&mut fastrand::Rng) -> f64) -> Self {
        let mut random = fastrand::Rng::with_seed(11);
        #[expect(clippy::cast_possible_truncation, reason = "seconds")]
        let delays = (0..days * DAY / WIDTH).map(|_| delay(&mut random) as i64).collect();
        Self { delays }
    }

    /// The sightings of each point, as in a store.
    fn sightings(&self, history: &History) -> Sightings {
        let mut sightings = Sightings::new();
        for (bucket, delay) in self.delays.iter().enumerate() {
            let start = SINCE + i64::try_from(bucket).expect("small") * WIDTH;
            let end = start + WIDTH;
            let reads =
                history.reads.iter().filter(|(range, _)| range.start <= start && start < range.end);
            let ages: Vec<i64> = reads.map(|(_, began)| began - end).collect();
            let Some(by) = ages.iter().position(|age| age >= delay) else { continue };
            let seen = Sighting {
                after: by.checked_sub(1).map(|before| Age::of_seconds(ages[before])),
                by: Age::of_seconds(ages[by]),
                looked: ages.iter().map(|age| Age::of_seconds(*age)).max().expect("a read"),
            };
            *sightings.entry(seen).or_insert(0) += 1;
        }
        sightings
    }

    /// The delay within which this share of the points arrived.
    fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.delays.clone();
        sorted.sort_unstable();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index"
        )]
        let at = sorted[((sorted.len() - 1) as f64 * share) as usize] as f64;
        at
    }
}

fn simulate(mut state: FeedState, days: i64, period: i64) -> (FeedState, History, u64) {
    let mut history = History::default();
    let (mut now, mut audits) = (SINCE, 0);
    while now < SINCE + days * DAY {
        now += period;
        let mut done = Ranges::none();
        while let Some(step) = planned(&state, now, &done).first().copied() {
            read(&mut state, &step, now);
            history.reads.push((step.range, now));
            if step.why == Why::Audit {
                state.audits.count(now, true);
                audits += 1;
            } else {
                done.add(step.range);
            }
        }
    }
    (state, history, audits)
}

fn exponential(mean: i64) -> impl Fn(&mut fastrand::Rng) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    move |random| -(1.0 - random.f64()).ln() * mean as f64
}

#[test]
fn s21_the_estimate_does_not_depend_on_settings() {
    const DAYS: i64 = 60;
    let distributions: [(&str, Service); 3] = [
        ("about ten hours", Service::new(DAYS, |random| 36_000.0 * (0.9 + 0.2 * random.f64()))),
        ("exponential, mean of eight hours", Service::new(DAYS, exponential(8 * HOUR))),
        (
            "most within the hour, a tenth after about two days",
            Service::new(DAYS, |random| {
                if random.u8(..10) == 0 {
                    2.0 * 86_400.0 * (0.7 + 0.6 * random.f64())
                } else {
                    600.0 + 3_000.0 * random.f64()
                }
            }),
        ),
    ];
    // The simulation of hourly syncs takes most of the time.
    let runs = [(DAY, 6 * HOUR), (3 * DAY, 24 * HOUR), (6 * HOUR, HOUR)];
    let runs = if crate::test_kit::is_long() { &runs[..] } else { &runs[..2] };
    for (name, service) in &distributions {
        for &(lateness, period) in runs {
            let state = state(|input| {
                input.interval_seconds = Some(300);
                input.lateness = seconds(lateness);
                input.audit_pages = 4;
            });
            let (_, history, audits) = simulate(state, DAYS, period);
            assert!(audits <= 4 * 61, "{audits}");
            let summary = DelaySummary::new(&service.sightings(&history), seconds(lateness));
            let quantiles = summary.quantiles.expect("points");
            for (share, estimate) in [(0.5, quantiles[0]), (0.95, quantiles[2])] {
                let error = Duration::from_secs(estimate).as_secs_f64() / service.quantile(share);
                assert!(
                    (0.8..=1.2).contains(&error),
                    "{name}: {lateness} {period} {share} {error}"
                );
            }
        }
    }
}
