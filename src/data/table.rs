//! A table built point by point, for whoever has points that did not come from a page.

use std::sync::Arc;

use arrow_array::{Float64Array, Int64Array, RecordBatch};

use super::columns::{IdentityColumn, Numbers, batch, floats, schema, timestamp_array};
use super::decode::Identity;
use crate::error::Result;

/// The ten columns under construction.
pub struct TableBuilder {
    identities: [IdentityColumn; 5],
    timestamps: Vec<i64>,
    numbers: [Numbers<f64>; 3],
    sample_counts: Numbers<i64>,
}

impl TableBuilder {
    /// An empty table with room for so many points.
    #[must_use]
    pub fn new(rows: usize) -> Self {
        Self {
            identities: std::array::from_fn(|_| IdentityColumn::new(rows)),
            timestamps: Vec::with_capacity(rows),
            numbers: std::array::from_fn(|_| floats(rows)),
            sample_counts: Numbers::new(rows, 0),
        }
    }

    /// Points so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.timestamps.len()
    }

    /// Adds a point: microseconds UTC; value, minimum and maximum; the count. Its series is said
    /// by the [`TableBuilder::series`] that follows.
    #[inline]
    pub fn push(&mut self, timestamp: i64, numbers: [Option<f64>; 3], sample_count: Option<i64>) {
        self.timestamps.push(timestamp);
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
        self.sample_counts.push(sample_count);
    }

    /// Says whose the last `rows` points are.
    pub fn series(&mut self, identity: &Identity, rows: usize) {
        for (column, text) in self.identities.iter_mut().zip(&identity.0) {
            let key = text.as_deref().map(|text| column.key(text));
            column.fill(key, rows);
        }
    }

    /// The table: [`schema`] without extra columns.
    ///
    /// # Errors
    /// `Kind::Internal` where a point has no series.
    pub fn finish(self) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(10);
        for column in self.identities {
            arrays.push(column.finish()?);
        }
        arrays.push(timestamp_array(self.timestamps));
        for column in self.numbers {
            let (values, validity) = column.finish();
            arrays.push(Arc::new(Float64Array::new(values.into(), validity)));
        }
        let (counts, validity) = self.sample_counts.finish();
        arrays.push(Arc::new(Int64Array::new(counts.into(), validity)));
        batch(schema(&[]), arrays)
    }
}
