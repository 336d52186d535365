//! The columns of several pages before the merge, with one allocation per column.
//!
//! The allocator does not return memory that is freed between small allocations. With one large
//! allocation per column, each column is merged into the memory of the previous one. The peak is
//! one table and one column.

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
/// Initial capacity of a large column in bytes. Above 32 MiB glibc always uses `mmap`. Such an
/// allocation only uses the memory that is written, grows without a copy, and is returned to the
/// system when freed.
const INITIAL_BYTES: usize = 33 << 20;

/// Up to this many rows are copied bit by bit.
const FEW: usize = 32;

#[derive(Debug, Clone, Default)]
pub(super) struct PagedColumns {
    pub(super) timestamps: Vec<i64>,
    numbers: [PagedColumn<f64>; 3],
    sample_counts: PagedColumn<i64>,
    /// The pages of each extra column.
    extras: Vec<Vec<StringArray>>,
    /// The first row of each page.
    starts: Vec<usize>,
}

/// The values of all pages, and the nulls of each page.
#[derive(Debug, Clone, Default)]
struct PagedColumn<T> {
    values: Vec<T>,
    nulls: Vec<Option<NullBuffer>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CopyRange {
    pub(super) page: u32,
    start: u32,
    length: u32,
}

impl CopyRange {
    /// `None` for no rows.
    #[inline]
    pub(super) fn new(page: u32, rows: &Range<usize>) -> Option<Self> {
        // Larger pages are rejected.
        let number = |row: usize| u32::try_from(row).unwrap_or(u32::MAX);
        let copied = Self { page, start: number(rows.start), length: number(rows.len()) };
        (copied.length > 0).then_some(copied)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.length as usize
    }

    pub(super) fn first(self, count: usize) -> Self {
        let length = u32::try_from(count).unwrap_or(u32::MAX).min(self.length);
        Self { length, ..self }
    }

    /// Whether `other` follows on the same page.
    #[inline]
    pub(super) fn is_before(&self, other: Self) -> bool {
        self.page == other.page && self.start + self.length == other.start
    }

    /// Appends the rows of `other`, which must follow.
    #[inline]
    pub(super) fn extend(&mut self, other: Self) {
        self.length += other.length;
    }

    /// The rows, numbered on their page.
    #[inline]
    pub(super) fn on_page(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.len()
    }
}

impl PagedColumns {
    pub(super) fn new(extra_columns: usize) -> Self {
        Self { extras: vec![Vec::new(); extra_columns], ..Self::default() }
    }

    pub(super) fn rows(&self) -> usize {
        self.timestamps.len()
    }

    /// The first row, numbered over all pages.
    #[inline]
    pub(super) fn row(&self, rows: CopyRange) -> usize {
        self.starts[rows.page as usize] + rows.start as usize
    }

    /// `row` is numbered over all pages.
    pub(super) fn copy_of_row(&self, page: u32, row: usize) -> CopyRange {
        let start = row - self.starts[page as usize];
        CopyRange { page, start: u32::try_from(start).unwrap_or(u32::MAX), length: 1 }
    }

    /// Adds a page and returns its number. Its rows are numbered from [`PagedColumns::rows`] on.
    pub(super) fn push(&mut self, points: &PointColumns) -> Result<u32> {
        let (Ok(page), Ok(_)) = (u32::try_from(self.starts.len()), u32::try_from(points.rows()))
        else {
            return Err(Error::new(
                Kind::BodyTooLarge,
                "More than four billion points cannot be merged.",
            ));
        };
        self.starts.push(self.rows());
        extend(&mut self.timestamps, points.timestamps.values());
        for (column, array) in self.numbers.iter_mut().zip(&points.numbers) {
            column.push(array);
        }
        self.sample_counts.push(&points.sample_counts);
        for (column, array) in self.extras.iter_mut().zip(&points.extras) {
            column.push(array.clone());
        }
        Ok(page)
    }

    /// Equal bit for bit. Null equals only null.
    pub(super) fn same_values(&self, one: (u32, usize), other: (u32, usize)) -> bool {
        let bits =
            |at| self.numbers.each_ref().map(|column| self.value(column, at).map(f64::to_bits));
        let count = |at| self.value(&self.sample_counts, at);
        bits(one) == bits(other)
            && count(one) == count(other)
            && self.extras.iter().all(|pages| self.text(pages, one) == self.text(pages, other))
    }

    fn value<T: Copy>(&self, column: &PagedColumn<T>, (page, row): (u32, usize)) -> Option<T> {
        let page = page as usize;
        let nulls = column.nulls[page].as_ref();
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row - self.starts[page]));
        (!is_null).then(|| column.values[row])
    }

    fn text<'a>(&self, pages: &'a [StringArray], (page, row): (u32, usize)) -> Option<&'a str> {
        let page = page as usize;
        let (array, row) = (&pages[page], row - self.starts[page]);
        array.is_valid(row).then(|| array.value(row))
    }

    fn in_order(&self, plan: &[CopyRange]) -> bool {
        let mut next = 0;
        plan.iter().all(|rows| {
            let start = self.row(*rows);
            std::mem::replace(&mut next, start + rows.len()) == start
        }) && next == self.rows()
    }

    /// `envelopes` covers the rows.
    pub(super) fn merged(
        self,
        plan: &[CopyRange],
        (series, envelopes): (Vec<Identity>, Vec<Envelope>),
        extra_columns: Vec<String>,
    ) -> Result<PointColumns> {
        let plan = CopyPlan { slices: plan, starts: &self.starts, in_order: self.in_order(plan) };
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

impl<T: ArrowNativeType> PagedColumn<T> {
    fn push<A: ArrowPrimitiveType<Native = T>>(&mut self, page: &PrimitiveArray<A>) {
        extend(&mut self.values, page.values());
        self.nulls.push(page.nulls().cloned());
    }
}

/// Appends values to a column. See [`INITIAL_BYTES`].
fn extend<T: Copy>(column: &mut Vec<T>, values: &[T]) {
    let needed = column.len() + values.len();
    if needed > column.capacity() && needed > LARGE {
        let capacity = (INITIAL_BYTES / size_of::<T>()).max(2 * needed);
        // If the reservation fails, the vector grows by itself.
        let _ = column.try_reserve_exact(capacity - column.len());
    }
    column.extend_from_slice(values);
}

struct CopyPlan<'a> {
    slices: &'a [CopyRange],
    starts: &'a [usize],
    in_order: bool,
}

impl CopyPlan<'_> {
    fn rows(&self) -> usize {
        self.slices.iter().map(CopyRange::len).sum()
    }

    /// Also returns the vector that is no longer used.
    fn values<T: Copy>(&self, values: Vec<T>, spare: Vec<T>) -> (Vec<T>, Vec<T>) {
        let (mut merged, mut rest) = if self.in_order { (values, spare) } else { (spare, values) };
        if !self.in_order {
            merged.clear();
            merged.reserve_exact(self.rows());
            for slice in self.slices {
                let start = self.starts[slice.page as usize] + slice.start as usize;
                let values = &rest[start..start + slice.len()];
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
        for slice in self.slices {
            match &pages[slice.page as usize] {
                None => validity.append_n_non_nulls(slice.len()),
                // Slicing a buffer counts its nulls, so single appends are faster for a few bits.
                Some(nulls) if slice.len() <= FEW => {
                    for row in slice.on_page() {
                        validity.append(nulls.is_valid(row));
                    }
                }
                Some(nulls) => {
                    validity.append_buffer(&nulls.slice(slice.on_page().start, slice.len()));
                }
            }
        }
        validity.finish()
    }

    fn texts(&self, pages: &[StringArray]) -> Result<StringArray> {
        let bytes = |slice: &CopyRange| {
            let (rows, offsets) = (slice.on_page(), pages[slice.page as usize].value_offsets());
            i64::from(offsets[rows.end]) - i64::from(offsets[rows.start])
        };
        let total: i64 = self.slices.iter().map(bytes).sum();
        let Ok(total) = i32::try_from(total) else {
            return Err(Error::new(Kind::BodyTooLarge, "An extra column exceeds 2 GiB of text.")
                .with_hint("Read page by page, or leave out that column."));
        };
        let bytes = usize::try_from(total).unwrap_or(0);
        let mut builder = StringBuilder::with_capacity(self.rows(), bytes);
        for slice in self.slices {
            let array = &pages[slice.page as usize];
            for row in slice.on_page() {
                builder.append_option(array.is_valid(row).then(|| array.value(row)));
            }
        }
        Ok(builder.finish())
    }
}
