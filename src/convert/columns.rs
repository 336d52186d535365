//! Columns for `siteline.frames`, in memory that NumPy reads in place.

use arrow_array::{Array as _, Int64Array, TimestampMicrosecondArray};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

use crate::bridge::process::guarded;
use crate::convert::memory::Memory;
use siteline_core::data::{COLUMN_NAMES, PointColumns};

/// The five columns of ids: for each the name, the kind `runs`, for each stretch of rows its code or -1, the
/// lengths of the stretches, and the texts. The lengths once more, for labels.
///
/// The kinds of other columns: `timestamp`: a [`Memory`], and the zone. `float`: a [`Memory`], NaN where
/// null. `integer`: a [`Memory`], and a `bytearray` of which are null or `None`. `text`: a list. `codes`: a
/// byte for each row, and the list of texts.
pub(crate) fn of_ids<'py>(
    py: Python<'py>,
    points: &PointColumns,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyByteArray>)> {
    guarded(|| {
        let list = PyList::empty(py);
        let envelopes = &points.envelopes;
        let lengths = envelopes.iter().map(|envelope| envelope.rows.len().to_ne_bytes());
        let lengths = bytes(py, envelopes.len(), lengths)?;
        for (place, name) in COLUMN_NAMES.into_iter().take(5).enumerate() {
            let codes = points.codes(place);
            let runs = envelopes
                .iter()
                .map(|envelope| codes.of_series[envelope.series].unwrap_or(-1).to_ne_bytes());
            let runs = bytes(py, envelopes.len(), runs)?;
            list.append((name, "runs", runs, &lengths, PyList::new(py, codes.texts)?))?;
        }
        Ok((list, lengths))
    })
}

/// A column of times, in a zone.
pub(crate) fn timestamps<'a>(
    name: &'a str,
    times: &TimestampMicrosecondArray,
    zone: &'a str,
) -> (&'a str, &'static str, Memory, &'a str) {
    (name, "timestamp", Memory::of(times), zone)
}

/// A column of integers.
pub(crate) fn integers<'a, 'py>(
    py: Python<'py>,
    name: &'a str,
    numbers: &Int64Array,
) -> PyResult<(&'a str, &'static str, Memory, Option<Bound<'py, PyByteArray>>)> {
    let missing = numbers
        .nulls()
        .map(|nulls| bytes(py, nulls.len(), nulls.iter().map(|is_there| [u8::from(!is_there)])));
    Ok((name, "integer", Memory::of(numbers), missing.transpose()?))
}

/// A `bytearray` of fixed-width values, which NumPy reads in place and may write to.
pub(crate) fn bytes<const WIDTH: usize>(
    py: Python<'_>,
    length: usize,
    values: impl Iterator<Item = [u8; WIDTH]>,
) -> PyResult<Bound<'_, PyByteArray>> {
    PyByteArray::new_with(py, length * WIDTH, |target| {
        for (slot, value) in target.chunks_exact_mut(WIDTH).zip(values) {
            slot.copy_from_slice(&value);
        }
        Ok(())
    })
}
