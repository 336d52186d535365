//! The memory of a column, for NumPy to look at where it lies.

use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::Buffer;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A column's values: one-dimensional, of eight bytes each, native byte order. They never change, and
/// NumPy is told so: whoever holds them (the table, an Arrow consumer, another frame) sees no writing.
#[pyclass(frozen)]
pub(crate) struct Memory {
    values: Buffer,
    kind: &'static str,
}

/// How NumPy names the values of a column.
pub(crate) trait Named: ArrowPrimitiveType {
    const NAME: &'static str;
}

impl Named for TimestampMicrosecondType {
    const NAME: &'static str = if cfg!(target_endian = "little") { "<i8" } else { ">i8" };
}

impl Named for Int64Type {
    const NAME: &'static str = TimestampMicrosecondType::NAME;
}

impl Named for Float64Type {
    const NAME: &'static str = if cfg!(target_endian = "little") { "<f8" } else { ">f8" };
}

impl Memory {
    pub(crate) fn of<T: Named>(array: &PrimitiveArray<T>) -> Self {
        Self { values: array.values().inner().clone(), kind: T::NAME }
    }
}

#[pymethods]
impl Memory {
    /// NumPy's interface of memory that is already there.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("shape", (self.values.len() / 8,))?;
        dict.set_item("typestr", self.kind)?;
        // An address, and that nobody writes there.
        dict.set_item("data", (self.values.as_ptr() as usize, true))?;
        Ok(dict)
    }
}
