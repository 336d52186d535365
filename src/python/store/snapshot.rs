//! One snapshot of a store for one frame, as `siteline.frames` reads it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::error::{Error, Kind};
use crate::lock::Mutex;
use crate::python::convert::capsule::reader_capsule;
use crate::python::convert::columns::columns;
use crate::python::convert::values::refuse;
use crate::python::store::batches::{BatchStream, ROWS, next_batch};
use crate::store::View;
use crate::sync::{ReadSpec, Snapshot};

/// It is read once: by `_columns()`, or by the stream.
#[pyclass(frozen, name = "_Snapshot")]
pub(crate) struct PySnapshot {
    batches: Mutex<Option<BatchStream>>,
    /// What `frame.attrs["siteline"]` says.
    provenance: Py<PyDict>,
    /// The error that ended its stream.
    pub(crate) failure: Arc<OnceLock<Error>>,
}

impl PySnapshot {
    pub(crate) fn new(
        py: Python<'_>,
        snapshot: Snapshot,
        spec: &ReadSpec,
        store: &Path,
    ) -> PyResult<Self> {
        let provenance = PyDict::new(py);
        provenance.set_item("store", store.to_string_lossy())?;
        provenance.set_item("feed", &spec.feed)?;
        provenance.set_item("query", snapshot.feed.parameters())?;
        provenance.set_item("sequence", snapshot.sequence)?;
        provenance.set_item("start", spec.start)?;
        provenance.set_item("end", spec.end)?;
        provenance.set_item("settled_only", spec.settled_only)?;
        provenance.set_item("flagged", spec.flagged.to_string())?;
        if let View::ChangedSince(since) = spec.view {
            provenance.set_item("since", since)?;
        }
        let batches = BatchStream::new(snapshot.reader);
        let failure = Arc::clone(&batches.failure);
        let batches = Mutex::new(Some(batches));
        Ok(Self { batches, provenance: provenance.unbind(), failure })
    }

    fn take(&self, py: Python<'_>) -> PyResult<BatchStream> {
        let batches = self.batches.lock().take();
        batches.ok_or_else(|| refuse(py, Kind::InternalError, "a snapshot was read twice"))
    }
}

#[pymethods]
impl PySnapshot {
    fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut stream = self.take(py)?;
        let mut batches = Vec::new();
        while let Some(batch) = next_batch(py, &mut stream, ROWS)? {
            batches.push(batch);
        }
        columns(py, &stream.schema, &batches)
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

    fn _provenance(&self, py: Python<'_>) -> Py<PyDict> {
        self.provenance.clone_ref(py)
    }
}
