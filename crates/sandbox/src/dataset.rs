//! The user's own data: points of one bucket width with their versions over time, or raw readings.

use std::collections::BTreeMap;

use super::aggregation::{Aggregator, Row, Sample, floor};
use super::error::SandboxError;
use super::identity::{Identity, Names, add_names};
use super::query::PointQuery;

pub(super) type Done = Result<(), SandboxError>;

const SECOND: i64 = 1_000_000;
/// 0001-01-01T00:00:00Z
const FIRST_YEAR: i64 = -62_135_596_800 * SECOND;

/// One aggregated point to load. Times are microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    /// Bucket timestamp; a multiple of the bucket width.
    pub timestamp: i64,
    pub value: Option<f64>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub sample_count: Option<i64>,
    /// When the service begins to send it; `None` for always.
    pub available_at: Option<i64>,
}

/// One raw reading to load. Times are microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// When the reading was taken.
    pub timestamp: i64,
    pub value: f64,
    /// When the service begins to send it; `None` for always.
    pub available_at: Option<i64>,
}

/// All loaded series, sorted by identity.
#[derive(Debug, Default)]
pub(super) struct Dataset {
    series: BTreeMap<Identity, LoadedSeries>,
    names: BTreeMap<Identity, Names>,
    /// The bucket width of the first load: the default interval of queries.
    default_interval_seconds: Option<u32>,
}

/// One series, sorted by timestamp; the versions of a point by the time of their arrival.
#[derive(Debug)]
pub(super) struct LoadedSeries {
    kind: SeriesKind,
    records: Vec<Record>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeriesKind {
    /// Points of this bucket width in microseconds; a later version replaces an earlier one.
    Points(i64),
    /// Raw readings; all of them are aggregated.
    Readings,
}

#[derive(Debug, Clone, Copy)]
struct Record {
    sample: Sample,
    available_at: i64,
    present: bool,
}

impl Dataset {
    pub(super) fn series(&self) -> impl Iterator<Item = (&Identity, &LoadedSeries)> {
        self.series.iter()
    }

    pub(super) fn names(&self, identity: &Identity) -> &Names {
        static NONE: Names = [const { None }; 6];
        self.names.get(identity).unwrap_or(&NONE)
    }

    pub(super) fn add_names(&mut self, names: BTreeMap<Identity, Names>) {
        for (identity, names) in names {
            add_names(self.names.entry(identity).or_default(), names);
        }
    }

    pub(super) fn default_interval_seconds(&self) -> Option<u32> {
        self.default_interval_seconds
    }

    /// The first timestamp and the end of the last bucket of all series.
    pub(super) fn extent(&self, interval: i64) -> Option<(i64, i64)> {
        let times = || self.series.values().flat_map(|series| &series.records);
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
                "the timestamp {} is not a multiple of the bucket width of {bucket_seconds} s; to \
                 load raw readings, give only timestamp and value",
                shown(point.timestamp)
            )));
        }
        let records = |point: &Point| Record::version(point, true);
        self.insert(bucket_seconds, SeriesKind::Points(width), series, records)
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
        self.insert(bucket_seconds, SeriesKind::Readings, series, records)
    }

    /// Adds a version of a point of a loaded series; with `present` false, withdraws the point.
    pub(super) fn revise(&mut self, identity: &Identity, point: &Point, present: bool) -> Done {
        let ids = identity.members().map(|(_, id)| id.unwrap_or("None")).join(" / ");
        let refused = |why: &str| Err(SandboxError::new(format!("The series {ids} {why}.")));
        let Some(series) = self.series.get_mut(identity) else {
            return refused("is not loaded: only loaded points can be changed");
        };
        let SeriesKind::Points(width) = series.kind else {
            return refused("has raw readings: load points, with a sample_count, to change them");
        };
        let at = shown(point.timestamp);
        if point.timestamp.rem_euclid(width) != 0 {
            return refused(&format!(
                "has no bucket at {at}, only multiples of {} s",
                width / SECOND
            ));
        }
        let is_there = |one: &Record| one.present && one.sample.timestamp == point.timestamp;
        if !present && !series.records.iter().any(is_there) {
            return refused(&format!("has no point at {at}"));
        }
        let record = Record::version(point, present);
        record.check()?;
        series.extend([record]);
        Ok(())
    }

    /// Adds all series, or none of them after an error.
    fn insert<T>(
        &mut self,
        bucket_seconds: u32,
        kind: SeriesKind,
        series: Vec<(Identity, Vec<T>)>,
        record: impl Fn(&T) -> Record,
    ) -> Result<(), SandboxError> {
        for (identity, items) in &series {
            if self.series.get(identity).is_some_and(|known| known.kind != kind) {
                return Err(SandboxError::new(
                    "a series has points of one bucket width or readings",
                ));
            }
            items.iter().try_for_each(|item| record(item).check())?;
        }
        for (identity, items) in series {
            let new = || LoadedSeries { kind, records: Vec::new() };
            self.series.entry(identity).or_insert_with(new).extend(items.iter().map(&record));
            self.default_interval_seconds.get_or_insert(bucket_seconds);
        }
        Ok(())
    }

    /// `Err` if the selected series cannot be aggregated to the query's interval.
    pub(super) fn check_interval(&self, query: &PointQuery) -> Result<(), String> {
        for (identity, series) in &self.series {
            if let SeriesKind::Points(width) = series.kind
                && query.selection.accepts(identity)
                && query.interval % width != 0
            {
                let seconds = width / SECOND;
                return Err(format!("aggregationIntervalSeconds is not a multiple of {seconds}"));
            }
        }
        Ok(())
    }
}

impl LoadedSeries {
    /// The sort is stable: of two versions with the same arrival the later load wins, and readings
    /// with the same timestamp are summed in the order of the file.
    fn extend(&mut self, records: impl IntoIterator<Item = Record>) {
        self.records.extend(records);
        match self.kind {
            SeriesKind::Points(_) => {
                self.records.sort_by_key(|record| (record.sample.timestamp, record.available_at));
            }
            SeriesKind::Readings => self.records.sort_by_key(|record| record.sample.timestamp),
        }
    }

    /// Appends the points that are visible at `as_of` to `rows`, with this index of the series.
    /// Returns when the visible points change next.
    pub(super) fn read(
        &self,
        series: u32,
        query: &PointQuery,
        as_of: i64,
        rows: &mut Vec<Row>,
    ) -> i64 {
        let interval = query.interval;
        let first = floor(query.from.saturating_add(interval - 1), interval);
        let end = floor(query.to.saturating_add(interval - 1), interval);
        let from = self.records.partition_point(|record| record.sample.timestamp < first);
        let to = from.max(self.records.partition_point(|record| record.sample.timestamp < end));
        let records = &self.records[from..to];
        let mut aggregator = Aggregator::new(series, interval, rows);
        let versions = |one: &Record, other: &Record| {
            self.kind != SeriesKind::Readings && one.sample.timestamp == other.sample.timestamp
        };
        for versions in records.chunk_by(versions) {
            let visible = versions.iter().rfind(|record| record.available_at <= as_of);
            if let Some(record) = visible.filter(|record| record.present) {
                aggregator.add(record.sample);
            }
        }
        aggregator.flush();
        let later = records.iter().map(|record| record.available_at).filter(|at| *at > as_of);
        later.min().unwrap_or(i64::MAX)
    }
}

impl Record {
    fn version(point: &Point, present: bool) -> Self {
        let Point { timestamp, value, minimum, maximum, sample_count: count, .. } = *point;
        let sample = Sample { timestamp, value, minimum, maximum, count };
        Self { sample, available_at: point.available_at.unwrap_or(i64::MIN), present }
    }

    /// `Err` for values that JSON or ISO 8601 cannot express: truth and pages would differ.
    fn check(&self) -> Result<(), SandboxError> {
        let Sample { timestamp, value, minimum, maximum, .. } = self.sample;
        if timestamp < FIRST_YEAR || jiff::Timestamp::from_microsecond(timestamp).is_err() {
            return Err(SandboxError::new("a timestamp is outside the years 1 to 9999"));
        }
        match [value, minimum, maximum].into_iter().flatten().find(|value| !value.is_finite()) {
            Some(value) => Err(SandboxError::new(format!(
                "the value {value} at {} is not a number in JSON",
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
