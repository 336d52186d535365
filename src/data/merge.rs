//! Pages into one table (§4.5, rule 3): points are the same by series and bucket timestamp, the
//! version that was asked for last wins, and the order in which pages arrive makes no difference.
//!
//! A point's version is the sequence number of its page, then its row. Pages mostly bring each
//! series in ascending order, so whole runs are copied; rows are compared only in a series whose
//! runs overlap.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, Float64Array, Int64Array, PrimitiveArray, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow_buffer::NullBuffer;

use super::columns::{IdentityColumn, Numbers, batch, floats, schema, timestamp_array};
use super::decode::{Envelope, Identity};
use super::page::Page;
use super::report::PageReport;
use crate::error::{Error, Kind, Result};

/// What merging did. Counts are the same whatever the order of arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// Pages merged.
    pub pages: u64,
    /// Points on those pages.
    pub points_read: u64,
    /// Points in the table.
    pub points: u64,
    /// Series in the table.
    pub series: u64,
    /// Points that came again with the same values.
    pub repeated: u64,
    /// Points that came again with other values: a newer version replaced an older one.
    pub revised: u64,
    /// The pages' own reports together.
    pub quality: PageReport,
}

/// The table of all pages.
#[derive(Debug, Clone)]
pub struct Merged {
    /// One row per point, by identity (null first), then timestamp; see [`schema`].
    pub batch: RecordBatch,
    /// What merging did.
    pub report: MergeReport,
}

/// Collects pages. Cheap to clone: clones share the pages' columns.
#[derive(Debug, Clone)]
pub struct Merger {
    extra_columns: Vec<String>,
    pages: Vec<PageColumns>,
    sequences: HashSet<u64>,
    series: Vec<(Identity, Vec<Run>)>,
    known: HashMap<Identity, usize>,
    report: MergeReport,
}

/// A page's columns without the identities, which its runs hold.
#[derive(Debug, Clone)]
struct PageColumns {
    sequence: u64,
    timestamps: TimestampMicrosecondArray,
    numbers: [Float64Array; 3],
    sample_counts: Int64Array,
    extras: Vec<StringArray>,
}

/// Neighbouring rows of one series on one page.
#[derive(Debug, Clone)]
struct Run {
    page: usize,
    rows: Range<usize>,
    first: i64,
    last: i64,
    ascending: bool,
}

/// Rows to copy: the table is a list of these.
struct Slice {
    page: usize,
    rows: Range<usize>,
}

impl Merger {
    /// An empty table with these extra columns.
    #[must_use]
    pub fn new(extra_columns: &[String]) -> Self {
        Self {
            extra_columns: extra_columns.to_vec(),
            pages: Vec::new(),
            sequences: HashSet::new(),
            series: Vec::new(),
            known: HashMap::new(),
            report: MergeReport::default(),
        }
    }

    /// Adds a page; one whose sequence number is there already is ignored.
    ///
    /// # Errors
    /// `Kind::Internal` for a page with other columns.
    pub fn push(&mut self, page: &Page) -> Result<()> {
        let columns = PageColumns::new(page.sequence, &page.batch, &self.extra_columns)?;
        if !self.sequences.insert(page.sequence) {
            return Ok(());
        }
        self.add(columns, &page.envelopes);
        self.report.pages += 1;
        self.report.points_read += page.rows() as u64;
        self.report.quality.merge(&page.report);
        Ok(())
    }

    /// Adds a table that other pages were merged to, as if it were the newest page: sequence numbers
    /// of different chains collide, so it gets the next one, and wins over all that is there. Its
    /// report counts as its pages' own would.
    ///
    /// # Errors
    /// `Kind::Internal` for a table with other columns.
    pub fn push_merged(&mut self, table: &Merged) -> Result<()> {
        let sequence = self.next_sequence();
        let columns = PageColumns::new(sequence, &table.batch, &self.extra_columns)?;
        self.sequences.insert(sequence);
        self.add(columns, &series_of(&table.batch));
        let report = &table.report;
        self.report.pages += report.pages;
        self.report.points_read += report.points_read;
        self.report.repeated += report.repeated;
        self.report.revised += report.revised;
        self.report.quality.merge(&report.quality);
        Ok(())
    }

    fn add(&mut self, columns: PageColumns, envelopes: &[Envelope]) {
        let index = self.pages.len();
        // The page numbers its series, so each is looked up once a page and not once an envelope.
        let mut places: Vec<Option<usize>> = Vec::new();
        for envelope in envelopes {
            if places.len() <= envelope.series {
                places.resize(envelope.series + 1, None);
            }
            let place = match places[envelope.series] {
                Some(place) => place,
                None => self.place(&envelope.identity),
            };
            places[envelope.series] = Some(place);
            add_run(&mut self.series[place].1, index, envelope, columns.timestamps.values());
        }
        self.pages.push(columns);
    }

    fn place(&mut self, identity: &Identity) -> usize {
        if let Some(place) = self.known.get(identity) {
            return *place;
        }
        self.series.push((identity.clone(), Vec::new()));
        self.known.insert(identity.clone(), self.series.len() - 1);
        self.series.len() - 1
    }

    /// Pages merged so far.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.report.pages
    }

    /// The sequence number that a further page needs to win over all there are.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.sequences.iter().max().map_or(1, |last| last + 1)
    }

    /// The table.
    ///
    /// # Errors
    /// `Kind::BodyTooLarge` when an extra column passes 2 GiB of text.
    pub fn finish(mut self) -> Result<Merged> {
        self.series.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        let mut plan: Vec<Slice> = Vec::new();
        let mut lengths = Vec::with_capacity(self.series.len());
        for (_, runs) in &mut self.series {
            let before = plan.len();
            runs.sort_unstable_by_key(|run| (run.first, run.last));
            let apart = runs.is_sorted_by(|left, right| left.last < right.first);
            if apart && runs.iter().all(|run| run.ascending) {
                plan.extend(runs.drain(..).map(|Run { page, rows, .. }| Slice { page, rows }));
            } else {
                resolve(runs, &self.pages, &mut plan, &mut self.report);
            }
            lengths.push(plan[before..].iter().map(|slice| slice.rows.len()).sum::<usize>());
        }
        self.report.points = lengths.iter().sum::<usize>() as u64;
        self.report.series = lengths.iter().filter(|length| **length > 0).count() as u64;
        let identities: Vec<(Identity, usize)> =
            self.series.into_iter().map(|(identity, _)| identity).zip(lengths).collect();
        let rows = identities.iter().map(|(_, length)| length).sum();
        let mut arrays = identity_arrays(&identities, rows)?;
        Sources::new(self.pages, self.extra_columns.len()).copy(&plan, rows, &mut arrays)?;
        let batch = batch(schema(&self.extra_columns), arrays)?;
        Ok(Merged { batch, report: self.report })
    }
}

/// The series of a table, each in one envelope: its rows are in their order.
fn series_of(batch: &RecordBatch) -> Vec<Envelope> {
    let columns: [_; 5] = std::array::from_fn(|place| {
        let column = batch.column(place).as_dictionary::<Int32Type>();
        (column, column.values().as_string::<i32>())
    });
    let keys = |row: usize| columns.map(|(column, _)| column.key(row));
    let mut envelopes: Vec<Envelope> = Vec::new();
    let mut last = None;
    for row in 0..batch.num_rows() {
        let keys = keys(row);
        if last == Some(keys)
            && let Some(envelope) = envelopes.last_mut()
        {
            envelope.rows.end = row + 1;
            continue;
        }
        last = Some(keys);
        let text = |place: usize| keys[place].map(|key| Arc::from(columns[place].1.value(key)));
        let identity = Identity(std::array::from_fn(text));
        envelopes.push(Envelope { identity, series: envelopes.len(), rows: row..row + 1 });
    }
    envelopes
}

/// Adds an envelope's rows, to the last run where they go on with it.
fn add_run(runs: &mut Vec<Run>, page: usize, envelope: &Envelope, timestamps: &[i64]) {
    let rows = envelope.rows.clone();
    let added = &timestamps[rows.clone()];
    let (Some(first), Some(last)) = (added.first(), added.last()) else { return };
    let ascending = added.is_sorted_by(|earlier, later| earlier < later);
    if let Some(run) = runs.last_mut()
        && run.page == page
        && run.rows.end == rows.start
        && run.ascending
        && ascending
        && run.last < *first
    {
        run.rows.end = rows.end;
        run.last = *last;
        return;
    }
    runs.push(Run { page, rows, first: *first, last: *last, ascending });
}

/// Puts the rows of overlapping runs in order, the last version of each timestamp winning.
fn resolve(runs: &[Run], pages: &[PageColumns], plan: &mut Vec<Slice>, report: &mut MergeReport) {
    let mut rows: Vec<(i64, u64, usize, usize)> = runs
        .iter()
        .flat_map(|run| {
            let page = &pages[run.page];
            let timestamps = page.timestamps.values();
            run.rows.clone().map(|row| (timestamps[row], page.sequence, row, run.page))
        })
        .collect();
    rows.sort_unstable();
    let first_slice = plan.len();
    for (index, &(timestamp, _, row, page)) in rows.iter().enumerate() {
        if let Some(&(next_timestamp, _, next_row, next_page)) = rows.get(index + 1)
            && timestamp == next_timestamp
        {
            if pages[page].same_values(row, &pages[next_page], next_row) {
                report.repeated += 1;
            } else {
                report.revised += 1;
            }
            continue;
        }
        match plan[first_slice..].last_mut() {
            Some(slice) if slice.page == page && slice.rows.end == row => slice.rows.end += 1,
            _ => plan.push(Slice { page, rows: row..row + 1 }),
        }
    }
}

impl PageColumns {
    fn new(sequence: u64, batch: &RecordBatch, extra_columns: &[String]) -> Result<Self> {
        if batch.schema() != schema(extra_columns) {
            return Err(Error::new(Kind::Internal, "a page with other columns cannot be merged"));
        }
        let column = |index: usize| batch.column(index);
        Ok(Self {
            sequence,
            timestamps: column(5).as_primitive::<TimestampMicrosecondType>().clone(),
            numbers: [6, 7, 8].map(|index| column(index).as_primitive::<Float64Type>().clone()),
            sample_counts: column(9).as_primitive::<Int64Type>().clone(),
            extras: (10..batch.num_columns()).map(|i| column(i).as_string().clone()).collect(),
        })
    }

    /// Whether two rows say the same, bit for bit; null is equal to null only.
    fn same_values(&self, row: usize, other: &Self, other_row: usize) -> bool {
        let float =
            |array: &Float64Array, row| array.is_valid(row).then(|| array.value(row).to_bits());
        let count = |array: &Int64Array, row| array.is_valid(row).then(|| array.value(row));
        let numbers = self.numbers.iter().zip(&other.numbers);
        let extras = self.extras.iter().zip(&other.extras);
        numbers.into_iter().all(|(mine, theirs)| float(mine, row) == float(theirs, other_row))
            && count(&self.sample_counts, row) == count(&other.sample_counts, other_row)
            && extras.into_iter().all(|(mine, theirs)| {
                let mine_text = mine.is_valid(row).then(|| mine.value(row));
                mine_text == theirs.is_valid(other_row).then(|| theirs.value(other_row))
            })
    }
}

/// The pages' columns, all pages of one column together. Each column is let go as soon as it is
/// copied, so that the peak is one table and one column and not two tables.
struct Sources {
    timestamps: Vec<TimestampMicrosecondArray>,
    numbers: [Vec<Float64Array>; 3],
    sample_counts: Vec<Int64Array>,
    extras: Vec<Vec<StringArray>>,
}

impl Sources {
    fn new(pages: Vec<PageColumns>, extra_columns: usize) -> Self {
        let mut sources = Self {
            timestamps: Vec::with_capacity(pages.len()),
            numbers: Default::default(),
            sample_counts: Vec::with_capacity(pages.len()),
            extras: vec![Vec::with_capacity(pages.len()); extra_columns],
        };
        for page in pages {
            sources.timestamps.push(page.timestamps);
            sources.sample_counts.push(page.sample_counts);
            for (column, array) in sources.numbers.iter_mut().zip(page.numbers) {
                column.push(array);
            }
            for (column, array) in sources.extras.iter_mut().zip(page.extras) {
                column.push(array);
            }
        }
        sources
    }

    /// Copies the plan's rows into the columns that follow the identities.
    fn copy(self, plan: &[Slice], rows: usize, arrays: &mut Vec<ArrayRef>) -> Result<()> {
        let mut merged = Vec::with_capacity(rows);
        for slice in plan {
            merged.extend_from_slice(&self.timestamps[slice.page].values()[slice.rows.clone()]);
        }
        drop(self.timestamps);
        arrays.push(timestamp_array(merged));
        for column in self.numbers {
            let (values, validity) = copied(&column, plan, floats(rows));
            arrays.push(Arc::new(Float64Array::new(values.into(), validity)));
        }
        let (values, validity) = copied(&self.sample_counts, plan, Numbers::new(rows, 0));
        arrays.push(Arc::new(Int64Array::new(values.into(), validity)));
        drop(self.sample_counts);
        for column in self.extras {
            arrays.push(texts(&column, plan, rows)?);
        }
        Ok(())
    }
}

/// The five identity columns of the series in their order, each with so many points.
fn identity_arrays(identities: &[(Identity, usize)], rows: usize) -> Result<Vec<ArrayRef>> {
    let array = |place: usize| {
        let mut column = IdentityColumn::new(rows);
        for (Identity(ids), length) in identities.iter().filter(|(_, length)| *length > 0) {
            let key = ids[place].as_deref().map(|text| column.key(text));
            column.fill(key, *length);
        }
        column.finish()
    };
    (0..5).map(array).collect()
}

fn copied<T: ArrowPrimitiveType>(
    column: &[PrimitiveArray<T>],
    plan: &[Slice],
    mut merged: Numbers<T::Native>,
) -> (Vec<T::Native>, Option<NullBuffer>) {
    for slice in plan {
        let array = &column[slice.page];
        merged.extend(array.values(), array.nulls(), slice.rows.clone());
    }
    merged.finish()
}

fn texts(column: &[StringArray], plan: &[Slice], rows: usize) -> Result<ArrayRef> {
    let bytes = |slice: &Slice| {
        let offsets = column[slice.page].value_offsets();
        i64::from(offsets[slice.rows.end]) - i64::from(offsets[slice.rows.start])
    };
    let total: i64 = plan.iter().map(bytes).sum();
    let Ok(total) = i32::try_from(total) else {
        return Err(Error::new(Kind::BodyTooLarge, "an extra column passes 2 GiB of text")
            .with_hint("Read page by page, or leave out that column."));
    };
    let mut builder = StringBuilder::with_capacity(rows, usize::try_from(total).unwrap_or(0));
    for slice in plan {
        let array = &column[slice.page];
        for row in slice.rows.clone() {
            builder.append_option(array.is_valid(row).then(|| array.value(row)));
        }
    }
    Ok(Arc::new(builder.finish()))
}

#[cfg(test)]
mod tests;
