//! Builds the columns of the points that a read returns.

use std::collections::TryReserveError;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, SchemaRef};

use super::block::PointVersion;
use super::failure::StoreResult;
use super::history::Change;
use super::view::View;
use crate::data::{Identity, PointColumns, TableBuilder};
use crate::error::{Error, Kind, Result};

/// The points of a read so far.
pub struct ShownPoints {
    table: TableBuilder,
    view: View,
    /// An index of [`CHANGES`] if the view shows changes. Otherwise 1 for a withdrawn point.
    marks: Vec<u8>,
}

pub const CHANGES: [&str; 4] = Change::NAMES;

impl ShownPoints {
    /// Allocates space for `rows` points.
    pub(super) fn new(view: View, rows: usize) -> Result<Self, TryReserveError> {
        let mut table = TableBuilder::new(0);
        table.try_reserve(rows)?;
        let mut marks = Vec::new();
        marks.try_reserve_exact(rows)?;
        Ok(Self { table, view, marks })
    }

    pub(super) fn rows(&self) -> usize {
        self.table.rows()
    }

    /// Adds a point. The next call of [`ShownPoints::series`] sets its series.
    #[inline]
    pub(super) fn push(&mut self, row: &PointVersion, change: Change) {
        self.table.push(row.timestamp, row.values.numbers(), row.values.count());
        let mark = if self.view.is_log() { change as u8 } else { u8::from(row.absent) };
        self.marks.push(mark);
    }

    /// Sets the series of the points that were added since the last call.
    pub(super) fn series(&mut self, identity: &Identity) {
        self.table.series(identity);
    }

    /// Returns the columns, and the column of [`View::mark`].
    pub fn finish(mut self) -> Result<(PointColumns, ArrayRef)> {
        self.table.shrink_to_fit();
        Ok((self.table.finish()?, mark_column(self.view, self.marks)?))
    }

    /// Converts the points to a batch with the schema [`View::schema`].
    pub(super) fn batch(self, schema: SchemaRef) -> StoreResult<RecordBatch> {
        let batch = self.table.finish()?.batch()?;
        let mut arrays = batch.columns().to_vec();
        arrays.push(mark_column(self.view, self.marks)?);
        Ok(RecordBatch::try_new(schema, arrays).map_err(broken)?)
    }
}

fn mark_column(view: View, marks: Vec<u8>) -> Result<ArrayRef> {
    if !view.is_log() {
        let marks: Vec<bool> = marks.into_iter().map(|mark| mark != 0).collect();
        return Ok(Arc::new(BooleanArray::from(marks)));
    }
    let names = StringArray::from_iter_values(CHANGES);
    let codes = Int32Array::from_iter_values(marks.into_iter().map(i32::from));
    let column = DictionaryArray::<Int32Type>::try_new(codes, Arc::new(names)).map_err(broken)?;
    Ok(Arc::new(column))
}

#[expect(clippy::needless_pass_by_value, reason = "fits map_err")]
fn broken(error: ArrowError) -> Error {
    Error::new(Kind::InternalError, format!("a column of changes: {error}"))
}
