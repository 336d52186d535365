//! The memory of a column, for NumPy to look at where it lies.

use arrow_array::{ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::Buffer;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A column's values: one-dimensional, of eight bytes each, in native byte order. NumPy gets them as
/// read-only, because the table, Arrow consumers and other frames share them.
#[pyclass(frozen)]
pub(crate) struct Memory {
    values: Buffer,
    /// NumPy's letter for integers or floats.
    kind: char,
}

impl Memory {
    pub(crate) fn of<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Self {
        let kind = if T::DATA_TYPE.is_floating() { 'f' } else { 'i' };
        Self { values: array.values().inner().clone(), kind }
    }

    pub(crate) fn doubles(values: Buffer) -> Self {
        Self { values, kind: 'f' }
    }

    pub(crate) fn integers(values: Buffer) -> Self {
        Self { values, kind: 'i' }
    }
}

#[pymethods]
impl Memory {
    /// NumPy's interface to existing memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("shape", (self.values.len() / 8,))?;
        let order = if cfg!(target_endian = "little") { '<' } else { '>' };
        dict.set_item("typestr", format!("{order}{}8", self.kind))?;
        // The address, and that the memory is read-only.
        dict.set_item("data", (self.values.as_ptr() as usize, true))?;
        Ok(dict)
    }
}
