//! One read of stored points for one frame, as `siteline.frames` wants it.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::python::columns::columns;
use crate::python::conversions::refuse;
use crate::python::points::next_batch;
use crate::python::selected::{Opened, Selected};
use crate::python::stored::{ROWS, Stored};
use crate::python::table::reader_capsule;

/// Read once: by `_columns()`, or by the stream.
#[pyclass(frozen)]
pub(crate) struct Snapshot {
    stored: Mutex<Option<Stored>>,
    sequence: u64,
    asks: String,
    selected: Selected,
    store: PathBuf,
}

impl Snapshot {
    pub(crate) fn new(opened: Opened, selected: Selected, store: PathBuf) -> Self {
        let Opened { stored, sequence, asks, .. } = opened;
        Self { stored: Mutex::new(Some(stored)), sequence, asks, selected, store }
    }

    fn take(&self, py: Python<'_>) -> PyResult<Stored> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner).take();
        stored.ok_or_else(|| refuse(py, crate::Kind::Internal, "a snapshot was read twice"))
    }
}

#[pymethods]
impl Snapshot {
    fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut stored = self.take(py)?;
        let mut batches = Vec::new();
        while let Some(batch) = next_batch(py, &mut stored, ROWS)? {
            batches.push(batch);
        }
        columns(py, &stored.schema(), &batches)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        reader_capsule(py, Box::new(self.take(py)?))
    }

    fn _provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("store", self.store.to_string_lossy())?;
        dict.set_item("feed", &self.selected.feed)?;
        dict.set_item("query", &self.asks)?;
        dict.set_item("sequence", self.sequence)?;
        self.selected.describe(&dict)?;
        Ok(dict)
    }
}
