//! Columns for `siteline.frames`, in memory that NumPy reads in place.

use arrow_array::{ArrowPrimitiveType, PrimitiveArray, TimestampMicrosecondArray};
use arrow_buffer::Buffer;
use pyo3::types::PyByteArray;

use crate::prelude::*;

// The kinds of columns: `runs` (a code or -1 for each run of rows, the run lengths, and the texts), `timestamp`
// (a [`Memory`] and the zone), `float` (a [`Memory`]), `integer` (a [`Memory`] and a `bytearray` of nulls),
// `text` (a list), `codes` (a byte for each row, and the texts).

pub(crate) fn timestamps<'a>(
    name: &'a str,
    times: &TimestampMicrosecondArray,
    zone: &'a str,
) -> (&'a str, &'static str, Memory, &'a str) {
    (name, "timestamp", Memory::of(times), zone)
}

/// NumPy may write to it.
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

/// Values of eight bytes. They are read-only for NumPy, because frames and Arrow consumers share them.
#[pyclass(frozen)]
pub(crate) struct Memory {
    pub(crate) values: Buffer,
    /// The kind letter of NumPy.
    pub(crate) kind: char,
}

impl Memory {
    pub(crate) fn of<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Self {
        let kind = if T::DATA_TYPE.is_floating() { 'f' } else { 'i' };
        Self { values: array.values().inner().clone(), kind }
    }
}

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("shape", (self.values.len() / 8,))?;
        let order = if cfg!(target_endian = "little") { '<' } else { '>' };
        dict.set_item("typestr", format!("{order}{}8", self.kind))?;
        // The second value makes the memory read-only.
        dict.set_item("data", (self.values.as_ptr() as usize, true))?;
        Ok(dict)
    }
}
