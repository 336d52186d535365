//! Converts the columns of an Arrow batch to plain values: numbers, times and ids, from every type
//! that frames and databases use for them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowTimestampType, Float32Type, Float64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, downcast_integer_array};
use arrow_buffer::ArrowNativeType as _;
use arrow_schema::{DataType, TimeUnit};

/// The text describes the content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongColumn(String);

impl WrongColumn {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

pub type Column<T> = Vec<Option<T>>;

fn wrong_type(name: &str, array: &ArrayRef, wanted: &str) -> WrongColumn {
    WrongColumn::new(format!("The column {name:?} holds {}, not {wanted}.", array.data_type()))
}

/// Numbers of any type as doubles; NaN becomes null. Fails for another type or value.
#[expect(clippy::cast_precision_loss, reason = "a value is a double in the interface")]
pub fn doubles(name: &str, array: &ArrayRef) -> Result<Column<f64>, WrongColumn> {
    let values: Column<f64> = match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().iter().collect(),
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().iter().map(|value| value.map(f64::from)).collect()
        }
        _ => {
            let integers = integers(name, array).map_err(|_| wrong_type(name, array, "numbers"))?;
            integers.into_iter().map(|value| value.map(|value| value as f64)).collect()
        }
    };
    Ok(values.into_iter().map(|value| value.filter(|value| !value.is_nan())).collect())
}

/// Integers of any type. Values above `i64::MAX` become `i64::MAX`. Fails for another type or
/// value.
pub fn integers(name: &str, array: &ArrayRef) -> Result<Column<i64>, WrongColumn> {
    downcast_integer_array!(
        array => {
            let values = array.iter();
            Ok(values.map(|value| Some(value?.to_i64().unwrap_or(i64::MAX))).collect())
        }
        DataType::Float64 => {
            let values = doubles(name, array)?.into_iter();
            let values = values.map(|value| value.map_or(Some(None), |value| whole(value).map(Some)));
            let values: Option<_> = values.collect();
            values.ok_or_else(|| wrong_type(name, array, "whole numbers"))
        }
        DataType::Null => Ok(vec![None; array.len()]),
        _ => Err(wrong_type(name, array, "whole numbers")),
    )
}

/// A double that is an integer.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
fn whole(value: f64) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= LIMIT).then_some(value as i64)
}

/// Timestamps with a zone in any unit, or ISO text with an offset, as microseconds since the epoch.
/// Fails for another type or value.
pub fn times(name: &str, array: &ArrayRef) -> Result<Column<i64>, WrongColumn> {
    match array.data_type() {
        DataType::Timestamp(_, None) => {
            let wanted = "times with a zone: a naive time is ambiguous";
            Err(wrong_type(name, array, wanted))
        }
        DataType::Timestamp(unit, _) => microseconds(*unit, array).ok_or_else(|| {
            WrongColumn::new(format!(
                "The column {name:?} holds times that do not fit into 64-bit microseconds."
            ))
        }),
        DataType::Null => Ok(vec![None; array.len()]),
        kind if kind.is_numeric() || matches!(kind, DataType::Date32 | DataType::Date64) => {
            Err(wrong_type(name, array, "times with a zone"))
        }
        _ => {
            let texts = texts(name, array)?.into_iter();
            texts.map(|text| text.map(|text| iso_time(name, text)).transpose()).collect()
        }
    }
}

/// `None` if a time overflows.
fn microseconds(unit: TimeUnit, array: &ArrayRef) -> Option<Column<i64>> {
    fn ticks<T: ArrowTimestampType>(
        array: &ArrayRef,
        microseconds: impl Fn(i64) -> Option<i64>,
    ) -> Option<Column<i64>> {
        let ticks = array.as_primitive::<T>().iter();
        ticks.map(|tick| tick.map_or(Some(None), |tick| microseconds(tick).map(Some))).collect()
    }
    match unit {
        TimeUnit::Second => ticks::<TimestampSecondType>(array, |tick| tick.checked_mul(1_000_000)),
        TimeUnit::Millisecond => {
            ticks::<TimestampMillisecondType>(array, |tick| tick.checked_mul(1_000))
        }
        TimeUnit::Microsecond => ticks::<TimestampMicrosecondType>(array, Some),
        TimeUnit::Nanosecond => {
            ticks::<TimestampNanosecondType>(array, |tick| Some(tick.div_euclid(1_000)))
        }
    }
}

fn iso_time(name: &str, text: &str) -> Result<i64, WrongColumn> {
    let instant = text.parse::<jiff::Timestamp>();
    instant.map(jiff::Timestamp::as_microsecond).map_err(|_| {
        WrongColumn::new(format!(
            "The column {name:?} holds text that is not an ISO 8601 time with a zone."
        ))
    })
}

/// Ids: text, or integers as text. Equal ids share their memory. Fails for another type or value.
pub fn ids(name: &str, array: &ArrayRef) -> Result<Column<Arc<str>>, WrongColumn> {
    let mut known: HashSet<Arc<str>> = HashSet::new();
    let mut shared = |text: &str| {
        if let Some(id) = known.get(text) {
            return Arc::clone(id);
        }
        let id: Arc<str> = text.into();
        known.insert(Arc::clone(&id));
        id
    };
    Ok(match integers(name, array) {
        Ok(numbers) => numbers.into_iter().map(|id| id.map(|id| shared(&id.to_string()))).collect(),
        Err(_) => texts(name, array)?.into_iter().map(|id| id.map(&mut shared)).collect(),
    })
}

/// A string array, plain or dictionary-encoded. Fails for another type or value.
pub fn texts<'a>(name: &str, array: &'a ArrayRef) -> Result<Column<&'a str>, WrongColumn> {
    Ok(match array.data_type() {
        DataType::Null => vec![None; array.len()],
        DataType::Utf8 => array.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().collect(),
        DataType::Utf8View => array.as_string_view().iter().collect(),
        DataType::Dictionary(..) => {
            let coded = array.as_any_dictionary();
            let values = texts(name, coded.values())?;
            if values.is_empty() {
                return Ok(vec![None; array.len()]);
            }
            let keys = coded.normalized_keys().into_iter().enumerate();
            keys.map(|(row, key)| values[key].filter(|_| array.is_valid(row))).collect()
        }
        _ => return Err(wrong_type(name, array, "text")),
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{
        BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array, Int8Array,
        Int16Array, LargeStringArray, NullArray, StringArray, StringViewArray,
        TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
        TimestampSecondArray, UInt64Array,
    };

    use super::*;

    fn array(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    #[test]
    fn numbers_of_every_type_are_doubles() {
        for given in [
            array(Int8Array::from(vec![Some(1), None])),
            array(Int16Array::from(vec![Some(1), None])),
            array(UInt64Array::from(vec![Some(1), None])),
            array(Float32Array::from(vec![Some(1.0), None])),
            array(Float64Array::from(vec![Some(1.0), None])),
            array(Float64Array::from(vec![1.0, f64::NAN])),
        ] {
            assert_eq!(doubles("value", &given), Ok(vec![Some(1.0), None]));
        }
        assert_eq!(doubles("value", &array(NullArray::new(2))), Ok(vec![None, None]));
        let error = doubles("value", &array(BooleanArray::from(vec![true]))).expect_err("refused");
        assert_eq!(error.to_string(), "The column \"value\" holds Boolean, not numbers.");
    }

    #[test]
    fn counts_are_integers_and_clamped_to_the_largest() {
        let counts = array(UInt64Array::from(vec![7, u64::MAX]));
        assert_eq!(integers("sample_count", &counts), Ok(vec![Some(7), Some(i64::MAX)]));
        let counts = array(Float64Array::from(vec![Some(7.0), Some(f64::NAN), None]));
        assert_eq!(integers("sample_count", &counts), Ok(vec![Some(7), None, None]));
        for broken in [0.5, 1e16, f64::INFINITY] {
            let error = integers("sample_count", &array(Float64Array::from(vec![broken])));
            let error = error.expect_err("refused").to_string();
            assert_eq!(error, "The column \"sample_count\" holds Float64, not whole numbers.");
        }
    }

    #[test]
    fn times_of_every_unit_and_iso_text_are_microseconds() {
        let text = vec![Some("1970-01-01T01:00:01+01:00"), None];
        for given in [
            array(TimestampSecondArray::from(vec![Some(1), None]).with_timezone("UTC")),
            array(TimestampMillisecondArray::from(vec![Some(1_000), None]).with_timezone("UTC")),
            array(TimestampMicrosecondArray::from(vec![Some(1_000_000), None]).with_timezone("Z")),
            array(
                TimestampNanosecondArray::from(vec![Some(1_000_000_999), None]).with_timezone("Z"),
            ),
            array(StringArray::from(text.clone())),
            array(LargeStringArray::from(text.clone())),
            array(StringViewArray::from(text.clone())),
            array(text.into_iter().collect::<DictionaryArray<Int32Type>>()),
        ] {
            assert_eq!(times("timestamp", &given), Ok(vec![Some(1_000_000), None]));
        }
        let early = array(TimestampNanosecondArray::from(vec![-1]).with_timezone("UTC"));
        assert_eq!(times("timestamp", &early), Ok(vec![Some(-1)]), "rounded down");
    }

    #[test]
    fn a_column_that_has_no_times_is_refused_with_the_reason() {
        for (given, words) in [
            (array(TimestampSecondArray::from(vec![1])), "a naive time is ambiguous"),
            (array(Date32Array::from(vec![1])), "holds Date32, not times with a zone"),
            (array(Int8Array::from(vec![1])), "holds Int8, not times with a zone"),
            (array(BooleanArray::from(vec![true])), "holds Boolean, not text"),
            (array(StringArray::from(vec!["yesterday"])), "not an ISO 8601 time with a zone"),
            (array(StringArray::from(vec!["2026-11-01T00:00:00"])), "not an ISO 8601 time"),
            (
                array(TimestampSecondArray::from(vec![i64::MAX]).with_timezone("UTC")),
                "64-bit microseconds",
            ),
        ] {
            let error = times("timestamp", &given).expect_err("refused").to_string();
            assert!(error.contains("\"timestamp\"") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn ids_are_text_or_integers_and_share_their_memory() {
        let coded: DictionaryArray<Int8Type> = [Some("7"), None, Some("7")].into_iter().collect();
        for given in [
            array(coded),
            array(StringArray::from(vec![Some("7"), None, Some("7")])),
            array(Int16Array::from(vec![Some(7), None, Some(7)])),
            array(Float64Array::from(vec![7.0, f64::NAN, 7.0])),
        ] {
            let ids = ids("site_id", &given).expect("ids");
            let texts: Vec<_> = ids.iter().map(Option::as_deref).collect();
            assert_eq!(texts, [Some("7"), None, Some("7")]);
            assert!(ids[0].as_ref().zip(ids[2].as_ref()).is_some_and(|(a, b)| Arc::ptr_eq(a, b)));
        }
        let coded: DictionaryArray<Int8Type> = [None::<&str>, None].into_iter().collect();
        assert_eq!(ids("site_id", &array(coded)), Ok(vec![None, None]));
        let error = ids("site_id", &array(Float64Array::from(vec![0.5]))).expect_err("refused");
        assert_eq!(error.to_string(), "The column \"site_id\" holds Float64, not text.");
    }
}
