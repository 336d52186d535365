//! Builds a table point by point, without pages.

use std::collections::{HashMap, TryReserveError};

use super::columns::{ColumnsBuilder, PointRow};
use super::point_columns::{Envelope, Identity, PointColumns};
use crate::error::{Error, Kind, Result};

pub struct TableBuilder {
    columns: ColumnsBuilder<'static>,
    series: Vec<Identity>,
    known: HashMap<Identity, usize>,
    envelopes: Vec<Envelope>,
}

impl TableBuilder {
    #[must_use]
    pub fn new(rows: usize) -> Self {
        let columns = ColumnsBuilder::new(rows, 0);
        Self { columns, series: Vec::new(), known: HashMap::new(), envelopes: Vec::new() }
    }

    pub(crate) fn try_reserve(&mut self, rows: usize) -> Result<(), TryReserveError> {
        self.columns.try_reserve(rows)
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.columns.shrink_to_fit();
    }

    pub fn rows(&self) -> usize {
        self.columns.rows()
    }

    /// The time is in microseconds UTC. The next call of [`TableBuilder::series`] sets its series.
    #[inline]
    pub fn push(&mut self, timestamp: i64, numbers: [Option<f64>; 3], sample_count: Option<i64>) {
        let mut row = PointRow::new(timestamp);
        for (index, number) in numbers.into_iter().enumerate() {
            if let Some(number) = number {
                row.set_number(index, number);
            }
        }
        if let Some(count) = sample_count {
            row.set_count(count);
        }
        self.columns.push(&row, &[]);
    }

    /// Sets the series of the points since the last call.
    pub fn series(&mut self, identity: &Identity) {
        let rows = self.envelopes.last().map_or(0, |last| last.rows.end)..self.rows();
        if let Some(last) = self.envelopes.last_mut()
            && self.series[last.series] == *identity
        {
            last.rows.end = rows.end;
            return;
        }
        let series = self.known.get(identity).copied().unwrap_or_else(|| {
            self.series.push(identity.clone());
            self.known.insert(identity.clone(), self.series.len() - 1);
            self.series.len() - 1
        });
        self.envelopes.push(Envelope { series, rows });
    }

    /// Extra columns are dropped.
    pub(super) fn joined(tables: &[&PointColumns]) -> Result<PointColumns> {
        let mut joined = Self::new(tables.iter().map(|table| table.rows()).sum());
        for table in tables {
            for (identity, rows) in table.identified() {
                rows.for_each(|row| joined.push_row(table, row));
                joined.series(identity);
            }
        }
        joined.finish()
    }

    /// The next call of [`TableBuilder::series`] sets its series.
    #[inline]
    pub(super) fn push_row(&mut self, table: &PointColumns, row: usize) {
        let (numbers, count) = table.values(row);
        self.push(table.timestamps.value(row), numbers, count);
    }

    pub fn finish(self) -> Result<PointColumns> {
        if self.envelopes.last().map_or(0, |last| last.rows.end) != self.rows() {
            return Err(Error::new(Kind::InternalError, "A point has no series."));
        }
        self.columns.finish(self.series, self.envelopes, &[])
    }
}
