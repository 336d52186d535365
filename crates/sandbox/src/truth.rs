//! The points that a client must have read in the end, without pages, tokens or HTTP.

use super::Sandbox;
use super::aggregation::Row;
use super::error::SandboxError;
use super::identity::{Identity, Selection};
use super::query::{PointQuery, range};
use super::snapshot::DataSource;

/// As of when points are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// The points that the service would send now.
    Now,
    /// The points that it would send at this time, microseconds since the Unix epoch.
    Time(i64),
    /// The points that it will send when all have arrived and been corrected.
    Final,
}

/// The points of a query in columns of equal length, sorted by identity, then timestamp.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    pub series: Vec<Identity>,
    /// For each point, its index in `series`.
    pub series_of: Vec<u32>,
    /// Bucket timestamps, microseconds since the Unix epoch.
    pub timestamp: Vec<i64>,
    pub value: Vec<Option<f64>>,
    pub minimum: Vec<Option<f64>>,
    pub maximum: Vec<Option<f64>>,
    pub sample_count: Vec<Option<i64>>,
}

impl Truth {
    pub fn len(&self) -> usize {
        self.timestamp.len()
    }

    pub fn is_empty(&self) -> bool {
        self.timestamp.is_empty()
    }

    fn push(&mut self, row: &Row) {
        self.series_of.push(row.series);
        self.timestamp.push(row.timestamp);
        self.value.push(row.value);
        self.minimum.push(row.minimum);
        self.maximum.push(row.maximum);
        self.sample_count.push(row.sample_count);
    }
}

impl Sandbox {
    /// The points of a selection with bucket timestamps in `[start, end)`, microseconds since the
    /// Unix epoch (with [`Options::to_inclusive`](super::Options::to_inclusive): `[start, end]`),
    /// as the data endpoint would send them as of that time. By default `interval_seconds` is that
    /// of queries, and `start` and `end` are the extent of loaded data, or the last day of generated
    /// data. Fails for an interval to which the data cannot be aggregated, and for a range that ends
    /// before it begins.
    pub fn truth(
        &self,
        selection: Selection,
        start: Option<i64>,
        end: Option<i64>,
        interval_seconds: Option<u32>,
        as_of: AsOf,
    ) -> Result<Truth, SandboxError> {
        let now = self.clock.wall();
        let service = self.shared.lock();
        let seconds = interval_seconds.unwrap_or_else(|| service.default_interval_seconds());
        if seconds == 0 {
            return Err(SandboxError::new("an interval must be at least one second"));
        }
        let interval = i64::from(seconds) * 1_000_000;
        let extent = match &service.source {
            DataSource::Loaded(dataset) => dataset.extent(interval),
            DataSource::Generated(_) => None,
        };
        let (first, last) = extent.unzip();
        let (from, to) = range(start.or(first), end.or(last), interval, now);
        if from > to {
            return Err(SandboxError::new("the range ends before it begins"));
        }
        let as_of = match as_of {
            AsOf::Now => now.as_microsecond(),
            AsOf::Time(time) => time,
            AsOf::Final => i64::MAX,
        };
        let to = to.saturating_add(i64::from(service.options.to_inclusive));
        let query = PointQuery { selection, from, to, interval };
        let snapshot = service.source.snapshot(&query, as_of).map_err(SandboxError::new)?;
        let mut truth = Truth { series: snapshot.series, ..Truth::default() };
        snapshot.rows.iter().for_each(|row| truth.push(row));
        Ok(truth)
    }
}
