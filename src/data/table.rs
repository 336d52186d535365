//! A table built point by point, for whoever has points that did not come from a page.

use arrow_array::RecordBatch;

use super::columns::{Columns, Row, schema};
use super::decode::Identity;
use crate::error::Result;

/// The ten columns under construction.
pub struct TableBuilder(Columns<'static>);

impl TableBuilder {
    /// An empty table with room for so many points.
    #[must_use]
    pub fn new(rows: usize) -> Self {
        Self(Columns::new(rows, 0))
    }

    /// Points so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Adds a point: microseconds UTC; value, minimum and maximum; the count. Its series is said
    /// by the [`TableBuilder::series`] that follows.
    #[inline]
    pub fn push(&mut self, timestamp: i64, numbers: [Option<f64>; 3], sample_count: Option<i64>) {
        let mut row = Row::new(timestamp);
        for (place, number) in numbers.into_iter().enumerate() {
            if let Some(number) = number {
                row.set_number(place, number);
            }
        }
        if let Some(count) = sample_count {
            row.set_count(count);
        }
        self.0.push(&row, &[]);
    }

    /// Says whose the last `rows` points are.
    pub fn series(&mut self, identity: &Identity, rows: usize) {
        for (column, text) in self.0.identities.iter_mut().zip(&identity.0) {
            let key = text.as_deref().map(|text| column.key(text));
            column.fill(key, rows);
        }
    }

    /// The table: [`schema`] without extra columns.
    ///
    /// # Errors
    /// `Kind::Internal` where a point has no series.
    pub fn finish(self) -> Result<RecordBatch> {
        self.0.finish(schema(&[]))
    }
}
