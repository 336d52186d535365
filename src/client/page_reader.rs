//! [`PageReader`]: a page stream with its log records and its progress, for Python.

use std::sync::Arc;
use std::task::Poll;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::bridge::call::Call;
use crate::bridge::errors::raise;
use crate::bridge::events::Events;
use crate::bridge::runtime::step_in_runtime;
use crate::client::PyClient;
use crate::client::bookmark::PyBookmark;
use crate::client::progress::{ProgressCallback, finish};
use crate::client::scan::settle;
use crate::frame::Frame;
use siteline_core::client::ReadNames;
use siteline_core::client::page_stream::PageStream;
use siteline_core::client::table::{Provenance, ReadFailure};
use siteline_core::data::Page;
use siteline_core::error::Result;
use siteline_core::http::Deadline;

/// A page stream, and the callback that its pages are reported to. The log records of a page, even if it
/// is prefetched, are emitted when a caller waits for that page or takes it.
pub(crate) struct PageReader {
    stream: Arc<PageStream>,
    buffer: Arc<Events>,
    callback: Option<ProgressCallback>,
    names: Arc<ReadNames>,
    deadline: Deadline,
    /// Held because it may hold a sandbox, which serves the stream.
    client: Py<PyClient>,
}

impl PageReader {
    pub(crate) fn new(
        stream: Arc<PageStream>,
        callback: Option<ProgressCallback>,
        (names, deadline): (Arc<ReadNames>, Deadline),
        client: Py<PyClient>,
    ) -> Self {
        Self { stream, buffer: Arc::default(), callback, names, deadline, client }
    }

    /// As [`scan::settle`](crate::client::scan::settle).
    pub(crate) fn settle(&self) -> Option<Call> {
        settle(&self.names, &self.buffer, self.deadline)
    }

    pub(crate) fn provenance(&self) -> &Provenance {
        self.stream.provenance()
    }

    /// As [`PageStream::take_page`].
    pub(crate) fn take_page(&self) -> Poll<Option<Page>> {
        self.stream.take_page()
    }

    pub(crate) fn check_process(&self) -> Result<()> {
        self.stream.check_process()
    }

    pub(crate) fn prefetch(&self, py: Python<'_>) {
        if self.stream.may_prefetch() {
            // A page that cannot be prefetched is read when it is taken.
            drop(step_in_runtime(py, &self.buffer, || self.stream.prefetch()));
        }
    }

    pub(crate) fn fill(&self, py: Python<'_>) -> Call {
        let callback = self.callback.as_ref().map(|callback| callback.clone_ref(py));
        let (names, read) = (Arc::clone(&self.names), self.stream.read_next());
        let fill = async move {
            names.begin();
            read.await
        };
        Call::new(Arc::clone(&self.buffer), fill, move |py, filled| {
            filled.map(|()| py.None()).map_err(|failure| failed(py, callback.as_ref(), failure))
        })
    }

    /// # Errors
    /// An exception of a `logging` handler or of `progress=`, and the error of a prefetched page.
    pub(crate) fn report(&self, py: Python<'_>) -> PyResult<bool> {
        let mut filled = None;
        if self.stream.has_finished_prefetch() {
            filled = step_in_runtime(py, &self.buffer, || self.stream.receive_finished())?;
        }
        if filled.is_none() && !self.stream.has_progress() {
            return Ok(false);
        }
        self.buffer.handle(py)?;
        let callback = self.callback.as_ref();
        filled.unwrap_or(Ok(())).map_err(|failure| failed(py, callback, failure))?;
        let Some(progress) = self.stream.take_progress() else { return Ok(false) };
        callback.map_or(Ok(()), |callback| callback.report(py, &progress))?;
        Ok(true)
    }

    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<()> {
        finish(py, self.callback.as_ref())
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(self.callback.as_ref().map(|callback| &callback.0))
    }
}

/// The exception of a page that was not read. Nothing more is reported.
fn failed(py: Python<'_>, callback: Option<&ProgressCallback>, failure: ReadFailure) -> PyErr {
    finish(py, callback).err().unwrap_or_else(|| read_failure(py, failure))
}

/// The Python exception of a read that failed, with `.bookmark`, and with the frame of `.partial`.
pub(crate) fn read_failure(py: Python<'_>, failure: ReadFailure) -> PyErr {
    let exception = raise(py, &failure.error);
    let value = exception.value(py).clone();
    let fill = || -> PyResult<()> {
        failure.bookmark.map_or(Ok(()), |at| value.setattr("bookmark", PyBookmark(at)))?;
        failure.partial.map_or(Ok(()), |table| value.setattr("partial", Frame::of_table(table)))
    };
    fill().err().unwrap_or(exception)
}
