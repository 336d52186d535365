//! Estimates the distribution of the delays of points from the reads between which they arrived.
//!
//! A read only shows that a point arrived before it, and after the previous read without the point.
//! Points that arrive after the last read of a bucket are never observed. The estimate is the
//! nonparametric maximum likelihood for such censored data (Turnbull 1976), by expectation
//! maximisation. It does not depend on the times of the reads. Within an interval without a read,
//! the mass is spread evenly over the logarithm of the age.

use std::time::Duration;

use serde::Serialize;

use crate::store::{Age, Sighting, Sightings};

/// After this many iterations, measured estimates were within one step of the scale.
const STEPS: usize = 400;
/// The minimum number of points that show that an age was observed.
const ENOUGH: u64 = 20;

/// The delays of points after the end of their buckets, in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DelaySummary {
    /// Points of buckets that were read more than once.
    pub count: u64,
    /// Points that arrived after the feed's lateness.
    pub late: u64,
    /// The delays within which 50, 90, 95, 99, 99.9 and 100 % of the points arrived.
    pub quantiles: Option<[u64; 6]>,
    /// The longest age at which buckets were still observed.
    pub looked: Option<u64>,
    /// The share that arrived by each delay, in millionths, as the corners of a rising curve.
    pub curve: Vec<(u64, u32)>,
}

/// The shares of [`DelaySummary::quantiles`].
const SHARES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

impl DelaySummary {
    #[must_use]
    pub(super) fn new(sightings: &Sightings, lateness: Duration) -> Self {
        let lateness = Age::of_seconds(i64::try_from(lateness.as_secs()).unwrap_or(i64::MAX));
        // A single read only shows that the point arrived before it.
        let says = |seen: &Sighting| seen.after.is_some() || seen.by < seen.looked;
        let known: Vec<Censored> = sightings
            .iter()
            .filter(|(seen, _)| says(seen))
            .map(|(seen, count)| Censored::new(*seen, *count))
            .collect();
        let late = sightings.iter().filter(|(seen, _)| seen.after >= Some(lateness));
        let count = known.iter().map(|one| one.count).sum();
        let cumulative = if count > 0 { cumulative(&known) } else { Vec::new() };
        let quantiles = (count > 0).then(|| {
            #[expect(clippy::cast_precision_loss, reason = "a share")]
            let all = 1.0 - 0.5 / count as f64;
            let [half, p90, p95, p99, p999] = SHARES.map(|share| quantile(&cumulative, share));
            // An estimated delay can be anywhere in its interval, even above the longest one.
            let longest = quantile(&cumulative, all);
            let [half, p90, p95, p99] = [half, p90, p95, p99].map(|delay| delay.min(longest));
            [half, p90, p95, p99, p999, longest]
        });
        Self {
            count,
            late: late.map(|(_, count)| *count).sum(),
            quantiles,
            looked: looked(sightings),
            curve: curve(&cumulative),
        }
    }
}

/// The longest age at which at least [`ENOUGH`] points were observed.
fn looked(sightings: &Sightings) -> Option<u64> {
    let mut looked: Vec<(Age, u64)> =
        sightings.iter().map(|(seen, count)| (seen.looked, *count)).collect();
    looked.sort_unstable_by(|one, other| other.cmp(one));
    let mut seen = 0;
    let (age, _) = looked.into_iter().find(|(_, count)| {
        seen += count;
        seen >= ENOUGH
    })?;
    Some(whole(age.seconds()))
}

/// Points that arrived within the same steps, in buckets that were observed equally long.
#[derive(Debug, Clone, Copy)]
struct Censored {
    first: usize,
    last: usize,
    /// The last step in which they could be observed.
    looked: usize,
    count: u64,
}

impl Censored {
    fn new(seen: Sighting, count: u64) -> Self {
        let [by, looked] = [seen.by, seen.looked].map(|age| usize::from(age.0));
        let first = seen.after.map_or(0, |after| usize::from(after.0) + 1).min(by);
        Self { first, last: by, looked, count }
    }
}

/// The share of points that arrived by the end of each step.
#[expect(clippy::cast_precision_loss, reason = "counts of points")]
fn cumulative(known: &[Censored]) -> Vec<f64> {
    let steps = known.iter().map(|one| one.looked).max().unwrap_or_default() + 1;
    let mut share = vec![1.0 / steps as f64; steps];
    for _ in 0..STEPS {
        let until = sums(&share);
        // Sums per step as differences between neighbouring steps.
        let mut change = vec![0.0; steps + 1];
        for one in known {
            let count = one.count as f64;
            let before = if one.first == 0 { 0.0 } else { until[one.first - 1] };
            let within = (until[one.last] - before).max(f64::MIN_POSITIVE);
            change[one.first] += count / within;
            change[one.last + 1] -= count / within;
            // The expected points of this kind after the last read.
            change[one.looked + 1] += count / until[one.looked].max(f64::MIN_POSITIVE);
        }
        for (share, weight) in share.iter_mut().zip(sums(&change)) {
            *share *= weight;
        }
        let total: f64 = share.iter().sum();
        for share in &mut share {
            *share /= total;
        }
    }
    sums(&share)
}

fn sums(numbers: &[f64]) -> Vec<f64> {
    let add = |sum: &mut f64, number: &f64| {
        *sum += number;
        Some(*sum)
    };
    numbers.iter().scan(0.0, add).collect()
}

/// The age within which this share arrived.
fn quantile(cumulative: &[f64], share: f64) -> u64 {
    let wanted = share * cumulative.last().copied().unwrap_or_default();
    let step = cumulative.partition_point(|until| *until < wanted);
    let before = step.checked_sub(1).map_or(0.0, |before| cumulative[before]);
    let part = (wanted - before) / (cumulative[step] - before).max(f64::MIN_POSITIVE);
    let age = Age(u16::try_from(step).unwrap_or(u16::MAX));
    whole(age.within(part.clamp(0.0, 1.0)))
}

/// The ends of the steps before and after each rise.
fn curve(cumulative: &[f64]) -> Vec<(u64, u32)> {
    let all = cumulative.last().copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
    let mut corners: Vec<(usize, u32)> = Vec::new();
    let mut before = 0;
    for (step, until) in cumulative.iter().enumerate() {
        let share = u32::try_from(whole(until / all * 1e6)).unwrap_or(u32::MAX);
        if share > before {
            if corners.last().is_none_or(|(last, _)| last + 1 < step) && step > 0 {
                corners.push((step - 1, before));
            }
            corners.push((step, share));
            before = share;
        }
    }
    let end = |step: usize| whole(Age(u16::try_from(step).unwrap_or(u16::MAX)).seconds());
    corners.into_iter().map(|(step, share)| (end(step), share)).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds; a cast of a float saturates"
)]
fn whole(seconds: f64) -> u64 {
    seconds.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of step 99 of the scale is at 1,252 s, of 100 at 1,315 s, of 101 at 1,381 s.
    fn seen(after: Option<u16>, by: u16, looked: u16) -> Sighting {
        Sighting { after: after.map(Age), by: Age(by), looked: Age(looked) }
    }

    fn summary(sightings: &[(Sighting, u64)]) -> DelaySummary {
        DelaySummary::new(&sightings.iter().copied().collect(), Duration::from_secs(1_300))
    }

    fn censored(first: usize, last: usize, looked: usize, count: u64) -> Censored {
        Censored { first, last, looked, count }
    }

    #[test]
    fn the_curve_rises_at_arrivals() {
        let curve = |all: &[(Sighting, u64)]| summary(all).curve;
        // Both were observed until the same age, so neither can miss points.
        let early = (seen(Some(99), 100, 200), 3);
        let late = (seen(Some(149), 150, 200), 1);
        let seconds = |step| whole(Age(step).seconds());
        let corners = [(99, 0), (100, 750_000), (149, 750_000), (150, 1_000_000)];
        assert_eq!(curve(&[early, late]), corners.map(|(step, share)| (seconds(step), share)));
        assert_eq!(curve(&[]), []);
    }

    #[test]
    fn uninformative_points_give_no_estimate() {
        let (quantiles, curve) = (None, Vec::new());
        let nothing = DelaySummary { count: 0, late: 0, quantiles, looked: None, curve };
        assert_eq!(summary(&[]), nothing);
        // A single read only shows that the points arrived before it.
        let one_read = summary(&[(seen(None, 100, 100), 20)]);
        assert_eq!(one_read, DelaySummary { looked: Some(1_315), ..nothing });
    }

    #[test]
    fn points_of_buckets_read_twice_are_informative() {
        for (sighting, count) in [
            (seen(None, 99, 100), 3),
            (seen(Some(98), 100, 100), 3),
            (seen(Some(98), 99, 100), 3),
            (seen(None, 100, 100), 0),
        ] {
            assert_eq!(summary(&[(sighting, 3)]).count, count, "{sighting:?}");
        }
    }

    #[test]
    fn late_points_are_missing_after_the_lateness() {
        // The lateness of 1,300 s is within step 100.
        let sightings = [
            (seen(Some(99), 103, 103), 1),
            (seen(Some(100), 103, 103), 2),
            (seen(None, 90, 99), 4),
        ];
        assert_eq!(summary(&sightings).late, 2);
    }

    #[test]
    fn points_are_spread_evenly_within_a_step() {
        // All arrived after step 100 and within step 101: from 1,315 s to 1,381 s.
        let quantiles = |count| summary(&[(seen(Some(100), 101, 101), count)]).quantiles;
        // The last value is the delay at which half of the last point is missing.
        assert_eq!(quantiles(10), Some([1_347, 1_374, 1_377, 1_377, 1_381, 1_377]));
        assert_eq!(quantiles(1), Some([1_347, 1_347, 1_347, 1_347, 1_381, 1_347]));
    }

    #[test]
    fn twenty_points_prove_an_observed_age() {
        let looked = |sightings: &[(u16, u64)]| {
            let sighting = |&(looked, count): &(u16, u64)| (seen(None, 1, looked), count);
            summary(&sightings.iter().map(sighting).collect::<Vec<_>>()).looked
        };
        assert_eq!(looked(&[(100, 20), (90, 5)]), Some(1_315));
        assert_eq!(looked(&[(100, 19), (90, 1)]), Some(807), "all were observed at least as long");
        assert_eq!(looked(&[(100, 18), (99, 1), (90, 50)]), Some(807));
        assert_eq!(looked(&[(100, 18), (90, 1)]), None);
    }

    #[test]
    fn estimates_match_cases_computed_by_hand() {
        for (name, known, expected) in [
            ("an interval is spread evenly", vec![censored(1, 2, 3, 5)], vec![0.0, 0.5, 1.0, 1.0]),
            (
                "points with a known step: their shares",
                vec![censored(0, 0, 2, 3), censored(2, 2, 2, 1)],
                vec![0.75, 0.75, 1.0],
            ),
            (
                "an interval takes the shape of the points within it",
                vec![censored(0, 0, 1, 1), censored(1, 1, 1, 3), censored(0, 1, 1, 100)],
                vec![0.25, 1.0],
            ),
            (
                // For the points observed for one step, the others predict the share that arrived later.
                "points observed for one step do not predict the next step",
                vec![censored(0, 0, 0, 4), censored(0, 0, 1, 1), censored(1, 1, 1, 3)],
                vec![0.25, 1.0],
            ),
            (
                // Half of the points by step 1 arrived in step 0; half of all arrived after step 1.
                "a share among the first steps applies only to these steps",
                vec![
                    censored(0, 0, 1, 10),
                    censored(1, 1, 1, 10),
                    censored(0, 1, 2, 4),
                    censored(2, 2, 2, 4),
                ],
                vec![0.25, 0.5, 1.0],
            ),
        ] {
            let found = cumulative(&known);
            assert_eq!(found.len(), expected.len(), "{name}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-6, "{name}: {found} is not {expected}");
            }
        }
    }
}
