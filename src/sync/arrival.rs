//! When points come: the distribution of their delays, estimated from the reads between which they came.
//!
//! A read says of a point only that it came before this read and after the last one that did not bring
//! it: an interval. What comes after the last read of a bucket is not seen at all. The estimate is the
//! nonparametric maximum likelihood of such data (Turnbull 1976), found by expectation and maximisation,
//! so that it does not depend on when the reads were. Within an interval that no read divides, the mass
//! is spread evenly over the logarithm of the age.

use std::time::Duration;

use serde::Serialize;

use crate::store::{Age, Sighting, Sightings};

/// The estimate changes little after so many steps; measured, it is then within a step of the scale.
const STEPS: usize = 400;
/// The fewest points that say that an age was looked at.
const ENOUGH: u64 = 20;

/// How long after the end of their buckets points came; times in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DelaySummary {
    /// The points that say something: those whose bucket was read more than once.
    pub count: u64,
    /// Of these, those that came after the feed's lateness.
    pub late: u64,
    /// The delays within which 50, 90, 95, 99 and 99.9 % came, and all; `None` without points.
    pub quantiles: Option<[u64; 6]>,
    /// The longest time after which buckets were still looked at.
    pub looked: Option<u64>,
}

/// The shares of [`DelaySummary::quantiles`].
const SHARES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

impl DelaySummary {
    /// Estimates the delays behind these sightings.
    #[must_use]
    pub(super) fn new(sightings: &Sightings, lateness: Duration) -> Self {
        let lateness = Age::of_seconds(i64::try_from(lateness.as_secs()).unwrap_or(i64::MAX));
        // One read alone says only that the point came before it.
        let says = |seen: &Sighting| seen.after.is_some() || seen.by < seen.looked;
        let known: Vec<Censored> = sightings
            .iter()
            .filter(|(seen, _)| says(seen))
            .map(|(seen, count)| Censored::new(*seen, *count))
            .collect();
        let late = sightings.iter().filter(|(seen, _)| seen.after >= Some(lateness));
        let count = known.iter().map(|one| one.count).sum();
        let quantiles = (count > 0).then(|| {
            let cumulative = cumulative(&known);
            #[expect(clippy::cast_precision_loss, reason = "a share")]
            let all = 1.0 - 0.5 / count as f64;
            let [half, p90, p95, p99, p999] = SHARES.map(|share| quantile(&cumulative, share));
            [half, p90, p95, p99, p999, quantile(&cumulative, all)]
        });
        Self {
            count,
            late: late.map(|(_, count)| *count).sum(),
            quantiles,
            looked: looked(sightings),
        }
    }
}

/// The longest age at which enough points were looked at.
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

/// Points that came within the same steps of the scale, of buckets that were looked at equally long.
#[derive(Debug, Clone, Copy)]
struct Censored {
    /// The steps in which they came.
    first: usize,
    last: usize,
    /// The last step in which they would have been seen.
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

/// The share of points that came up to the end of each step.
#[expect(clippy::cast_precision_loss, reason = "counts of points")]
fn cumulative(known: &[Censored]) -> Vec<f64> {
    let steps = known.iter().map(|one| one.looked).max().unwrap_or_default() + 1;
    let mut share = vec![1.0 / steps as f64; steps];
    for _ in 0..STEPS {
        let until = sums(&share);
        // What each step gets of the points is added up as differences between neighbouring steps.
        let mut change = vec![0.0; steps + 1];
        for one in known {
            let count = one.count as f64;
            let before = if one.first == 0 { 0.0 } else { until[one.first - 1] };
            let within = (until[one.last] - before).max(f64::MIN_POSITIVE);
            change[one.first] += count / within;
            change[one.last + 1] -= count / within;
            // The points of this kind that come after the last look: expected, and not seen.
            change[one.looked + 1] += count / until[one.looked].max(f64::MIN_POSITIVE);
        }
        let mut weight = 0.0;
        for (share, change) in share.iter_mut().zip(change) {
            weight += change;
            *share *= weight;
        }
        let total: f64 = share.iter().sum();
        for share in &mut share {
            *share /= total;
        }
    }
    sums(&share)
}

fn sums(shares: &[f64]) -> Vec<f64> {
    let add = |sum: &mut f64, share: &f64| {
        *sum += share;
        Some(*sum)
    };
    shares.iter().scan(0.0, add).collect()
}

/// The age within which this share came.
fn quantile(cumulative: &[f64], share: f64) -> u64 {
    let wanted = share * cumulative.last().copied().unwrap_or_default();
    let step = cumulative.partition_point(|until| *until < wanted).min(cumulative.len() - 1);
    let before = step.checked_sub(1).map_or(0.0, |before| cumulative[before]);
    let part = (wanted - before) / (cumulative[step] - before).max(f64::MIN_POSITIVE);
    let age = Age(u16::try_from(step).unwrap_or(u16::MAX));
    whole(age.within(part.clamp(0.0, 1.0)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds; a cast of a float saturates"
)]
fn whole(seconds: f64) -> u64 {
    seconds.round() as u64
}
