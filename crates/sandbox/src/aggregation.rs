//! Aggregates readings and small buckets into the buckets of a query. The grid's origin is the Unix
//! epoch; the bucket `t` covers `[t, t + interval)`.

/// One aggregated point. Times are microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    /// Index into the snapshot's list of series.
    pub(super) series: u32,
    pub(super) timestamp: i64,
    pub(super) value: Option<f64>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) sample_count: Option<i64>,
}

/// An input of the aggregation: a reading (`count` 1, all three values equal) or a smaller bucket.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) timestamp: i64,
    pub(super) value: Option<f64>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) count: Option<i64>,
}

impl Sample {
    pub(super) fn reading(timestamp: i64, value: f64) -> Self {
        let value = Some(value);
        Self { timestamp, value, minimum: value, maximum: value, count: Some(1) }
    }
}

pub(super) fn floor(timestamp: i64, interval: i64) -> i64 {
    timestamp - timestamp.rem_euclid(interval)
}

/// Aggregates the samples of one series, ascending by time, into buckets.
pub(super) struct Aggregator<'a> {
    series: u32,
    interval: i64,
    open: Option<Bucket>,
    rows: &'a mut Vec<Row>,
}

/// A bucket being filled. A single sample is returned unchanged.
#[derive(Default)]
struct Bucket {
    start: i64,
    first: Sample,
    samples: u32,
    sum: f64,
    compensation: f64,
    weight: f64,
    minimum: Option<f64>,
    maximum: Option<f64>,
    count: Option<i64>,
}

impl<'a> Aggregator<'a> {
    pub(super) fn new(series: u32, interval: i64, rows: &'a mut Vec<Row>) -> Self {
        Self { series, interval, open: None, rows }
    }

    /// Adds the next sample; samples are ascending by timestamp.
    pub(super) fn add(&mut self, sample: Sample) {
        let start = floor(sample.timestamp, self.interval);
        if self.open.as_ref().is_none_or(|bucket| bucket.start != start) {
            self.flush();
            self.open = Some(Bucket { start, first: sample, ..Bucket::default() });
        }
        if let Some(bucket) = &mut self.open {
            bucket.add(sample);
        }
    }

    pub(super) fn flush(&mut self) {
        if let Some(bucket) = self.open.take() {
            self.rows.push(bucket.into_row(self.series));
        }
    }
}

impl Bucket {
    fn add(&mut self, sample: Sample) {
        self.samples += 1;
        if let Some(value) = sample.value {
            let weight = weight(sample.count);
            // Kahan summation: the result hardly depends on the number and order of the readings.
            let term = value * weight - self.compensation;
            let total = self.sum + term;
            self.compensation = total - self.sum - term;
            if !self.compensation.is_finite() {
                self.compensation = 0.0;
            }
            self.sum = total;
            self.weight += weight;
        }
        self.minimum = combine(self.minimum, sample.minimum, f64::min);
        self.maximum = combine(self.maximum, sample.maximum, f64::max);
        self.count = combine(self.count, sample.count, i64::saturating_add);
    }

    fn into_row(self, series: u32) -> Row {
        let timestamp = self.start;
        if self.samples == 1 {
            let Sample { value, minimum, maximum, count, .. } = self.first;
            return Row { series, timestamp, value, minimum, maximum, sample_count: count };
        }
        let value = (self.weight > 0.0).then(|| self.sum / self.weight);
        let (minimum, maximum, sample_count) = (self.minimum, self.maximum, self.count);
        Row { series, timestamp, value, minimum, maximum, sample_count }
    }
}

/// A bucket without a count weighs as much as one reading.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn weight(count: Option<i64>) -> f64 {
    count.map_or(1.0, |count| count.max(0) as f64)
}

fn combine<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}
