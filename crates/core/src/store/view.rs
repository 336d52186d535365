//! The points and versions that a read returns, and their columns.

use std::collections::TryReserveError;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use super::block::PointVersion;
use super::failure::StoreResult;
use super::history::Change;
use super::series_filter::SeriesFilter;
use crate::data::ranges::Ranges;
use crate::data::{Choice, Identity, PointColumns, TableBuilder, batch, broken, schema};
use crate::error::Result;

/// The versions of points that a read returns. The default is the latest version of every point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Only the points that changed since this page request. A column `change` is `new`, `revised`,
    /// `withdrawn`, or `returned` if a point is no longer withdrawn.
    pub since: Option<u64>,
    /// The points as they were after this page request.
    pub until: Option<u64>,
}

impl View {
    pub const LATEST: Self = Self { since: None, until: None };

    #[must_use]
    pub fn as_of(sequence: u64) -> Self {
        Self::LATEST.fixed(sequence)
    }

    #[must_use]
    pub fn changed_since(sequence: u64) -> Self {
        Self { since: Some(sequence), until: None }
    }

    #[must_use]
    pub fn is_log(self) -> bool {
        self.since.is_some()
    }

    /// Fixes the view at a page request, unless it is fixed at an earlier one.
    #[must_use]
    pub fn fixed(self, sequence: u64) -> Self {
        Self { until: self.until.or(Some(sequence)), ..self }
    }

    /// The columns of points, followed by [`View::mark`].
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        let points = schema(&[]);
        let mark = Arc::new(self.mark());
        Arc::new(Schema::new(points.fields().iter().cloned().chain([mark]).collect::<Vec<_>>()))
    }

    /// How each point changed, or whether it is withdrawn.
    #[must_use]
    pub fn mark(self) -> Field {
        let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        if self.is_log() {
            Field::new("change", text, false)
        } else {
            Field::new("withdrawn", DataType::Boolean, false)
        }
    }
}

/// How a read treats points that a later complete read of their window lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flagged {
    #[default]
    Keep,
    Drop,
    Only,
}

impl Choice for Flagged {
    const OPTION: &'static str = "withdrawn";
    const CHOICES: &'static str = "\"keep\", \"drop\" and \"only\"";
}

#[derive(Debug, Clone)]
pub struct PointFilter {
    /// In microseconds.
    pub ranges: Ranges,
    pub view: View,
    pub flagged: Flagged,
    pub series: SeriesFilter,
}

pub struct ShownPoints {
    table: TableBuilder,
    view: View,
    /// An index of [`CHANGES`] if the view shows changes. Otherwise 1 for a withdrawn point.
    marks: Vec<u8>,
}

pub const CHANGES: [&str; 4] = Change::NAMES;

impl ShownPoints {
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

    /// The next call of [`ShownPoints::series`] sets the series of the point.
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

    /// Also returns the column of [`View::mark`].
    pub fn finish(mut self) -> Result<(PointColumns, ArrayRef)> {
        self.table.shrink_to_fit();
        Ok((self.table.finish()?, mark_column(self.view, self.marks)?))
    }

    /// `schema` is [`View::schema`].
    pub(super) fn batch(self, schema: SchemaRef) -> StoreResult<RecordBatch> {
        let mut arrays = self.table.finish()?.batch()?.columns().to_vec();
        arrays.push(mark_column(self.view, self.marks)?);
        Ok(batch(schema, arrays)?)
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
