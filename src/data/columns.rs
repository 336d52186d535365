//! The ten columns of siteline, and how a page's points become columns.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use super::point_columns::{Envelope, Identity, PointColumns};
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

/// One point as it was read. A missing or null number is `None`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) timestamp: i64,
    /// Value, minimum, maximum.
    pub(super) numbers: [Option<f64>; 3],
    pub(super) sample_count: Option<i64>,
}

/// A column of numbers under construction. Null slots hold a filler under a null bit.
pub(super) struct Numbers<T> {
    values: Vec<T>,
    validity: NullBufferBuilder,
    filler: T,
}

impl<T: Copy> Numbers<T> {
    pub(super) fn new(rows: usize, filler: T) -> Self {
        Self { values: Vec::with_capacity(rows), validity: NullBufferBuilder::new(rows), filler }
    }

    #[inline]
    pub(super) fn push(&mut self, value: Option<T>) {
        self.values.push(value.unwrap_or(self.filler));
        self.validity.append(value.is_some());
    }

    pub(super) fn finish(mut self) -> (Vec<T>, Option<NullBuffer>) {
        (self.values, self.validity.finish())
    }
}

/// A float column under construction; NaN fills null slots, so that numpy can view the buffer.
pub(super) fn floats(rows: usize) -> Numbers<f64> {
    Numbers::new(rows, f64::NAN)
}

/// The distinct texts of one of the five ids on a page, numbered.
#[derive(Default)]
pub(super) struct IdentityTexts {
    texts: Vec<Arc<str>>,
    known: HashMap<Arc<str>, i32>,
    last: Option<i32>,
}

impl IdentityTexts {
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

    /// The text of a key that [`IdentityTexts::key`] gave.
    pub(super) fn text(&self, key: i32) -> &Arc<str> {
        &self.texts[usize::try_from(key).unwrap_or_default()]
    }
}

/// A page's columns under construction.
pub(super) struct Columns<'a> {
    pub(super) identities: [IdentityTexts; 5],
    timestamps: Vec<i64>,
    numbers: [Numbers<f64>; 3],
    sample_counts: Numbers<i64>,
    /// For each extra column and row the member's JSON text.
    extras: Vec<Vec<Option<&'a str>>>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(rows: usize, extras: usize) -> Self {
        Self {
            identities: std::array::from_fn(|_| IdentityTexts::default()),
            timestamps: Vec::with_capacity(rows),
            numbers: std::array::from_fn(|_| floats(rows)),
            sample_counts: Numbers::new(rows, 0),
            extras: vec![Vec::with_capacity(rows); extras],
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.timestamps.len()
    }

    pub(super) fn timestamps(&self) -> &[i64] {
        &self.timestamps
    }

    #[inline]
    pub(super) fn push(&mut self, row: Row, extras: &[Option<&'a str>]) {
        self.timestamps.push(row.timestamp);
        for (column, number) in self.numbers.iter_mut().zip(row.numbers) {
            column.push(number);
        }
        self.sample_counts.push(row.sample_count);
        for (column, text) in self.extras.iter_mut().zip(extras) {
            column.push(*text);
        }
    }

    /// Gives an envelope's own member to those of its points that have none of that name.
    pub(super) fn fill_extra(&mut self, column: usize, from_row: usize, text: &'a str) {
        for slot in &mut self.extras[column][from_row..] {
            slot.get_or_insert(text);
        }
    }

    /// The columns; `series` and `envelopes` say whose the rows are.
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
                format!("the extra columns of this page pass {} MiB", EXTRA_BYTES >> 20),
            )
            .with_hint("Leave out the longest of extra_columns, or ask for smaller pages."));
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

/// The timestamp column.
pub(super) fn timestamp_array(microseconds: Vec<i64>) -> TimestampMicrosecondArray {
    TimestampMicrosecondArray::new(microseconds.into(), None).with_timezone(ZONE)
}

/// A batch of columns that were made for this schema.
pub(super) fn batch(schema: SchemaRef, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(schema, arrays).map_err(broken)
}

#[expect(clippy::needless_pass_by_value, reason = "fits map_err")]
pub(super) fn broken(error: ArrowError) -> Error {
    Error::new(Kind::Internal, format!("columns do not fit their schema: {error}"))
}
