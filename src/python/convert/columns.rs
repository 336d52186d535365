//! Columns for `siteline.frames`, in memory that NumPy reads in place.

use std::collections::HashMap;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyTuple};

use crate::data::{COLUMN_NAMES, PointColumns};
use crate::python::bridge::process::guarded;
use crate::python::convert::memory::Memory;

/// The columns of points: name, kind, and what the kind has. `runs`: for each stretch of rows its code
/// or -1 and its length, and the list of texts. `timestamp`, `float`: a [`Memory`], NaN where null.
/// `integer`: a [`Memory`], and a `bytearray` of which are null or `None`. `text`: a list.
pub(crate) fn of_points<'py>(
    py: Python<'py>,
    points: &PointColumns,
) -> PyResult<Bound<'py, PyList>> {
    guarded(|| {
        let [site, line, machine, device, tag, timestamp, numbers @ .., sample_count] =
            COLUMN_NAMES;
        let list = PyList::empty(py);
        let envelopes = &points.envelopes;
        let lengths = envelopes.iter().map(|envelope| envelope.rows.len().to_ne_bytes());
        let lengths = bytes(py, envelopes.len(), lengths)?;
        for (place, name) in [site, line, machine, device, tag].into_iter().enumerate() {
            let codes = points.codes(place);
            let runs = envelopes
                .iter()
                .map(|envelope| codes.of_series[envelope.series].unwrap_or(-1).to_ne_bytes());
            let runs = bytes(py, envelopes.len(), runs)?;
            list.append((name, "runs", runs, &lengths, PyList::new(py, codes.texts)?))?;
        }
        list.append((timestamp, "timestamp", Memory::of(&points.timestamps)))?;
        for (name, array) in numbers.into_iter().zip(&points.numbers) {
            list.append((name, "float", Memory::of(array)))?;
        }
        let counts = &points.sample_counts;
        let missing = counts.nulls().map(|nulls| {
            bytes(py, nulls.len(), nulls.iter().map(|is_there| [u8::from(!is_there)]))
        });
        list.append((sample_count, "integer", Memory::of(counts), missing.transpose()?))?;
        for (name, texts) in points.extra_columns().iter().zip(&points.extras) {
            list.append((name, "text", PyList::new(py, texts.iter())?))?;
        }
        Ok(list)
    })
}

/// The columns of batches, concatenated, in the form of [`of_points`] but copied into `bytearray`s.
/// `dictionary`: codes, and the list of texts.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> PyResult<Bound<'py, PyList>> {
    guarded(|| {
        let list = PyList::empty(py);
        for (index, field) in schema.fields().iter().enumerate() {
            let arrays: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(index)).collect();
            list.append(column(py, field.name(), field.data_type(), &arrays)?)?;
        }
        Ok(list)
    })
}

fn column<'py>(
    py: Python<'py>,
    name: &str,
    kind: &DataType,
    arrays: &[&ArrayRef],
) -> PyResult<Bound<'py, PyTuple>> {
    let rows = arrays.iter().copied().map(Array::len).sum();
    let data: Vec<_> = arrays.iter().copied().map(Array::to_data).collect();
    // Null numbers are NaN there.
    let values = || {
        let values = data.iter().flat_map(|data| data.buffer::<i64>(0));
        bytes(py, rows, values.map(|value| value.to_ne_bytes()))
    };
    let tuple = match kind {
        DataType::Dictionary(..) => {
            let (codes, texts) = dictionary(py, rows, arrays)?;
            (name, "dictionary", codes, texts).into_pyobject(py)?
        }
        DataType::Timestamp(..) => (name, "timestamp", values()?).into_pyobject(py)?,
        DataType::Float64 => (name, "float", values()?).into_pyobject(py)?,
        DataType::Int64 => {
            let missing = arrays
                .iter()
                .flat_map(|array| (0..array.len()).map(|row| [u8::from(array.is_null(row))]));
            (name, "integer", values()?, bytes(py, rows, missing)?).into_pyobject(py)?
        }
        _ => {
            let texts: Vec<Option<&str>> =
                arrays.iter().flat_map(|array| array.as_string::<i32>().iter()).collect();
            (name, "text", PyList::new(py, texts)?).into_pyobject(py)?
        }
    };
    Ok(tuple)
}

/// Codes and their texts. Each batch has a dictionary of its own; the result has one for all.
fn dictionary<'py>(
    py: Python<'py>,
    rows: usize,
    arrays: &[&ArrayRef],
) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyList>)> {
    let mut texts: Vec<Option<&str>> = Vec::new();
    let mut known: HashMap<Option<&str>, i32> = HashMap::new();
    let mut renamed: Vec<Vec<i32>> = Vec::with_capacity(arrays.len());
    for array in arrays {
        let values = array.as_dictionary::<Int32Type>().values().as_string::<i32>();
        let codes = values.iter().map(|text| {
            *known.entry(text).or_insert_with(|| {
                texts.push(text);
                i32::try_from(texts.len() - 1).unwrap_or(i32::MAX)
            })
        });
        renamed.push(codes.collect());
    }
    let codes = arrays.iter().zip(&renamed).flat_map(|(array, renamed)| {
        // pandas writes a missing category as the code -1.
        array.as_dictionary::<Int32Type>().keys().iter().map(|key| {
            let code = key.and_then(|key| renamed.get(usize::try_from(key).ok()?));
            code.copied().unwrap_or(-1).to_ne_bytes()
        })
    });
    Ok((bytes(py, rows, codes)?, PyList::new(py, texts)?))
}

/// A `bytearray` of fixed-width values, which NumPy reads in place and may write to.
fn bytes<const WIDTH: usize>(
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
