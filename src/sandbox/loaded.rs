//! The user's own data: points of a bucket width, with the versions that they had over time, or
//! raw readings.

use std::collections::BTreeMap;

use super::aggregate::{Gatherer, Row, Sample, floor};
use super::error::SandboxError;
use super::identity::Identity;
use super::query::Question;

const SECOND: i64 = 1_000_000;
/// 0001-01-01T00:00:00Z
const FIRST_YEAR: i64 = -62_135_596_800 * SECOND;

/// One aggregated point to load. Times are microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    /// Bucket timestamp; a multiple of the bucket width.
    pub timestamp: i64,
    /// `value`
    pub value: Option<f64>,
    /// `minimum`
    pub minimum: Option<f64>,
    /// `maximum`
    pub maximum: Option<f64>,
    /// `sampleCount`
    pub sample_count: Option<i64>,
    /// When the service learns of it; `None`: it always knew.
    pub available_at: Option<i64>,
}

/// One raw reading to load. Times are microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// When it was taken.
    pub timestamp: i64,
    /// What was read.
    pub value: f64,
    /// When the service learns of it; `None`: it always knew.
    pub available_at: Option<i64>,
}

/// All loaded series in the order of their identities.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    series: BTreeMap<Identity, Held>,
    /// Width of the first load: what a query without an interval gets.
    default_interval_seconds: Option<u32>,
}

#[derive(Debug)]
struct Held {
    kind: Kind,
    records: Vec<Record>,
    sorted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Of this bucket width in microseconds; a later version supersedes an earlier one.
    Points(i64),
    /// All count.
    Readings,
}

#[derive(Debug, Clone, Copy)]
struct Record {
    sample: Sample,
    available_at: i64,
    /// False: the point is taken back.
    present: bool,
}

impl Loaded {
    pub(super) fn identities(&self) -> impl Iterator<Item = &Identity> {
        self.series.keys()
    }

    pub(super) fn default_interval_seconds(&self) -> Option<u32> {
        self.default_interval_seconds
    }

    /// First timestamp and the end of the last bucket over all series.
    pub(super) fn extent(&self, interval: i64) -> Option<(i64, i64)> {
        let times = || self.series.values().flat_map(|held| &held.records);
        let first = times().map(|record| record.sample.timestamp).min()?;
        let last = times().map(|record| record.sample.timestamp).max()?;
        Some((floor(first, interval), floor(last, interval) + interval))
    }

    pub(super) fn add_points(
        &mut self,
        bucket_seconds: u32,
        series: Vec<(Identity, Vec<Point>)>,
    ) -> Result<(), SandboxError> {
        let width = i64::from(bucket_seconds) * SECOND;
        if width == 0 {
            return Err(SandboxError::new("a bucket is at least one second wide"));
        }
        let points = || series.iter().flat_map(|(_, points)| points);
        if let Some(point) = points().find(|point| point.timestamp.rem_euclid(width) != 0) {
            return Err(SandboxError::new(format!(
                "the timestamp {} is no multiple of the bucket width of {bucket_seconds} s; raw \
                 readings are loaded as timestamp and value only",
                shown(point.timestamp)
            )));
        }
        let records = |point: &Point| Record::version(point, true);
        self.hold(bucket_seconds, Kind::Points(width), series, records)
    }

    pub(super) fn add_readings(
        &mut self,
        bucket_seconds: u32,
        series: Vec<(Identity, Vec<Reading>)>,
    ) -> Result<(), SandboxError> {
        if bucket_seconds == 0 {
            return Err(SandboxError::new("a bucket is at least one second wide"));
        }
        let records = |reading: &Reading| Record {
            sample: Sample::reading(reading.timestamp, reading.value),
            available_at: reading.available_at.unwrap_or(i64::MIN),
            present: true,
        };
        self.hold(bucket_seconds, Kind::Readings, series, records)
    }

    /// Adds a version of a point of a known series; `present` false takes the point back.
    pub(super) fn revise(
        &mut self,
        identity: &Identity,
        point: &Point,
        present: bool,
    ) -> Result<(), SandboxError> {
        let held = self.series.get_mut(identity);
        let held = held.ok_or_else(|| SandboxError::new("no such series is loaded"))?;
        let Kind::Points(width) = held.kind else {
            return Err(SandboxError::new("readings are not revised, only points"));
        };
        if point.timestamp.rem_euclid(width) != 0 {
            let shown = shown(point.timestamp);
            return Err(SandboxError::new(format!("{shown} is no bucket timestamp of the series")));
        }
        let record = Record::version(point, present);
        record.check()?;
        held.records.push(record);
        held.sorted = false;
        Ok(())
    }

    /// Takes all of it or, where anything does not fit, nothing.
    fn hold<T>(
        &mut self,
        bucket_seconds: u32,
        kind: Kind,
        series: Vec<(Identity, Vec<T>)>,
        record: impl Fn(&T) -> Record,
    ) -> Result<(), SandboxError> {
        for (identity, items) in &series {
            if self.series.get(identity).is_some_and(|held| held.kind != kind) {
                return Err(SandboxError::new(
                    "a series is loaded as points of one bucket width or as readings, not both",
                ));
            }
            items.iter().try_for_each(|item| record(item).check())?;
        }
        for (identity, items) in series {
            let fresh = || Held { kind, records: Vec::new(), sorted: true };
            let held = self.series.entry(identity).or_insert_with(fresh);
            held.records.extend(items.iter().map(&record));
            held.sorted = false;
            self.default_interval_seconds.get_or_insert(bucket_seconds);
        }
        Ok(())
    }

    /// `Err` where this interval cannot be made of what is held.
    pub(super) fn check_interval(&self, question: &Question) -> Result<(), String> {
        for (identity, held) in &self.series {
            if let Kind::Points(width) = held.kind
                && question.selection.accepts(identity)
                && question.interval % width != 0
            {
                let seconds = width / SECOND;
                return Err(format!("aggregationIntervalSeconds is no multiple of {seconds}"));
            }
        }
        Ok(())
    }

    /// The points of one series as they are visible at `view`, appended to `rows`. Returns when
    /// that changes next.
    pub(super) fn read(
        &mut self,
        identity: &Identity,
        series: u32,
        question: &Question,
        view: i64,
        rows: &mut Vec<Row>,
    ) -> i64 {
        let Some(held) = self.series.get_mut(identity) else { return i64::MAX };
        held.sort();
        let interval = question.interval;
        let first = floor(question.from.saturating_add(interval - 1), interval);
        let end = floor(question.to.saturating_add(interval - 1), interval);
        let records = &held.records;
        let from = records.partition_point(|record| record.sample.timestamp < first);
        let to = from.max(records.partition_point(|record| record.sample.timestamp < end));
        let records = &records[from..to];
        let mut gatherer = Gatherer::new(series, interval, rows);
        let versions = |one: &Record, other: &Record| {
            held.kind != Kind::Readings && one.sample.timestamp == other.sample.timestamp
        };
        for versions in records.chunk_by(versions) {
            let visible = versions.iter().rfind(|record| record.available_at <= view);
            if let Some(record) = visible.filter(|record| record.present) {
                gatherer.add(record.sample);
            }
        }
        gatherer.flush();
        let coming = records.iter().map(|record| record.available_at).filter(|at| *at > view);
        coming.min().unwrap_or(i64::MAX)
    }
}

impl Held {
    /// By timestamp, then by the time of arrival; of two that arrive together the later load wins.
    fn sort(&mut self) {
        if !self.sorted {
            match self.kind {
                Kind::Points(_) => self
                    .records
                    .sort_by_key(|record| (record.sample.timestamp, record.available_at)),
                // As given, so that sums are taken in the order of the file.
                Kind::Readings => self.records.sort_by_key(|record| record.sample.timestamp),
            }
            self.sorted = true;
        }
    }
}

impl Record {
    fn version(point: &Point, present: bool) -> Self {
        let Point { timestamp, value, minimum, maximum, sample_count: count, .. } = *point;
        let sample = Sample { timestamp, value, minimum, maximum, count };
        Self { sample, available_at: point.available_at.unwrap_or(i64::MIN), present }
    }

    /// `Err` for what JSON or a calendar cannot say: the truth would be another than the answers.
    fn check(&self) -> Result<(), SandboxError> {
        let Sample { timestamp, value, minimum, maximum, .. } = self.sample;
        if timestamp < FIRST_YEAR || jiff::Timestamp::from_microsecond(timestamp).is_err() {
            return Err(SandboxError::new("a timestamp lies outside the years 1 to 9999"));
        }
        match [value, minimum, maximum].into_iter().flatten().find(|value| !value.is_finite()) {
            Some(value) => Err(SandboxError::new(format!(
                "at {} stands {value}, which is no number in JSON",
                shown(timestamp)
            ))),
            None => Ok(()),
        }
    }
}

fn shown(timestamp: i64) -> String {
    jiff::Timestamp::from_microsecond(timestamp)
        .map_or_else(|_| format!("{timestamp} us"), |timestamp| timestamp.to_string())
}
