//! [`CollectedPoints`]: the points of a scan that is collected first, page by page, while somebody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::client::collect::{CollectOnce, Step};
use crate::client::progress::Progress;
use crate::client::table::ReadFailure;
use crate::http::Deadline;
use crate::lock::Mutex;
use crate::python::bridge::logging::SharedLogBuffer;
use crate::python::bridge::runtime::{block_on, spawn, step_in_runtime};
use crate::python::client::PyClient;
use crate::python::client::failure::read_failure;
use crate::python::client::progress::{ProgressCallback, finish};
use crate::python::convert::rows::{PointSource, Taken};

/// The points of the whole, given once.
pub(crate) struct CollectedPoints {
    collect: Arc<CollectOnce>,
    deadline: Deadline,
    buffer: SharedLogBuffer,
    /// The page that was read last, until it is reported.
    progress: Arc<Mutex<Option<Progress>>>,
    callback: Option<ProgressCallback>,
    is_given: AtomicBool,
    /// Held because it may hold a sandbox, which serves the scan.
    client: Py<PyClient>,
}

impl CollectedPoints {
    pub(crate) fn new(
        collect: Arc<CollectOnce>,
        callback: Option<ProgressCallback>,
        client: Py<PyClient>,
    ) -> Self {
        Self {
            deadline: collect.scan().deadline(),
            collect,
            buffer: SharedLogBuffer::default(),
            progress: Arc::default(),
            callback,
            is_given: AtomicBool::new(false),
            client,
        }
    }

    /// Reads one more page.
    fn step(&self) -> impl Future<Output = Result<(), ReadFailure>> + use<> {
        let (collect, deadline) = (Arc::clone(&self.collect), self.deadline);
        let progress = Arc::clone(&self.progress);
        async move {
            if let Step::Page(read) = collect.step(deadline).await? {
                *progress.lock() = Some(read);
            }
            Ok(())
        }
    }
}

impl PointSource for CollectedPoints {
    fn take(&self) -> Taken {
        match self.collect.complete() {
            None => Taken::Nothing,
            Some(_) if self.is_given.swap(true, Ordering::Relaxed) => Taken::Ended,
            Some(table) => Taken::Points(Arc::clone(&table.merged.points)),
        }
    }

    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()?;
        let read = block_on(py, &self.buffer.get(), self.step())?;
        read.map_err(|failure| read_failure(py, failure))?;
        self.report(py).map(drop)
    }

    fn awaited<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        spawn(py, self.buffer.get(), self.step(), |py, read| {
            read.map(|()| py.None()).map_err(|failure| read_failure(py, failure))
        })
    }

    fn report(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(progress) = self.progress.lock().take() else { return Ok(false) };
        self.callback.as_ref().map_or(Ok(()), |callback| callback.report(py, &progress))?;
        Ok(true)
    }

    /// Drops what is under way; what was read is kept.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        step_in_runtime(py, &self.buffer.get(), || self.collect.stop_prefetch())?;
        finish(py, self.callback.as_ref())
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(self.callback.as_ref().map(|callback| &callback.0))
    }
}
