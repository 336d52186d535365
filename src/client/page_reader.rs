//! [`PageReader`]: a page stream with its log records and its progress, for Python.

use std::sync::Arc;
use std::task::Poll;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::bridge::events::SharedEvents;
use crate::bridge::runtime::{block_on, spawn, step_in_runtime};
use crate::client::PyClient;
use crate::client::failure::read_failure;
use crate::client::progress::{ProgressCallback, finish};
use crate::convert::rows::{PointSource, Taken};
use crate::frame::TableShown;
use siteline_core::client::page_stream::PageStream;
use siteline_core::client::table::{Provenance, ReadFailure};
use siteline_core::data::Page;
use siteline_core::error::Result;

/// A page stream, and the callback that its pages are reported to. The log records of a page, even if it
/// is prefetched, are emitted when a caller waits for that page or takes it.
pub(crate) struct PageReader {
    stream: Arc<PageStream>,
    buffer: SharedEvents,
    callback: Option<ProgressCallback>,
    shown: TableShown,
    /// Held because it may hold a sandbox, which serves the stream.
    client: Py<PyClient>,
}

impl PageReader {
    pub(crate) fn new(
        stream: Arc<PageStream>,
        callback: Option<ProgressCallback>,
        shown: TableShown,
        client: Py<PyClient>,
    ) -> Self {
        Self { stream, buffer: SharedEvents::default(), callback, shown, client }
    }

    pub(crate) fn provenance(&self) -> &Provenance {
        self.stream.provenance()
    }

    /// As [`PageStream::take_page`].
    pub(crate) fn take_page(&self) -> Poll<Option<Page>> {
        self.stream.take_page()
    }

    fn failed(&self, py: Python<'_>, failure: ReadFailure) -> PyErr {
        match self.finish(py) {
            Ok(()) => read_failure(py, failure, &self.shown),
            Err(raised) => raised,
        }
    }
}

impl PointSource for PageReader {
    fn take(&self) -> Taken {
        match self.take_page() {
            Poll::Ready(Some(page)) => Taken::Points(page.points),
            Poll::Ready(None) => Taken::Ended,
            Poll::Pending => Taken::Nothing,
        }
    }

    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        // If every page is already here, nothing below would handle Ctrl-C.
        py.check_signals()?;
        self.buffer.get().begin(py, None)?;
        if self.report(py)? {
            return Ok(());
        }
        let filled = block_on(py, &self.buffer.get(), self.stream.read_next())?;
        filled.map_err(|failure| self.failed(py, failure))?;
        self.report(py).map(drop)
    }

    fn check_process(&self) -> Result<()> {
        self.stream.check_process()
    }

    fn prefetch(&self, py: Python<'_>) {
        if self.stream.may_prefetch() {
            // A page that cannot be prefetched is read when it is taken.
            drop(step_in_runtime(py, &self.buffer.get(), || self.stream.prefetch()));
        }
    }

    fn awaited<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        spawn(py, self.buffer.get(), self.stream.read_next(), |py, filled| {
            filled
                .map(|()| py.None())
                .map_err(|failure| read_failure(py, failure, &TableShown::default()))
        })
    }

    /// # Errors
    /// An exception of a `logging` handler or of `progress=`, and the error of a prefetched page.
    fn report(&self, py: Python<'_>) -> PyResult<bool> {
        let buffer = self.buffer.get();
        let mut filled = None;
        if self.stream.has_finished_prefetch() {
            filled = step_in_runtime(py, &buffer, || self.stream.receive_finished())?;
        }
        if filled.is_none() && !self.stream.has_progress() {
            return Ok(false);
        }
        buffer.handle(py)?;
        filled.unwrap_or(Ok(())).map_err(|failure| self.failed(py, failure))?;
        let Some(progress) = self.stream.take_progress() else { return Ok(false) };
        self.callback.as_ref().map_or(Ok(()), |callback| callback.report(py, &progress))?;
        Ok(true)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        finish(py, self.callback.as_ref())
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(self.callback.as_ref().map(|callback| &callback.0))
    }
}
