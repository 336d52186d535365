//! The columns of several pages before the merge, with one allocation per column.
//!
//! The allocator does not return memory that is freed between small allocations. With one large
//! allocation per column, each column is merged into the memory of the previous one. The peak is
//! one table and one column.

use std::ops::Range;
use std::sync::OnceLock;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, StringArray};
use arrow_buffer::{ArrowNativeType, NullBuffer, NullBufferBuilder};

use super::columns::NumberColumn;
use super::point_columns::{Envelope, Identity, PointColumns};
use super::schema::timestamp_array;
use crate::error::{Error, Kind, Result};

/// A column with more rows is large.
const LARGE: usize = 1 << 16;
/// Initial capacity of a large column in bytes. Above 32 MiB glibc always uses `mmap`. Such an
/// allocation only uses the memory that is written, grows without a copy, and is returned to the
/// system when freed.
const INITIAL_BYTES: usize = 33 << 20;

/// Up to this many rows are copied bit by bit.
const FEW: usize = 32;

/// Rows are numbered over all pages.
#[derive(Debug, Clone, Default)]
pub(super) struct PagedColumns {
    pub(super) timestamps: Vec<i64>,
    numbers: [NumberColumn<f64>; 3],
    sample_counts: NumberColumn<i64>,
    /// The pages of each extra column.
    extras: Vec<Vec<StringArray>>,
    /// The first row of each page.
    starts: Vec<usize>,
}

/// The numbers of a page's rows. `first` is the number of its first row.
#[inline]
pub(super) fn numbered(first: u32, rows: &Range<usize>) -> Range<u32> {
    // `PagedColumns::push` has rejected larger numbers.
    let number = |row: usize| first + u32::try_from(row).unwrap_or_default();
    number(rows.start)..number(rows.end)
}

impl PagedColumns {
    pub(super) fn new(extra_columns: usize) -> Self {
        Self { extras: vec![Vec::new(); extra_columns], ..Self::default() }
    }

    pub(super) fn rows(&self) -> usize {
        self.timestamps.len()
    }

    /// Adds a page and returns the number of its first row.
    pub(super) fn push(&mut self, points: &PointColumns) -> Result<u32> {
        let start = self.rows();
        let (Ok(first), Ok(_)) = (u32::try_from(start), u32::try_from(start + points.rows()))
        else {
            return Err(Error::new(
                Kind::BodyTooLarge,
                "More than four billion points cannot be merged.",
            ));
        };
        self.starts.push(start);
        extend(&mut self.timestamps, points.timestamps.values());
        for (column, array) in self.numbers.iter_mut().zip(&points.numbers) {
            column.append(array);
        }
        self.sample_counts.append(&points.sample_counts);
        for (column, array) in self.extras.iter_mut().zip(&points.extras) {
            column.push(array.clone());
        }
        Ok(first)
    }

    /// Equal bit for bit. Null equals only null.
    pub(super) fn same_values(&self, one: u32, other: u32) -> bool {
        let bits = |row| self.numbers.each_ref().map(|column| column.value(row).map(f64::to_bits));
        let [one, other] = [one, other].map(|row| row as usize);
        bits(one) == bits(other)
            && self.sample_counts.value(one) == self.sample_counts.value(other)
            && self.extras.iter().all(|pages| self.text(pages, one) == self.text(pages, other))
    }

    fn text<'a>(&self, pages: &'a [StringArray], row: usize) -> Option<&'a str> {
        let page = self.starts.partition_point(|start| *start <= row) - 1;
        let (array, row) = (&pages[page], row - self.starts[page]);
        array.is_valid(row).then(|| array.value(row))
    }

    fn texts(&self, pages: &[StringArray], plan: &[Range<u32>]) -> Result<StringArray> {
        let texts = || plan.iter().cloned().flatten().map(|row| self.text(pages, row as usize));
        let bytes: usize = texts().flatten().map(str::len).sum();
        if i32::try_from(bytes).is_err() {
            return Err(Error::new(Kind::BodyTooLarge, "An extra column exceeds 2 GiB of text.")
                .with_hint("Read page by page, or leave out that column."));
        }
        let mut builder = StringBuilder::with_capacity(self.rows(), bytes);
        texts().for_each(|text| builder.append_option(text));
        Ok(builder.finish())
    }

    fn in_order(&self, plan: &[Range<u32>]) -> bool {
        let mut next = 0;
        plan.iter().all(|rows| std::mem::replace(&mut next, rows.end) == rows.start)
            && next as usize == self.rows()
    }

    /// `envelopes` covers the rows of `plan`.
    pub(super) fn merged(
        mut self,
        plan: &[Range<u32>],
        (series, envelopes): (Vec<Identity>, Vec<Envelope>),
        extra_columns: Vec<String>,
    ) -> Result<PointColumns> {
        let extras = self.extras.iter().map(|pages| self.texts(pages, plan));
        let extras = extras.collect::<Result<_>>()?;
        self.extras.clear();
        let plan = CopyPlan { slices: plan, in_order: self.in_order(plan) };
        let (timestamps, spare) = plan.values(self.timestamps, Vec::new());
        let (sample_counts, spare) = plan.column(self.sample_counts, spare);
        drop(spare);
        let [value, minimum, maximum] = self.numbers;
        let (value, spare) = plan.column(value, Vec::new());
        let (minimum, spare) = plan.column(minimum, spare);
        let (maximum, spare) = plan.column(maximum, spare);
        drop(spare);
        Ok(PointColumns {
            timestamps: timestamp_array(timestamps),
            numbers: [value, minimum, maximum],
            sample_counts,
            extras,
            series,
            envelopes,
            extra_columns,
            batch: OnceLock::new(),
        })
    }
}

/// Appends values to a column. See [`INITIAL_BYTES`].
pub(super) fn extend<T: Copy>(column: &mut Vec<T>, values: &[T]) {
    let needed = column.len() + values.len();
    if needed > column.capacity() && needed > LARGE {
        let capacity = (INITIAL_BYTES / size_of::<T>()).max(2 * needed);
        // If the reservation fails, the vector grows by itself.
        let _ = column.try_reserve_exact(capacity - column.len());
    }
    column.extend_from_slice(values);
}

struct CopyPlan<'a> {
    slices: &'a [Range<u32>],
    in_order: bool,
}

impl CopyPlan<'_> {
    fn rows(&self) -> usize {
        self.slices.iter().map(ExactSizeIterator::len).sum()
    }

    /// Also returns the vector that is no longer used.
    fn values<T: Copy>(&self, values: Vec<T>, spare: Vec<T>) -> (Vec<T>, Vec<T>) {
        let (mut merged, mut rest) = if self.in_order { (values, spare) } else { (spare, values) };
        if !self.in_order {
            merged.clear();
            merged.reserve_exact(self.rows());
            for slice in self.slices {
                let values = &rest[slice.start as usize..slice.end as usize];
                if values.len() <= FEW {
                    // Avoids a call for each slice.
                    merged.extend(values.iter().copied());
                } else {
                    merged.extend_from_slice(values);
                }
            }
            rest.clear();
        }
        merged.shrink_to_fit();
        (merged, rest)
    }

    fn column<T: ArrowNativeType, A: ArrowPrimitiveType<Native = T>>(
        &self,
        column: NumberColumn<T>,
        spare: Vec<T>,
    ) -> (PrimitiveArray<A>, Vec<T>) {
        let (values, nulls) = column.finish();
        let validity = nulls.and_then(|nulls| self.validity(&nulls));
        let (values, spare) = self.values(values, spare);
        (PrimitiveArray::new(values.into(), validity), spare)
    }

    fn validity(&self, nulls: &NullBuffer) -> Option<NullBuffer> {
        let mut validity = NullBufferBuilder::new(self.rows());
        for slice in self.slices {
            // Slicing a buffer counts its nulls, so single appends are faster for a few bits.
            if slice.len() <= FEW {
                for row in slice.clone() {
                    validity.append(nulls.is_valid(row as usize));
                }
            } else {
                validity.append_buffer(&nulls.slice(slice.start as usize, slice.len()));
            }
        }
        validity.finish()
    }
}
