//! The ten columns of siteline, and how a page's points become columns.

use std::sync::{Arc, OnceLock};

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use super::identities::IdentityTexts;
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

    pub(super) fn finish(mut self) -> (Vec<T>, Option<NullBuffer>) {
        self.validity.append_n_non_nulls(self.values.len() - self.validity.len());
        (self.values, self.validity.finish())
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
