//! Builds a table point by point, without pages.

use std::collections::TryReserveError;

use super::columns::{ColumnsBuilder, PointRow};
use super::merge::SeriesList;
use super::point_columns::{Envelope, Identity, PointColumns};
use crate::error::{Error, Kind, Result};

pub struct TableBuilder {
    columns: ColumnsBuilder<'static>,
    series: SeriesList,
    envelopes: Vec<Envelope>,
}

impl TableBuilder {
    #[must_use]
    pub fn new(rows: usize) -> Self {
        let (columns, series) = (ColumnsBuilder::new(rows, 0), SeriesList::default());
        Self { columns, series, envelopes: Vec::new() }
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

    fn rows_with_series(&self) -> usize {
        self.envelopes.last().map_or(0, |last| last.rows.end)
    }

    /// Sets the series of the points since the last call.
    pub fn series(&mut self, identity: &Identity) {
        let (series, rows) = (self.series.index(identity), self.rows_with_series()..self.rows());
        match self.envelopes.last_mut() {
            Some(last) if last.series == series as usize => last.rows.end = rows.end,
            _ => self.envelopes.push(Envelope { series: series as usize, rows }),
        }
    }

    pub fn finish(self) -> Result<PointColumns> {
        if self.rows_with_series() != self.rows() {
            return Err(Error::new(Kind::InternalError, "A point has no series."));
        }
        self.columns.finish(self.series.identities, self.envelopes, &[])
    }
}
