//! One snapshot of a store for one frame, as `siteline.frames` reads it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::python::convert::capsule::reader_capsule;
use crate::python::convert::columns::columns;
use crate::python::convert::values::refuse;
use crate::python::store::batches::{BatchStream, Failure, ROWS, next_batch};
use crate::store::View;
use crate::sync::{ReadSpec, Snapshot};

/// It is read once: by `_columns()`, or by the stream.
#[pyclass(frozen, name = "_Snapshot")]
pub(crate) struct PySnapshot {
    batches: Mutex<Option<BatchStream>>,
    provenance: Provenance,
    since: Option<u64>,
}

/// What `frame.attrs["siteline"]` says.
#[derive(Clone, IntoPyObject)]
struct Provenance {
    store: String,
    feed: String,
    query: String,
    sequence: u64,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    settled_only: bool,
    flagged: String,
}

impl PySnapshot {
    /// A snapshot of the store at this path, and where the failure of its stream will stand.
    pub(crate) fn new(snapshot: Snapshot, spec: &ReadSpec, store: &Path) -> (Self, Failure) {
        let Snapshot { reader, sequence, feed } = snapshot;
        let batches = BatchStream::new(reader);
        let failure = batches.failure();
        let provenance = Provenance {
            store: store.to_string_lossy().into_owned(),
            feed: spec.feed.clone(),
            query: feed.parameters(),
            sequence,
            start: spec.start,
            end: spec.end,
            settled_only: spec.settled_only,
            flagged: spec.flagged.to_string(),
        };
        let since = if let View::ChangedSince(since) = spec.view { Some(since) } else { None };
        (Self { batches: Mutex::new(Some(batches)), provenance, since }, failure)
    }

    fn take(&self, py: Python<'_>) -> PyResult<BatchStream> {
        let batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner).take();
        batches.ok_or_else(|| refuse(py, crate::Kind::InternalError, "a snapshot was read twice"))
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
        columns(py, &stream.schema(), &batches)
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
        let dict = self.provenance.clone().into_pyobject(py)?;
        if let Some(since) = self.since {
            dict.set_item("since", since)?;
        }
        Ok(dict)
    }
}
