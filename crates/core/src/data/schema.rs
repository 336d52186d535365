//! The ten columns: names, Arrow types and batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::error::{Error, Kind, Result};

/// Five ids, the bucket timestamp, four aggregates.
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

const ZONE: &str = "UTC";

/// Five dictionary columns (Int32 keys, Utf8), the timestamp in microseconds UTC, three Float64
/// columns, `sample_count` as Int64, then Utf8 columns with JSON text.
pub fn schema(extra_columns: &[String]) -> SchemaRef {
    let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let fields = COLUMN_NAMES.iter().enumerate().map(|(index, name)| match index {
        0..=4 => Field::new(*name, text.clone(), true),
        5 => time_field(),
        6..=8 => Field::new(*name, DataType::Float64, true),
        _ => Field::new(*name, DataType::Int64, true),
    });
    let extra = extra_columns.iter().map(|name| Field::new(name, DataType::Utf8, true));
    Arc::new(Schema::new(fields.chain(extra).collect::<Vec<_>>()))
}

pub(super) fn time_field() -> Field {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
    Field::new(COLUMN_NAMES[5], time, false)
}

pub(super) fn timestamp_array(microseconds: Vec<i64>) -> TimestampMicrosecondArray {
    TimestampMicrosecondArray::new(microseconds.into(), None).with_timezone(ZONE)
}

pub(crate) fn batch(schema: SchemaRef, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(schema, arrays).map_err(broken)
}

#[expect(clippy::needless_pass_by_value, reason = "fits map_err")]
pub(crate) fn broken(error: ArrowError) -> Error {
    Error::new(Kind::InternalError, format!("Columns do not fit their schema: {error}."))
}
