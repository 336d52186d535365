//! Any Arrow stream into columns: through its capsule interface, without pyarrow.

use std::ffi::CStr;

use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::ArrowNativeType as _;
use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::columns::{Columns, ID_COLUMNS, Texts};
use super::refused;
use crate::python::runtime::detached;

const STREAM: &CStr = c"arrow_array_stream";

/// The columns of an Arrow stream. `ConfigError` for what is none, or does not fit.
pub(super) fn columns(frame: &Bound<'_, PyAny>) -> PyResult<Columns> {
    let py = frame.py();
    if !frame.hasattr("__arrow_c_stream__")? {
        let kind = frame.get_type().name()?;
        let text = format!("A {kind} is neither a pandas frame nor an Arrow stream.");
        return Err(refused(py, text));
    }
    let capsule = frame.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let reader = reader(&capsule)?;
    let read = detached(py, || {
        let mut columns = Columns::default();
        for batch in reader {
            append(&mut columns, &batch.map_err(|error| error.to_string())?)?;
        }
        Ok(columns)
    })?;
    read.map_err(|text: String| refused(py, text))
}

#[expect(unsafe_code, reason = "the Arrow boundary: the stream is moved out of its capsule")]
fn reader(capsule: &Bound<'_, PyCapsule>) -> PyResult<RecordBatchStreamReader> {
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a valid stream (checked just now); `from_raw` leaves a
    // released one in its place, so that the capsule's destructor releases nothing twice.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    reader.map_err(|error| refused(capsule.py(), format!("The Arrow stream is broken: {error}")))
}

fn append(columns: &mut Columns, batch: &RecordBatch) -> Result<(), String> {
    for (texts, name) in columns.ids.iter_mut().zip(ID_COLUMNS) {
        if let Some(array) = batch.column_by_name(name) {
            push_texts(texts.get_or_insert_default(), name, array)?;
        }
    }
    let required = |name: &str| {
        batch.column_by_name(name).ok_or_else(|| format!("The frame has no column {name:?}."))
    };
    for time in times("timestamp", required("timestamp")?)? {
        columns.timestamp.push(time.ok_or("The column \"timestamp\" holds a null.")?);
    }
    columns.value.extend(floats("value", required("value")?)?);
    for (name, column) in [("minimum", &mut columns.minimum), ("maximum", &mut columns.maximum)] {
        if let Some(array) = batch.column_by_name(name) {
            column.get_or_insert_default().extend(floats(name, array)?);
        }
    }
    if let Some(array) = batch.column_by_name("sample_count") {
        let counts = integers("sample_count", array)?;
        columns.sample_count.get_or_insert_default().extend(counts);
    }
    if let Some(array) = batch.column_by_name("available_at") {
        columns.available_at.get_or_insert_default().extend(times("available_at", array)?);
    }
    Ok(())
}

fn unfit(name: &str, array: &ArrayRef, wanted: &str) -> String {
    format!("The column {name:?} holds {}, not {wanted}.", array.data_type())
}

/// The values of a primitive array, each through `change`.
fn all<T: ArrowPrimitiveType, V>(
    array: &ArrayRef,
    change: impl Fn(T::Native) -> V,
) -> Vec<Option<V>> {
    array.as_primitive::<T>().iter().map(|value| value.map(&change)).collect()
}

/// Any number as a double; not-a-number is null.
#[expect(clippy::cast_precision_loss, reason = "a value is a double in the interface")]
fn floats(name: &str, array: &ArrayRef) -> Result<Vec<Option<f64>>, String> {
    let values = match array.data_type() {
        DataType::Float64 => all::<Float64Type, _>(array, |v| v),
        DataType::Float32 => all::<Float32Type, _>(array, f64::from),
        DataType::Null => vec![None; array.len()],
        _ => {
            let integers = integers(name, array).map_err(|_| unfit(name, array, "numbers"))?;
            integers.into_iter().map(|value| value.map(|value| value as f64)).collect()
        }
    };
    Ok(values.into_iter().map(|value| value.filter(|value| !value.is_nan())).collect())
}

/// Any whole number.
fn integers(name: &str, array: &ArrayRef) -> Result<Vec<Option<i64>>, String> {
    Ok(match array.data_type() {
        DataType::Int8 => all::<Int8Type, _>(array, i64::from),
        DataType::Int16 => all::<Int16Type, _>(array, i64::from),
        DataType::Int32 => all::<Int32Type, _>(array, i64::from),
        DataType::Int64 => all::<Int64Type, _>(array, |v| v),
        DataType::UInt8 => all::<UInt8Type, _>(array, i64::from),
        DataType::UInt16 => all::<UInt16Type, _>(array, i64::from),
        DataType::UInt32 => all::<UInt32Type, _>(array, i64::from),
        DataType::UInt64 => all::<UInt64Type, _>(array, |v| i64::try_from(v).unwrap_or(i64::MAX)),
        DataType::Float64 => {
            let doubles = array.as_primitive::<Float64Type>().iter();
            let whole: Option<Vec<_>> = doubles
                .map(|value| match value.filter(|value| !value.is_nan()) {
                    Some(value) => whole(value).map(Some),
                    None => Some(None),
                })
                .collect();
            whole.ok_or_else(|| unfit(name, array, "whole numbers"))?
        }
        DataType::Null => vec![None; array.len()],
        _ => return Err(unfit(name, array, "whole numbers")),
    })
}

/// A double that is a whole number.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
pub(super) fn whole(value: f64) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= LIMIT).then_some(value as i64)
}

/// Timestamps with a zone, of any unit, as microseconds since the Unix epoch; or ISO text.
fn times(name: &str, array: &ArrayRef) -> Result<Vec<Option<i64>>, String> {
    let overflow = || format!("The column {name:?} holds times beyond microseconds.");
    let scaled = |values: Vec<Option<i64>>, scale: i64| {
        let scaled = values.into_iter().map(|value| match value {
            Some(value) => value.checked_mul(scale).map(Some),
            None => Some(None),
        });
        scaled.collect::<Option<Vec<_>>>().ok_or_else(overflow)
    };
    match array.data_type() {
        DataType::Timestamp(_, None) => {
            Err(unfit(name, array, "times with a zone; nobody knows which zone a naive one means"))
        }
        DataType::Timestamp(TimeUnit::Second, _) => {
            scaled(all::<TimestampSecondType, _>(array, |v| v), 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            scaled(all::<TimestampMillisecondType, _>(array, |v| v), 1_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Ok(all::<TimestampMicrosecondType, _>(array, |v| v))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Ok(all::<TimestampNanosecondType, _>(array, |v| v.div_euclid(1_000)))
        }
        DataType::Null => Ok(vec![None; array.len()]),
        DataType::Date32 | DataType::Date64 => Err(unfit(name, array, "times with a zone")),
        kind if kind.is_numeric() => Err(unfit(name, array, "times with a zone")),
        _ => {
            let mut times = Vec::with_capacity(array.len());
            each_text(name, array, &mut |text| {
                times.push(text.map(|text| instant_in(name, text)).transpose()?);
                Ok(())
            })?;
            Ok(times)
        }
    }
}

/// ISO text with a zone as microseconds since the Unix epoch.
pub(super) fn instant_in(column: &str, text: &str) -> Result<i64, String> {
    let instant = text.parse::<jiff::Timestamp>();
    instant.map(jiff::Timestamp::as_microsecond).map_err(|_| {
        format!("The column {column:?} holds text that is no ISO 8601 time with a zone.")
    })
}

fn push_texts(texts: &mut Texts, name: &str, array: &ArrayRef) -> Result<(), String> {
    if let Ok(numbers) = integers(name, array) {
        for number in numbers {
            texts.push(number.map(|number| number.to_string()).as_deref());
        }
        return Ok(());
    }
    each_text(name, array, &mut |text| {
        texts.push(text);
        Ok(())
    })
}

type Take<'a> = dyn FnMut(Option<&str>) -> Result<(), String> + 'a;

/// Every text of a string array, plain or dictionary-coded.
fn each_text(name: &str, array: &ArrayRef, take: &mut Take<'_>) -> Result<(), String> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().try_for_each(take),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().try_for_each(take),
        DataType::Utf8View => array.as_string_view().iter().try_for_each(take),
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => each_coded::<Int8Type>(name, array, take),
            DataType::Int16 => each_coded::<Int16Type>(name, array, take),
            DataType::Int32 => each_coded::<Int32Type>(name, array, take),
            DataType::Int64 => each_coded::<Int64Type>(name, array, take),
            DataType::UInt8 => each_coded::<UInt8Type>(name, array, take),
            DataType::UInt16 => each_coded::<UInt16Type>(name, array, take),
            DataType::UInt32 => each_coded::<UInt32Type>(name, array, take),
            DataType::UInt64 => each_coded::<UInt64Type>(name, array, take),
            _ => Err(unfit(name, array, "text")),
        },
        _ => Err(unfit(name, array, "text")),
    }
}

fn each_coded<K: ArrowDictionaryKeyType>(
    name: &str,
    array: &ArrayRef,
    take: &mut Take<'_>,
) -> Result<(), String> {
    let coded = array.as_dictionary::<K>();
    let mut values: Vec<Option<String>> = Vec::new();
    each_text(name, coded.values(), &mut |text| {
        values.push(text.map(str::to_owned));
        Ok(())
    })?;
    coded.keys().iter().try_for_each(|key| {
        take(key.and_then(|key| values.get(key.as_usize())).and_then(Option::as_deref))
    })
}
