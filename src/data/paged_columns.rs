//! The columns of several pages before they are merged: one allocation for all pages of a column.
//!
//! The allocator does not return memory that is freed between small allocations. With one large
//! allocation for each column, the columns are merged one after the other, each into the memory of
//! the previous one: the peak is one table and one column.

use std::ops::Range;
use std::sync::OnceLock;

use arrow_array::builder::StringBuilder;
use arrow_array::{
    Array, ArrowPrimitiveType, Float64Array, Int64Array, PrimitiveArray, StringArray,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, NullBufferBuilder};

use super::point_columns::{Envelope, Identity, PointColumns};
use super::schema::timestamp_array;
use crate::error::{Error, Kind, Result};

/// A column with more rows is large.
const LARGE: usize = 1 << 16;
/// The initial capacity of a large column in bytes: above 32 MiB glibc always uses `mmap`. Such an
/// allocation uses memory only where it is written, grows without a copy, and is returned to the
/// system when it is freed.
const INITIAL_BYTES: usize = 33 << 20;

/// Up to so many rows are copied bit by bit.
const FEW: usize = 32;

/// The columns of all pages.
#[derive(Debug, Clone, Default)]
pub(super) struct PagedColumns {
    timestamps: Vec<i64>,
    numbers: [PagedColumn<f64>; 3],
    sample_counts: PagedColumn<i64>,
    /// For each extra column, its pages.
    extras: Vec<Vec<StringArray>>,
    /// The first row of each page.
    starts: Vec<usize>,
}

/// The values of all pages, and for each page its nulls.
#[derive(Debug, Clone, Default)]
struct PagedColumn<T> {
    values: Vec<T>,
    nulls: Vec<Option<NullBuffer>>,
}

/// Rows of a page to copy into the table, numbered over all pages.
#[derive(Debug)]
pub(super) struct CopyRange {
    pub(super) page: usize,
    pub(super) rows: Range<usize>,
}

impl PagedColumns {
    pub(super) fn new(extra_columns: usize) -> Self {
        Self { extras: vec![Vec::new(); extra_columns], ..Self::default() }
    }

    /// The number of rows of all pages.
    pub(super) fn rows(&self) -> usize {
        self.timestamps.len()
    }

    pub(super) fn timestamps(&self) -> &[i64] {
        &self.timestamps
    }

    /// Adds a page. Its rows are numbered from [`PagedColumns::rows`] on.
    pub(super) fn push(&mut self, points: &PointColumns) {
        self.starts.push(self.rows());
        extend(&mut self.timestamps, points.timestamps.values());
        for (column, array) in self.numbers.iter_mut().zip(&points.numbers) {
            column.push(array);
        }
        self.sample_counts.push(&points.sample_counts);
        for (column, array) in self.extras.iter_mut().zip(&points.extras) {
            column.push(array.clone());
        }
    }

    /// Whether two rows, each given with its page, are equal bit for bit; null equals only null.
    pub(super) fn same_values(&self, one: (usize, usize), other: (usize, usize)) -> bool {
        let bits =
            |at| self.numbers.each_ref().map(|column| self.value(column, at).map(f64::to_bits));
        let count = |at| self.value(&self.sample_counts, at);
        bits(one) == bits(other)
            && count(one) == count(other)
            && self.extras.iter().all(|pages| self.text(pages, one) == self.text(pages, other))
    }

    fn value<T: Copy>(&self, column: &PagedColumn<T>, (page, row): (usize, usize)) -> Option<T> {
        let nulls = column.nulls[page].as_ref();
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row - self.starts[page]));
        (!is_null).then(|| column.values[row])
    }

    fn text<'a>(&self, pages: &'a [StringArray], (page, row): (usize, usize)) -> Option<&'a str> {
        let (array, row) = (&pages[page], row - self.starts[page]);
        array.is_valid(row).then(|| array.value(row))
    }

    /// The rows of the plan as the points of these series; `envelopes` covers them.
    ///
    /// # Errors
    /// `Kind::BodyTooLarge` if an extra column exceeds 2 GiB of text.
    pub(super) fn merged(
        self,
        plan: &[CopyRange],
        (series, envelopes): (Vec<Identity>, Vec<Envelope>),
        extra_columns: Vec<String>,
    ) -> Result<PointColumns> {
        let plan =
            CopyPlan { slices: plan, starts: &self.starts, in_order: in_order(plan, self.rows()) };
        let extras = self.extras.iter().map(|pages| plan.texts(pages)).collect::<Result<_>>()?;
        drop(self.extras);
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
            numbers: [value, minimum, maximum].map(|array: Float64Array| array),
            sample_counts: sample_counts as Int64Array,
            extras,
            series,
            envelopes,
            extra_columns,
            batch: OnceLock::new(),
        })
    }
}

/// Whether the plan is all rows in their present order.
fn in_order(plan: &[CopyRange], rows: usize) -> bool {
    let mut next = 0;
    plan.iter().all(|slice| std::mem::replace(&mut next, slice.rows.end) == slice.rows.start)
        && next == rows
}

impl<T: ArrowNativeType> PagedColumn<T> {
    fn push<A: ArrowPrimitiveType<Native = T>>(&mut self, page: &PrimitiveArray<A>) {
        extend(&mut self.values, page.values());
        self.nulls.push(page.nulls().cloned());
    }
}

/// Adds a page's values. See [`INITIAL_BYTES`].
fn extend<T: Copy>(column: &mut Vec<T>, values: &[T]) {
    let needed = column.len() + values.len();
    if needed > column.capacity() && needed > LARGE {
        let capacity = (INITIAL_BYTES / size_of::<T>()).max(2 * needed);
        // If this fails, the vector grows by itself.
        let _ = column.try_reserve_exact(capacity - column.len());
    }
    column.extend_from_slice(values);
}

/// The rows of the table.
struct CopyPlan<'a> {
    slices: &'a [CopyRange],
    /// The first row of each page.
    starts: &'a [usize],
    /// The table has all rows in their present order.
    in_order: bool,
}

impl CopyPlan<'_> {
    fn rows(&self) -> usize {
        self.slices.iter().map(|slice| slice.rows.len()).sum()
    }

    /// Copies the table's values into `spare`; also returns the vector that is free then.
    fn values<T: Copy>(&self, values: Vec<T>, spare: Vec<T>) -> (Vec<T>, Vec<T>) {
        let (mut merged, mut rest) = if self.in_order { (values, spare) } else { (spare, values) };
        if !self.in_order {
            merged.clear();
            merged.reserve_exact(self.rows());
            for slice in self.slices {
                merged.extend_from_slice(&rest[slice.rows.clone()]);
            }
            rest.clear();
        }
        merged.shrink_to_fit();
        (merged, rest)
    }

    fn column<T: ArrowNativeType, A: ArrowPrimitiveType<Native = T>>(
        &self,
        column: PagedColumn<T>,
        spare: Vec<T>,
    ) -> (PrimitiveArray<A>, Vec<T>) {
        let validity = self.validity(&column.nulls);
        let (values, spare) = self.values(column.values, spare);
        (PrimitiveArray::new(values.into(), validity), spare)
    }

    fn validity(&self, pages: &[Option<NullBuffer>]) -> Option<NullBuffer> {
        if pages.iter().all(Option::is_none) {
            return None;
        }
        let mut validity = NullBufferBuilder::new(self.rows());
        for CopyRange { page, rows } in self.slices {
            let first = rows.start - self.starts[*page];
            match &pages[*page] {
                None => validity.append_n_non_nulls(rows.len()),
                // Slicing a buffer counts its nulls: for a few bits, single appends are faster.
                Some(nulls) if rows.len() <= FEW => {
                    for row in first..first + rows.len() {
                        validity.append(nulls.is_valid(row));
                    }
                }
                Some(nulls) => validity.append_buffer(&nulls.slice(first, rows.len())),
            }
        }
        validity.finish()
    }

    fn texts(&self, pages: &[StringArray]) -> Result<StringArray> {
        let local = |slice: &CopyRange| {
            let start = self.starts[slice.page];
            slice.rows.start - start..slice.rows.end - start
        };
        let bytes = |slice: &CopyRange| {
            let (rows, offsets) = (local(slice), pages[slice.page].value_offsets());
            i64::from(offsets[rows.end]) - i64::from(offsets[rows.start])
        };
        let total: i64 = self.slices.iter().map(bytes).sum();
        let Ok(total) = i32::try_from(total) else {
            return Err(Error::new(Kind::BodyTooLarge, "an extra column exceeds 2 GiB of text")
                .with_hint("Read page by page, or remove that column."));
        };
        let bytes = usize::try_from(total).unwrap_or(0);
        let mut builder = StringBuilder::with_capacity(self.rows(), bytes);
        for slice in self.slices {
            let array = &pages[slice.page];
            for row in local(slice) {
                builder.append_option(array.is_valid(row).then(|| array.value(row)));
            }
        }
        Ok(builder.finish())
    }
}
