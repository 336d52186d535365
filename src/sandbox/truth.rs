//! What a client must end up with: the same points, without pages, tokens or HTTP.

use super::aggregate::Row;
use super::answer::Holdings;
use super::error::SandboxError;
use super::identity::{Identity, Selection};
use super::query::{Question, range};
use super::{Sandbox, Service};

/// At which state of knowledge the truth is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// What the service would send now.
    Now,
    /// What it would send at this time, microseconds since the Unix epoch.
    Time(i64),
    /// What it will send in the end, when all has arrived and been corrected.
    Final,
}

/// The points of a question in columns of equal length, sorted by identity, then timestamp.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    /// The series, sorted.
    pub series: Vec<Identity>,
    /// For each point, its place in `series`.
    pub series_of: Vec<u32>,
    /// Bucket timestamps, microseconds since the Unix epoch.
    pub timestamp: Vec<i64>,
    /// `value`
    pub value: Vec<Option<f64>>,
    /// `minimum`
    pub minimum: Vec<Option<f64>>,
    /// `maximum`
    pub maximum: Vec<Option<f64>>,
    /// `sampleCount`
    pub sample_count: Vec<Option<i64>>,
}

impl Truth {
    /// The number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.timestamp.len()
    }

    /// True where there are none.
    #[must_use]
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
    /// The points of a selection with bucket timestamps in `[start, end)` (microseconds since the
    /// Unix epoch; the end belongs to it where the shape says so), told by the same state of
    /// knowledge that the data endpoint has. Left out: `interval_seconds` is what a query without one
    /// gets; `start` and `end` are the extent of loaded data, or the last day of generated ones.
    ///
    /// # Errors
    /// For an interval that cannot be made of the data, and for a range that ends before it
    /// begins.
    pub fn truth(
        &self,
        selection: Selection,
        start: Option<i64>,
        end: Option<i64>,
        interval_seconds: Option<u32>,
        as_of: AsOf,
    ) -> Result<Truth, SandboxError> {
        let now = self.clock.wall();
        let mut service = self.shared.lock();
        let seconds = interval_seconds.unwrap_or_else(|| service.default_interval_seconds());
        if seconds == 0 {
            return Err(SandboxError::new("an interval is at least one second"));
        }
        let interval = i64::from(seconds) * 1_000_000;
        let extent = match &service.holdings {
            Holdings::Loaded(loaded) => loaded.extent(interval),
            Holdings::Generated(_) => None,
        };
        let (first, last) = extent.unzip();
        let (from, to) = range(start.or(first), end.or(last), interval, now);
        if from > to {
            return Err(SandboxError::new("the range ends before it begins"));
        }
        let view = match as_of {
            AsOf::Now => now.as_microsecond(),
            AsOf::Time(time) => time,
            AsOf::Final => i64::MAX,
        };
        let to = to.saturating_add(i64::from(service.options.shape.to_inclusive));
        told(&mut service, &Question { selection, from, to, interval }, view)
    }
}

fn told(service: &mut Service, question: &Question, view: i64) -> Result<Truth, SandboxError> {
    let answer = service.holdings.answer(question, view).map_err(SandboxError::new)?;
    let mut truth = Truth { series: answer.series.clone(), ..Truth::default() };
    for row in &answer.rows {
        truth.push(row);
    }
    Ok(truth)
}
