//! The ten columns of siteline, and how a page's points become an Arrow batch of them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::error::{Error, Kind, Result};

/// The names of the ten columns, in order: five identities, the bucket timestamp, four aggregates.
pub const COLUMN_NAMES: [&str; 10] = [
    "site_id",
    "line_id",
    "machine_id",
    "device_id",
    "tag_guid",
    "timestamp",
    "value",
    "minimum",
    "maximum",
    "sample_count",
];

/// The zone of the timestamp column.
const ZONE: &str = "UTC";
/// Text of all extra columns of a page together, at most: an envelope's member counts once for
/// each of its points, so a small body can ask for much memory.
const EXTRA_BYTES: usize = 256 << 20;

/// The schema of every batch: five dictionary columns (Int32 keys, Utf8), timestamp in
/// microseconds UTC, value, minimum and maximum as Float64, `sample_count` as Int64, then one Utf8
/// column with JSON text for each extra column.
#[must_use]
pub fn schema(extra_columns: &[String]) -> SchemaRef {
    let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
    let fields = COLUMN_NAMES.iter().enumerate().map(|(index, name)| match index {
        0..=4 => Field::new(*name, text.clone(), true),
        5 => Field::new(*name, time.clone(), false),
        6..=8 => Field::new(*name, DataType::Float64, true),
        _ => Field::new(*name, DataType::Int64, true),
    });
    let extra = extra_columns.iter().map(|name| Field::new(name, DataType::Utf8, true));
    Arc::new(Schema::new(fields.chain(extra).collect::<Vec<_>>()))
}

/// One point as it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) timestamp: i64,
    /// Value, minimum, maximum. NaN where it is missing or null, so that numpy can view the column.
    numbers: [f64; 3],
    /// 0 where it is missing or null.
    sample_count: i64,
    /// A bit for each of the three numbers and the count, set where it is neither missing nor null.
    present: u8,
}

impl Row {
    /// The bits of a row without nulls.
    const ALL: u8 = 0b1111;

    pub(super) fn new(timestamp: i64) -> Self {
        Self { timestamp, numbers: [f64::NAN; 3], sample_count: 0, present: 0 }
    }

    /// Sets value, minimum or maximum.
    #[inline]
    pub(super) fn set_number(&mut self, place: usize, number: f64) {
        self.numbers[place] = number;
        self.present |= 1 << place;
    }

    #[inline]
    pub(super) fn set_count(&mut self, count: i64) {
        self.sample_count = count;
        self.present |= 1 << self.numbers.len();
    }
}

/// A column of numbers under construction. Null slots hold a filler under a null bit.
pub(super) struct Numbers<T> {
    values: Vec<T>,
    /// Of the rows up to the last null: those after it are valid.
    validity: NullBufferBuilder,
}

impl<T: Copy> Numbers<T> {
    pub(super) fn new(rows: usize) -> Self {
        Self { values: Vec::with_capacity(rows), validity: NullBufferBuilder::new(rows) }
    }

    /// Makes the last row null: its value is the filler.
    fn nullify(&mut self) {
        self.validity.append_n_non_nulls(self.values.len() - 1 - self.validity.len());
        self.validity.append_null();
    }

    pub(super) fn extend(
        &mut self,
        values: &[T],
        validity: Option<&NullBuffer>,
        rows: Range<usize>,
    ) {
        if let Some(nulls) = validity {
            self.validity.append_n_non_nulls(self.values.len() - self.validity.len());
            self.validity.append_buffer(&nulls.slice(rows.start, rows.len()));
        }
        self.values.extend_from_slice(&values[rows]);
    }

    pub(super) fn finish(mut self) -> (Vec<T>, Option<NullBuffer>) {
        self.validity.append_n_non_nulls(self.values.len() - self.validity.len());
        (self.values, self.validity.finish())
    }
}

/// One of the five identity columns: distinct texts and, for each row, which.
pub(super) struct IdentityColumn {
    keys: Numbers<i32>,
    texts: Vec<Arc<str>>,
    known: HashMap<Arc<str>, i32>,
    last: Option<i32>,
}

impl IdentityColumn {
    pub(super) fn new(rows: usize) -> Self {
        let keys = Numbers::new(rows);
        Self { keys, texts: Vec::new(), known: HashMap::new(), last: None }
    }

    /// The key of a text. Neighbouring envelopes mostly share most of their identities.
    pub(super) fn key(&mut self, text: &str) -> i32 {
        if let Some(last) = self.last
            && **self.text(last) == *text
        {
            return last;
        }
        let key = self.known.get(text).copied().unwrap_or_else(|| self.add(Arc::from(text)));
        self.last = Some(key);
        key
    }

    fn add(&mut self, text: Arc<str>) -> i32 {
        // A body of less than 2 GiB holds no more texts than that.
        let key = i32::try_from(self.texts.len()).unwrap_or(i32::MAX);
        self.texts.push(Arc::clone(&text));
        self.known.insert(text, key);
        key
    }

    /// The text of a key that [`IdentityColumn::key`] gave.
    pub(super) fn text(&self, key: i32) -> &Arc<str> {
        &self.texts[usize::try_from(key).unwrap_or_default()]
    }

    /// Gives this key, or null, to the next `rows` rows.
    pub(super) fn fill(&mut self, key: Option<i32>, rows: usize) {
        if key.is_none() {
            let before = self.keys.values.len() - self.keys.validity.len();
            self.keys.validity.append_n_non_nulls(before);
            self.keys.validity.append_n_nulls(rows);
        }
        self.keys.values.resize(self.keys.values.len() + rows, key.unwrap_or_default());
    }

    pub(super) fn finish(self) -> Result<ArrayRef> {
        let (keys, validity) = self.keys.finish();
        let total: usize = self.texts.iter().map(|text| text.len()).sum();
        if i32::try_from(total).is_err() {
            return Err(Error::new(Kind::BodyTooLarge, "the identifiers pass 2 GiB of text"));
        }
        let texts = StringArray::from_iter_values(self.texts);
        let keys = Int32Array::new(keys.into(), validity);
        let array = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(texts));
        Ok(Arc::new(array.map_err(broken)?))
    }
}

/// Some rows of a page, column by column.
pub(super) struct Rows<'c> {
    pub(super) timestamps: &'c [i64],
    /// Value, minimum, maximum. NaN where it is null.
    pub(super) numbers: [&'c [f64]; 3],
    /// 0 where it is null.
    pub(super) sample_counts: &'c [i64],
}

/// A page's columns under construction.
pub(super) struct Columns<'a> {
    pub(super) identities: [IdentityColumn; 5],
    timestamps: Vec<i64>,
    numbers: [Numbers<f64>; 3],
    sample_counts: Numbers<i64>,
    /// For each extra column and row the member's JSON text.
    extras: Vec<Vec<Option<&'a str>>>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(rows: usize, extras: usize) -> Self {
        Self {
            identities: std::array::from_fn(|_| IdentityColumn::new(rows)),
            timestamps: Vec::with_capacity(rows),
            numbers: std::array::from_fn(|_| Numbers::new(rows)),
            sample_counts: Numbers::new(rows),
            extras: vec![Vec::with_capacity(rows); extras],
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.timestamps.len()
    }

    pub(super) fn timestamps(&self) -> &[i64] {
        &self.timestamps
    }

    /// The rows from this one on.
    pub(super) fn rows_from(&self, row: usize) -> Rows<'_> {
        Rows {
            timestamps: &self.timestamps[row..],
            numbers: self.numbers.each_ref().map(|column| &column.values[row..]),
            sample_counts: &self.sample_counts.values[row..],
        }
    }

    #[inline]
    pub(super) fn push(&mut self, row: &Row, extras: &[Option<&'a str>]) {
        self.timestamps.push(row.timestamp);
        for (column, number) in self.numbers.iter_mut().zip(row.numbers) {
            column.values.push(number);
        }
        self.sample_counts.values.push(row.sample_count);
        if row.present != Row::ALL {
            self.nullify(row.present);
        }
        for (column, text) in self.extras.iter_mut().zip(extras) {
            column.push(*text);
        }
    }

    /// Makes null what the last row has not.
    #[cold]
    fn nullify(&mut self, present: u8) {
        for (place, column) in self.numbers.iter_mut().enumerate() {
            if present & (1 << place) == 0 {
                column.nullify();
            }
        }
        if present & (1 << self.numbers.len()) == 0 {
            self.sample_counts.nullify();
        }
    }

    /// Gives an envelope's own member to those of its points that have none of that name.
    pub(super) fn fill_extra(&mut self, column: usize, from_row: usize, text: &'a str) {
        for slot in &mut self.extras[column][from_row..] {
            slot.get_or_insert(text);
        }
    }

    pub(super) fn finish(self, schema: SchemaRef) -> Result<RecordBatch> {
        let extra_bytes: usize =
            self.extras.iter().flatten().flatten().map(|text| text.len()).sum();
        if extra_bytes > EXTRA_BYTES {
            return Err(Error::new(
                Kind::BodyTooLarge,
                format!("the extra columns of this page pass {} MiB", EXTRA_BYTES >> 20),
            )
            .with_hint("Leave out the longest of extra_columns, or ask for smaller pages."));
        }
        let mut arrays = Vec::with_capacity(schema.fields().len());
        for column in self.identities {
            arrays.push(column.finish()?);
        }
        arrays.push(timestamp_array(self.timestamps));
        for column in self.numbers {
            let (values, validity) = column.finish();
            arrays.push(Arc::new(Float64Array::new(values.into(), validity)));
        }
        let (counts, validity) = self.sample_counts.finish();
        arrays.push(Arc::new(Int64Array::new(counts.into(), validity)));
        for column in self.extras {
            let mut builder = StringBuilder::with_capacity(column.len(), extra_bytes);
            for text in column {
                builder.append_option(text);
            }
            arrays.push(Arc::new(builder.finish()));
        }
        batch(schema, arrays)
    }
}

/// The timestamp column.
pub(super) fn timestamp_array(microseconds: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::new(microseconds.into(), None).with_timezone(ZONE))
}

/// A batch of columns that were made for this schema.
pub(super) fn batch(schema: SchemaRef, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(schema, arrays).map_err(broken)
}

#[expect(clippy::needless_pass_by_value, reason = "fits map_err")]
fn broken(error: ArrowError) -> Error {
    Error::new(Kind::Internal, format!("columns do not fit their schema: {error}"))
}
