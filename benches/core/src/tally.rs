//! A checksum of a page: only readers that agree on it are compared for speed.

use arrow_array::cast::AsArray;
use arrow_array::{Array, Float64Array, RecordBatch};
use siteline_core::data::Decoded;

use crate::typed::Page;

/// The column of the value in siteline's schema.
const VALUE: usize = 6;

/// Points, the sum of their values in the order of the page, and how many values are null.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Points.
    pub points: usize,
    /// Sum of the values that are not null.
    pub sum_value: f64,
    /// Values that are null.
    pub nulls: usize,
}

impl Tally {
    /// The tally of a page as structs.
    #[must_use]
    pub fn of_page(page: &Page<'_>) -> Self {
        let mut tally = Self::default();
        for point in page.series.iter().flat_map(|series| &series.points) {
            tally.points += 1;
            tally.nulls += usize::from(point.value.is_none());
            tally.sum_value += point.value.unwrap_or_default();
        }
        tally
    }

    /// The tally of siteline's page.
    #[must_use]
    pub fn of_decoded(decoded: &Decoded) -> Self {
        Self::of_values(&decoded.points.numbers[0])
    }

    /// The tally of a batch with siteline's schema.
    #[must_use]
    pub fn of_batch(batch: &RecordBatch) -> Self {
        Self::of_values(batch.column(VALUE).as_primitive())
    }

    fn of_values(values: &Float64Array) -> Self {
        let sum_value = values.iter().flatten().fold(0.0, |sum, value| sum + value);
        Self { points: values.len(), sum_value, nulls: values.null_count() }
    }

    /// Adds the tally of another page.
    pub fn add(&mut self, other: Self) {
        self.points += other.points;
        self.sum_value += other.sum_value;
        self.nulls += other.nulls;
    }
}
