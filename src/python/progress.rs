//! Telling of progress: whoever was given as `progress=` is called between two pages, by the thread
//! that waits for them, with nothing held.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyList};

use crate::client::progress::Progress;
use crate::data::Query;
use crate::error::Kind;
use crate::http::Deadline;
use crate::python::conversions::{datetime, refuse};
use crate::python::logging::CommonDesk;
use crate::python::scan::PyScan;

/// What was given as `progress=`: `True` or a callable. Each scan has a reference of its own, which
/// it shows to the garbage collector.
pub(crate) struct Audience(pub(crate) Py<PyAny>);

/// A `collect()` that takes its steps one by one, to tell of each.
#[pyclass(frozen, name = "_Collecting", module = "siteline._siteline")]
pub(crate) struct PyCollecting {
    pub(crate) deadline: Deadline,
    pub(crate) desk: CommonDesk,
}

impl PyCollecting {
    pub(crate) fn begun(deadline: Deadline) -> Self {
        Self { deadline, desk: CommonDesk::default() }
    }
}

impl Audience {
    /// `None` for an argument that asks for nothing.
    pub(crate) fn from_argument(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        let Some(argument) = argument.filter(|argument| !argument.is_none()) else {
            return Ok(None);
        };
        match argument.cast::<PyBool>() {
            Ok(wanted) if !wanted.is_true() => return Ok(None),
            Err(_) if !argument.is_callable() => {
                let message = "progress= is True, or a callable that takes a siteline.Progress.";
                return Err(refuse(argument.py(), Kind::Query, message));
            }
            Err(_) if is_async(argument)? => {
                let message = "progress= is an async function, which nobody would await.";
                return Err(refuse(argument.py(), Kind::Query, message));
            }
            _ => {}
        }
        Ok(Some(Self(argument.clone().unbind())))
    }

    /// For the same scan going on from a bookmark.
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self(self.0.clone_ref(py))
    }

    /// Who is told of a read that begins now; `None` where nobody looks.
    pub(crate) fn reporter(&self, py: Python<'_>, title: &str) -> PyResult<Option<Reporter>> {
        let told = module(py)?.getattr("reporter")?.call1((&self.0, title))?;
        Ok((!told.is_none()).then(|| Reporter(told.unbind())))
    }
}

/// Whom to tell of reads side by side, each scan its own; those that want a bar share one.
pub(crate) fn reporters(py: Python<'_>, scans: &[Py<PyScan>]) -> PyResult<Vec<Option<Reporter>>> {
    let asked = scans.iter().map(|scan| scan.get().asks_to_be_told(py));
    let asked = PyList::new(py, asked.collect::<Vec<_>>())?;
    let told = module(py)?.getattr("reporters")?.call1((asked,))?;
    told.try_iter()?
        .map(|one| one.map(|one| (!one.is_none()).then(|| Reporter(one.unbind()))))
        .collect()
}

/// What a read of this query is called.
pub(crate) fn title(query: &Query) -> String {
    let ids = [&query.input().site, &query.input().line];
    let ids: Vec<&str> = ids.into_iter().flatten().map(String::as_str).collect();
    if ids.is_empty() { "siteline".to_owned() } else { ids.join(" ") }
}

fn is_async(argument: &Bound<'_, PyAny>) -> PyResult<bool> {
    let inspect = argument.py().import("inspect")?;
    inspect.call_method1("iscoroutinefunction", (argument,))?.is_truthy()
}

/// Whom to tell of one read.
pub(crate) struct Reporter(pub(crate) Py<PyAny>);

/// What is told: a `siteline.Progress`.
pub(crate) fn event<'py>(py: Python<'py>, progress: &Progress) -> PyResult<Bound<'py, PyAny>> {
    let newest = progress.newest.map(|at| datetime(py, at)).transpose()?;
    module(py)?.getattr("Progress")?.call1((
        progress.pages,
        progress.points,
        progress.requests,
        progress.allowance_left,
        newest,
        progress.fraction,
        progress.done,
    ))
}

impl Reporter {
    pub(crate) fn tell(&self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        self.0.call1(py, (event(py, progress)?,)).map(drop)
    }

    /// The read is over, or has failed.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<()> {
        module(py)?.getattr("finish")?.call1((&self.0,)).map(drop)
    }
}

/// The read is over, or has failed.
pub(crate) fn end(py: Python<'_>, reporter: Option<&Reporter>) -> PyResult<()> {
    reporter.map_or(Ok(()), |reporter| reporter.end(py))
}

fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module =
        MODULE.get_or_try_init(py, || py.import("siteline.progress").map(Bound::unbind))?;
    Ok(module.bind(py))
}
