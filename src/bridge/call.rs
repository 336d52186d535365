//! [`Call`]: work of the core that a thread or an event loop waits for.

use std::future::Future;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;

use crate::bridge::process::Inside;
use crate::bridge::runtime::{block_on, on_blocking_thread, spawn};
use crate::prelude::*;

enum Driver {
    Blocking,
    Asyncio,
}

type Work = Box<dyn FnOnce(Python<'_>, Driver) -> PyResult<Py<PyAny>> + Send>;

/// It does nothing before `wait()` or `await`.
#[pyclass(frozen, name = "Call", module = "siteline._core")]
pub(crate) struct Call(Mutex<Option<Work>>);

impl Call {
    pub(crate) fn new<F>(
        events: Arc<Events>,
        future: F,
        finish: impl FnOnce(Python<'_>, F::Output) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self
    where
        F: Future<Output: Send> + Send + 'static,
    {
        // Boxed once: a large future is slow to move.
        let future = Box::pin(future);
        Self::of_work(move |py, driver| match driver {
            Driver::Blocking => finish(py, block_on(py, &events, future)?),
            Driver::Asyncio => Ok(Py::new(py, spawn(py, events, future, finish)?)?.into_any()),
        })
    }

    pub(crate) fn giving<T>(
        events: Arc<Events>,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Self
    where
        T: for<'py> IntoPyObjectExt<'py> + Send + 'static,
    {
        Self::new(events, future, |py, given| given.or_raise()?.into_py_any(py))
    }

    /// A step that reads or writes files. Once begun, it completes even if it is cancelled.
    pub(crate) fn step<T: Send + 'static>(
        work: impl FnOnce() -> Result<T> + Send + 'static,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        Self::of_work(move |py, driver| match driver {
            Driver::Blocking => finish(py, step(py, work)?.or_raise()?),
            Driver::Asyncio => {
                let work = Box::pin(on_blocking_thread(move || without_fork(work)));
                let finish = |py: Python<'_>, done: Result<Result<T>>| {
                    finish(py, done.and_then(|done| done).or_raise()?)
                };
                Ok(Py::new(py, spawn(py, Arc::default(), work, finish)?)?.into_any())
            }
        })
    }

    fn of_work(
        work: impl FnOnce(Python<'_>, Driver) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        Self(Mutex::new(Some(Box::new(work))))
    }

    fn run(&self, py: Python<'_>, driver: Driver) -> PyResult<Py<PyAny>> {
        let work = self.0.lock().take();
        let used = || PyRuntimeError::new_err("this call was already used: make another");
        guarded(|| work.ok_or_else(used)?(py, driver))
    }
}

#[pymethods]
impl Call {
    pub(crate) fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.run(py, Driver::Blocking)
    }

    /// For `siteline._awaiting.drive`.
    fn begin(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.run(py, Driver::Asyncio)
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Object<'py>> {
        static DRIVE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let _inside = Inside::enter(slf.py());
        DRIVE.import(slf.py(), "siteline._awaiting", "drive")?.call1((slf,))
    }
}
