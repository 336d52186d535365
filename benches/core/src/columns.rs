//! Columns under construction, and their record batch of siteline's schema.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, NullBufferBuilder};
use arrow_schema::ArrowError;

/// The ten columns.
pub(crate) struct Columns {
    pub(crate) identities: [Identity; 5],
    pub(crate) timestamps: Vec<i64>,
    /// Value, minimum, maximum; null is NaN, which JSON does not have.
    pub(crate) numbers: [Vec<f64>; 3],
    pub(crate) sample_counts: Vec<i64>,
    pub(crate) counted: NullBufferBuilder,
    pub(crate) clock: Timestamps,
}

impl Columns {
    /// Empty columns with capacity for this many points.
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            identities: std::array::from_fn(|_| Identity::new(rows)),
            timestamps: Vec::with_capacity(rows),
            numbers: std::array::from_fn(|_| Vec::with_capacity(rows)),
            sample_counts: Vec::with_capacity(rows),
            counted: NullBufferBuilder::new(rows),
            clock: Timestamps::default(),
        }
    }

    /// The batch of [`siteline_core::data::schema`].
    pub(crate) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(10);
        for column in self.identities {
            arrays.push(column.finish()?);
        }
        let timestamps = TimestampMicrosecondArray::new(self.timestamps.into(), None);
        arrays.push(Arc::new(timestamps.with_timezone("UTC")));
        for values in self.numbers {
            let valid = BooleanBuffer::collect_bool(values.len(), |row| !values[row].is_nan());
            let nulls = NullBuffer::new(valid);
            let nulls = (nulls.null_count() > 0).then_some(nulls);
            arrays.push(Arc::new(Float64Array::new(values.into(), nulls)));
        }
        let mut counted = self.counted;
        arrays.push(Arc::new(Int64Array::new(self.sample_counts.into(), counted.finish())));
        RecordBatch::try_new(siteline_core::data::schema(&[]), arrays)
    }
}

/// A dictionary column: one lookup per envelope, not per point.
#[derive(Default)]
pub(crate) struct Identity {
    keys: Vec<i32>,
    texts: Vec<String>,
    known: HashMap<String, usize>,
    /// For each key the one that followed it last: envelopes mostly repeat their order.
    following: Vec<usize>,
    last: usize,
}

impl Identity {
    fn new(rows: usize) -> Self {
        Self { keys: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Appends this text for `rows` rows.
    pub(crate) fn fill(&mut self, text: &str, rows: usize) {
        let key = match self.following.get(self.last) {
            Some(key) if self.texts[*key] == text => *key,
            _ => self.key(text),
        };
        self.last = key;
        self.keys.resize(self.keys.len() + rows, i32::try_from(key).unwrap_or(i32::MAX));
    }

    fn key(&mut self, text: &str) -> usize {
        let key = self.known.get(text).copied().unwrap_or_else(|| {
            self.texts.push(text.to_owned());
            self.following.push(0);
            self.known.insert(text.to_owned(), self.known.len());
            self.known.len() - 1
        });
        self.following[self.last] = key;
        key
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        let keys = Int32Array::new(self.keys.into(), None);
        let texts = Arc::new(StringArray::from_iter_values(self.texts));
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, texts)?))
    }
}

/// Reads timestamps; keeps the day of the last one, because the next one is often of the same day.
#[derive(Debug, Default)]
pub(crate) struct Timestamps {
    date: [u8; 10],
    midnight: i64,
}

impl Timestamps {
    /// Microseconds since 1970 UTC of `2026-09-01T00:00:00Z`, the form of rendered pages. siteline
    /// parses other forms. `None` for a text that is not an instant.
    #[inline]
    pub(crate) fn read(&mut self, text: &str) -> Option<i64> {
        let Ok(form): Result<&[u8; 20], _> = text.as_bytes().try_into() else { return slow(text) };
        let [date @ .., b'T', h1, h2, b':', m1, m2, b':', s1, s2, b'Z'] = form else {
            return slow(text);
        };
        if self.date != *date {
            (self.date, self.midnight) = (*date, slow(&format!("{}T00:00:00Z", &text[..10]))?);
        }
        let [hour, minute, second] = [(h1, h2), (m1, m2), (s1, s2)].map(|(a, b)| two(*a, *b));
        if hour > 23 || minute > 59 || second > 59 {
            return slow(text);
        }
        Some(self.midnight + i64::from((hour * 60 + minute) * 60 + second) * 1_000_000)
    }
}

/// The number of two digits; a large one if they are not digits.
#[inline]
fn two(tens: u8, ones: u8) -> u32 {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    if tens > 9 || ones > 9 { u32::MAX >> 8 } else { u32::from(tens) * 10 + u32::from(ones) }
}

#[cold]
fn slow(text: &str) -> Option<i64> {
    Some(siteline_core::data::parse_instant(text).ok()?.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Microseconds of a day.
    const DAY: i64 = 86_400_000_000;

    #[test]
    fn the_fast_form_and_other_forms_give_the_same_instant() {
        let mut timestamps = Timestamps::default();
        let noon = 20_697 * DAY + DAY / 2;
        for text in
            ["2026-09-01T12:00:00Z", "2026-09-01T12:00:00.000Z", "2026-09-01T14:00:00+02:00"]
        {
            assert_eq!(timestamps.read(text), Some(noon), "{text}");
        }
        assert_eq!(timestamps.read("2026-09-01T12:00:61Z"), None);
        assert_eq!(timestamps.read("2026-13-01T12:00:00Z"), None);
        assert_eq!(timestamps.read("2026-09-01T12:00:00Z"), Some(noon));
    }
}
