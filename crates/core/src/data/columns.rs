//! Builds columns row by row.

use std::collections::TryReserveError;
use std::sync::OnceLock;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array as _, ArrowPrimitiveType, Float64Array, Int64Array, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, NullBuffer, NullBufferBuilder};

use super::paged_columns::extend;
use super::point_columns::{Envelope, Identity, PointColumns};
use super::schema::timestamp_array;
use crate::error::{Error, Kind, Result};

/// Limit of all extra columns of a page. An envelope's member is copied for each of its points, so
/// a small body may need much memory.
const EXTRA_BYTES: usize = 256 << 20;

#[derive(Debug, Clone, Copy)]
pub(super) struct PointRow {
    pub(super) timestamp: i64,
    /// Value, minimum, maximum. NaN if missing or null, so that numpy can view the column.
    numbers: [f64; 3],
    /// 0 if missing or null.
    sample_count: i64,
    /// A bit for each of the three numbers and the count, set if it has a value.
    present: u8,
}

impl PointRow {
    const ALL: u8 = 0b1111;

    pub(super) fn new(timestamp: i64) -> Self {
        Self { timestamp, numbers: [f64::NAN; 3], sample_count: 0, present: 0 }
    }

    #[inline]
    pub(super) fn set_number(&mut self, index: usize, number: f64) {
        self.numbers[index] = number;
        self.present |= 1 << index;
    }

    #[inline]
    pub(super) fn set_count(&mut self, count: i64) {
        self.sample_count = count;
        self.present |= 1 << self.numbers.len();
    }
}

/// A column of numbers under construction. Null values contain NaN or 0.
#[derive(Debug)]
pub(super) struct NumberColumn<T> {
    values: Vec<T>,
    /// All later rows are valid.
    validity: NullBufferBuilder,
}

impl<T: ArrowNativeType> NumberColumn<T> {
    pub(super) fn new(rows: usize) -> Self {
        Self { values: Vec::with_capacity(rows), validity: NullBufferBuilder::new(rows) }
    }

    pub(super) fn append<A: ArrowPrimitiveType<Native = T>>(&mut self, page: &PrimitiveArray<A>) {
        if let Some(nulls) = page.nulls() {
            self.complete(0);
            self.validity.append_buffer(nulls);
        }
        extend(&mut self.values, page.values());
    }

    pub(super) fn value(&self, row: usize) -> Option<T> {
        let is_valid = row >= self.validity.len() || self.validity.is_valid(row);
        is_valid.then(|| self.values[row])
    }

    fn nullify(&mut self) {
        self.complete(1);
        self.validity.append_null();
    }

    /// Extends the validity to all values except the last ones.
    fn complete(&mut self, last: usize) {
        self.validity.append_n_non_nulls(self.values.len() - last - self.validity.len());
    }

    pub(super) fn finish(mut self) -> (Vec<T>, Option<NullBuffer>) {
        self.complete(0);
        (self.values, self.validity.finish())
    }
}

impl<T: ArrowNativeType> Default for NumberColumn<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<T: ArrowNativeType> Clone for NumberColumn<T> {
    fn clone(&self) -> Self {
        let mut validity = NullBufferBuilder::new(0);
        match self.validity.finish_cloned() {
            Some(nulls) => validity.append_buffer(&nulls),
            None => validity.append_n_non_nulls(self.validity.len()),
        }
        Self { values: self.values.clone(), validity }
    }
}

pub(super) struct ColumnsBuilder<'a> {
    timestamps: Vec<i64>,
    numbers: [NumberColumn<f64>; 3],
    sample_counts: NumberColumn<i64>,
    /// JSON text, for each extra column and row.
    extras: Vec<Vec<Option<&'a str>>>,
}

impl<'a> ColumnsBuilder<'a> {
    pub(super) fn new(rows: usize, extras: usize) -> Self {
        Self {
            timestamps: Vec::with_capacity(rows),
            numbers: std::array::from_fn(|_| NumberColumn::new(rows)),
            sample_counts: NumberColumn::new(rows),
            extras: vec![Vec::with_capacity(rows); extras],
        }
    }

    pub(super) fn try_reserve(&mut self, rows: usize) -> Result<(), TryReserveError> {
        self.timestamps.try_reserve_exact(rows)?;
        for column in &mut self.numbers {
            column.values.try_reserve_exact(rows)?;
        }
        self.sample_counts.values.try_reserve_exact(rows)
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.timestamps.shrink_to_fit();
        for column in &mut self.numbers {
            column.values.shrink_to_fit();
        }
        self.sample_counts.values.shrink_to_fit();
    }

    pub(super) fn rows(&self) -> usize {
        self.timestamps.len()
    }

    #[inline]
    pub(super) fn push(&mut self, row: &PointRow, extras: &[Option<&'a str>]) {
        self.timestamps.push(row.timestamp);
        for (column, number) in self.numbers.iter_mut().zip(row.numbers) {
            column.values.push(number);
        }
        self.sample_counts.values.push(row.sample_count);
        if row.present != PointRow::ALL {
            self.nullify(row.present);
        }
        for (column, text) in self.extras.iter_mut().zip(extras) {
            column.push(*text);
        }
    }

    #[cold]
    fn nullify(&mut self, present: u8) {
        for (index, column) in self.numbers.iter_mut().enumerate() {
            if present & (1 << index) == 0 {
                column.nullify();
            }
        }
        if present & (1 << self.numbers.len()) == 0 {
            self.sample_counts.nullify();
        }
    }

    /// For the envelope's points without a member of that name.
    pub(super) fn fill_extra(&mut self, column: usize, from_row: usize, text: &'a str) {
        for slot in &mut self.extras[column][from_row..] {
            slot.get_or_insert(text);
        }
    }

    /// `series` and `envelopes` define the series of the rows.
    pub(super) fn finish(
        self,
        series: Vec<Identity>,
        envelopes: Vec<Envelope>,
        extra_columns: &[String],
    ) -> Result<PointColumns> {
        let extra_bytes: usize =
            self.extras.iter().flatten().flatten().map(|text| text.len()).sum();
        if extra_bytes > EXTRA_BYTES {
            return Err(Error::new(
                Kind::BodyTooLarge,
                format!("The extra columns of this page exceed {} MiB.", EXTRA_BYTES >> 20),
            )
            .with_hint("Remove the longest of extra_columns, or use a smaller page_size."));
        }
        let texts = |column: Vec<Option<&str>>| {
            let mut builder = StringBuilder::with_capacity(column.len(), extra_bytes);
            for text in column {
                builder.append_option(text);
            }
            builder.finish()
        };
        let (counts, validity) = self.sample_counts.finish();
        Ok(PointColumns {
            timestamps: timestamp_array(self.timestamps),
            numbers: self.numbers.map(|column| {
                let (values, validity) = column.finish();
                Float64Array::new(values.into(), validity)
            }),
            sample_counts: Int64Array::new(counts.into(), validity),
            extras: self.extras.into_iter().map(texts).collect(),
            series,
            envelopes,
            extra_columns: extra_columns.to_vec(),
            batch: OnceLock::new(),
        })
    }
}
