//! A generated plant: speeds, temperatures, vibrations and piece counters of machines, with a daily
//! pattern, outages, missing readings, minutes that arrive late and values that are corrected
//! later. Everything is a hash of seed, series and time: nothing is stored, any range can be
//! generated directly, and the same seed gives the same plant.

use std::f64::consts::TAU;

use super::aggregation::{Aggregator, Row, Sample, floor};
use super::identity::Identity;
use super::query::PointQuery;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The time between two readings; intervals are multiples of it.
pub(super) const READING: i64 = 10 * SECOND;
/// A machine has at most one outage per shift.
const SHIFT: i64 = 6 * HOUR;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Speed,
    Temperature,
    Vibration,
    Counter,
}

impl Measure {
    /// The name and the unit, for discovery.
    pub(super) fn name_and_unit(self) -> (&'static str, &'static str) {
        match self {
            Self::Speed => ("speed", "1/min"),
            Self::Temperature => ("temperature", "degC"),
            Self::Vibration => ("vibration", "mm/s"),
            Self::Counter => ("pieces", "1"),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Tag {
    pub(super) identity: Identity,
    pub(super) measure: Measure,
    /// The seed of outages and late arrivals, which the series of a machine share.
    machine_seed: u64,
    /// The seed of the series' values and corrections.
    series_seed: u64,
}

#[derive(Debug)]
pub(super) struct Plant {
    seed: u64,
    late: bool,
    tags: Vec<Tag>,
}

/// When a minute of a tag becomes visible, and when and by how much it is corrected.
struct Delivery {
    arrival: i64,
    correction: Option<(i64, f64)>,
}

impl Plant {
    /// Two sites with three lines in all, two machines per line, three tags per machine. With
    /// `digits` the ids of machines, devices and tags are integers; sites and lines keep their
    /// names, so that the same queries select them.
    pub(super) fn new(seed: u64, late: bool, digits: bool) -> Self {
        let name = |letter: &str, number: u64| {
            if digits { number.to_string() } else { format!("{letter}{number}") }
        };
        let mut tags = Vec::new();
        for line in 1..=3_u64 {
            for machine in [2 * line - 1, 2 * line] {
                let last = if machine % 2 == 1 { Measure::Counter } else { Measure::Vibration };
                for (number, measure) in
                    [Measure::Speed, Measure::Temperature, last].into_iter().enumerate()
                {
                    let tag = hash(&[seed, machine, number as u64]);
                    let guid = if digits { (tag >> 20).to_string() } else { guid(tag) };
                    let identity = Identity::new(
                        &format!("S{}", 1 + (line - 1) / 2),
                        &format!("L{line}"),
                        &name("M", machine),
                        &name("D", machine * 10 + 1),
                        &guid,
                    );
                    tags.push(Tag { identity, measure, machine_seed: machine, series_seed: tag });
                }
            }
        }
        tags.sort_by(|one, other| one.identity.cmp(&other.identity));
        Self { seed, late, tags }
    }

    pub(super) fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// Appends the points of one tag that are visible at `as_of` to `rows`. Returns when the visible
    /// points change next.
    pub(super) fn read(
        &self,
        tag: &Tag,
        series: u32,
        query: &PointQuery,
        as_of: i64,
        rows: &mut Vec<Row>,
    ) -> i64 {
        let interval = query.interval;
        let first = floor(query.from + interval - 1, interval);
        let end = floor(query.to + interval - 1, interval);
        let mut aggregator = Aggregator::new(series, interval, rows);
        let mut next_change = i64::MAX;
        let mut outage = (i64::MIN, 0, 0);
        let mut minute = floor(first, MINUTE);
        while minute < end {
            let shift = floor(minute, SHIFT);
            if outage.0 != shift {
                outage = self.outage(tag, shift);
            }
            let delivery = self.delivery(tag, minute);
            let correction = delivery.correction.unwrap_or((i64::MAX, 1.0));
            for change in [delivery.arrival, correction.0] {
                if change > as_of {
                    next_change = next_change.min(change);
                }
            }
            if delivery.arrival <= as_of {
                let factor = if correction.0 <= as_of { correction.1 } else { 1.0 };
                self.each_reading(tag, minute, |sample| {
                    let stopped = (outage.1..outage.2).contains(&sample.timestamp);
                    if !stopped && (first..end).contains(&sample.timestamp) {
                        let value = sample.value.map(|value| cents(value * factor));
                        aggregator.add(Sample { value, minimum: value, maximum: value, ..sample });
                    }
                });
            }
            minute += MINUTE;
        }
        aggregator.flush();
        next_change
    }

    /// The readings of one minute, before outages and corrections.
    fn each_reading(&self, tag: &Tag, minute: i64, mut take: impl FnMut(Sample)) {
        let day_part = seconds(minute.rem_euclid(DAY)) / 86_400.0;
        let rhythm = 0.5 + 0.5 * (TAU * (day_part - 1.0 / 3.0)).sin();
        let drift = uniform(&[self.seed, tag.series_seed, hash_time(floor(minute, HOUR)), 3]) - 0.5;
        for number in 0..6 {
            let timestamp = minute + number * READING;
            let draw = hash(&[self.seed, tag.series_seed, hash_time(timestamp)]);
            if draw.is_multiple_of(100) {
                continue; // a reading that was never taken
            }
            let noise = unit(draw) - 0.5;
            let value = match tag.measure {
                Measure::Speed => 40.0 + 60.0 * rhythm + 4.0 * drift + 3.0 * noise,
                Measure::Temperature => 48.0 + 22.0 * rhythm + 3.0 * drift + 0.6 * noise,
                Measure::Vibration => 0.8 + 1.4 * rhythm + 0.3 * drift.abs() + 0.2 * noise,
                // Counts up from midnight, never back within the day.
                Measure::Counter => (seconds(timestamp.rem_euclid(DAY)) * 0.7).floor(),
            };
            take(Sample::reading(timestamp, cents(value)));
        }
    }

    /// The outage of a machine in a shift, during which it has no readings: `(shift, from, to)`.
    fn outage(&self, tag: &Tag, shift: i64) -> (i64, i64, i64) {
        let draw = |which| uniform(&[self.seed, tag.machine_seed, hash_time(shift), which]);
        if draw(11) >= 0.25 {
            return (shift, 0, 0);
        }
        let from = shift + floor(part(SHIFT - 2 * HOUR, draw(12)), MINUTE);
        (shift, from, from + floor(part(85 * MINUTE, draw(13)), MINUTE) + 5 * MINUTE)
    }

    fn delivery(&self, tag: &Tag, minute: i64) -> Delivery {
        let end = minute + MINUTE;
        if !self.late {
            return Delivery { arrival: end + MINUTE, correction: None };
        }
        let machine = hash(&[self.seed, tag.machine_seed, hash_time(minute), 21]);
        // A gateway sends every minute, but is sometimes offline for minutes or hours.
        let prompt = end + 5 * SECOND + part(110 * SECOND, unit(machine));
        let hour = floor(minute, HOUR);
        let hour_draw = hash(&[self.seed, tag.machine_seed, hash_time(hour), 22]);
        let arrival = match (hour_draw % 200, machine % 1_000) {
            (0 | 1, _) => hour + HOUR + 30 * MINUTE + part(5 * HOUR, unit(hour_draw)),
            (_, 0..=14) => end + 2 * MINUTE + part(43 * MINUTE, unit(machine)),
            (_, 15 | 16) => end + HOUR + part(19 * HOUR, unit(machine)),
            _ => prompt,
        };
        let tag_draw = hash(&[self.seed, tag.series_seed, hash_time(minute), 23]);
        let corrected = tag_draw % 1_000 < 4 && tag.measure != Measure::Counter;
        let correction = corrected.then(|| {
            let at = end + 30 * MINUTE + part(21 * HOUR, unit(tag_draw));
            (at, 0.9 + 0.2 * unit(tag_draw.rotate_left(32)))
        });
        Delivery { arrival, correction }
    }
}

/// A hash of all parts (the finaliser of `SplitMix64` over each).
pub(super) fn hash(parts: &[u64]) -> u64 {
    parts.iter().fold(0x9e37_79b9_7f4a_7c15, |state, part| {
        let mut mixed = state ^ part.wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).wrapping_add(0x9e37_79b9_7f4a_7c15)
    })
}

/// A hash as a number, uniformly distributed over `[0, 1)`.
pub(super) fn uniform(parts: &[u64]) -> f64 {
    unit(hash(parts))
}

#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

fn hash_time(time: i64) -> u64 {
    time.cast_unsigned()
}

/// A fraction of a duration.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "durations of at most a day in microseconds"
)]
fn part(duration: i64, fraction: f64) -> i64 {
    (duration as f64 * fraction) as i64
}

#[expect(clippy::cast_precision_loss, reason = "at most a day in microseconds")]
fn seconds(duration: i64) -> f64 {
    duration as f64 / SECOND as f64
}

/// Rounds to two decimals, as devices send them.
fn cents(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn guid(draw: u64) -> String {
    let low = hash(&[draw]);
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        draw >> 32,
        (draw >> 16) & 0xffff,
        draw & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}
