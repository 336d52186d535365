//! [`ShownPoints`]: the points that a read shows, as columns under construction.

use std::collections::TryReserveError;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
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
    /// For [`View::ChangedSince`] how each point changed: an index of [`CHANGES`].
    changes: Option<Vec<u8>>,
}

/// The names of changes.
pub const CHANGES: [&str; 4] = Change::NAMES;

impl ShownPoints {
    /// No points, with the capacity for `rows`.
    ///
    /// # Errors
    /// There is not so much memory.
    pub(super) fn new(view: View, rows: usize) -> Result<Self, TryReserveError> {
        let mut table = TableBuilder::new(0);
        table.try_reserve(rows)?;
        let mut changes = matches!(view, View::ChangedSince(_)).then(Vec::new);
        if let Some(changes) = &mut changes {
            changes.try_reserve_exact(rows)?;
        }
        Ok(Self { table, changes })
    }

    pub(super) fn rows(&self) -> usize {
        self.table.rows()
    }

    /// Adds a point. The next call of [`ShownPoints::series`] gives its series.
    #[inline]
    pub(super) fn push(&mut self, row: &PointVersion, change: Change) {
        self.table.push(row.timestamp, row.values.numbers(), row.values.count());
        if let Some(changes) = &mut self.changes {
            changes.push(change as u8);
        }
    }

    /// Sets the series of the points that were added since the last call.
    pub(super) fn series(&mut self, identity: &Identity) {
        self.table.series(identity);
    }

    /// The columns, and how each point changed if the view says so.
    ///
    /// # Errors
    /// `InternalError` if a point has no series.
    pub fn finish(mut self) -> Result<(PointColumns, Option<Vec<u8>>)> {
        self.table.shrink_to_fit();
        Ok((self.table.finish()?, self.changes))
    }

    /// The points as a batch of this schema, [`View::schema`].
    pub(super) fn batch(self, schema: SchemaRef) -> StoreResult<RecordBatch> {
        let batch = self.table.finish()?.batch()?;
        let Some(changes) = self.changes else { return Ok(batch) };
        let mut arrays = batch.columns().to_vec();
        arrays.push(change_column(changes)?);
        Ok(RecordBatch::try_new(schema, arrays).map_err(broken)?)
    }
}

/// The column of how points changed.
///
/// # Errors
/// `InternalError` for what is no index of [`CHANGES`].
pub fn change_column(changes: Vec<u8>) -> Result<ArrayRef> {
    let names = StringArray::from_iter_values(CHANGES);
    let codes = Int32Array::from_iter_values(changes.into_iter().map(i32::from));
    let column = DictionaryArray::<Int32Type>::try_new(codes, Arc::new(names)).map_err(broken)?;
    Ok(Arc::new(column))
}

#[expect(clippy::needless_pass_by_value, reason = "fits map_err")]
fn broken(error: ArrowError) -> Error {
    Error::new(Kind::InternalError, format!("a column of changes: {error}"))
}
