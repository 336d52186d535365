//! Calls into `siteline.frames`, which makes frames and records in Python.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict};

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::convert::zone::zone;
use siteline_core::error::{Error, Kind, Result};

/// `siteline.frames.NAME`.
pub(crate) fn frames<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static FRAMES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = FRAMES.get_or_try_init(py, || py.import("siteline.frames").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// Further arguments of a frame, where they are given.
#[derive(Clone, Copy, Default)]
pub(crate) struct FrameArgs<'a, 'py> {
    pub(crate) tz: Option<&'a Bound<'py, PyAny>>,
    pub(crate) labels: Option<&'a Bound<'py, PyAny>>,
    pub(crate) gaps: Option<&'a str>,
}

/// What a frame shows beside the points as they are: `None` where nothing.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a, 'py> {
    pub(crate) labels: Option<&'a Bound<'py, PyAny>>,
    pub(crate) gaps: bool,
}

impl<'a, 'py> FrameArgs<'a, 'py> {
    /// # Errors
    /// `QueryError` for a `gaps=` that is none.
    pub(crate) fn shown(&self) -> PyResult<Option<Shown<'a, 'py>>> {
        let gaps = is_explicit(self.gaps).or_raise()?;
        let labels = self.labels.filter(|labels| !is_without(labels));
        Ok((gaps || labels.is_some()).then_some(Shown { labels, gaps }))
    }
}

/// Calls `siteline.frames.NAME(holder, ids=…, tz=…)`; with labels or gaps of what `holder._shown(labels, gaps)`
/// gives.
///
/// # Errors
/// `QueryError` for a zone and for gaps that are none, before anything is read; what the call raises.
pub(crate) fn call_frames<'py>(
    holder: &Bound<'py, PyAny>,
    name: &str,
    ids: Option<&str>,
    args: FrameArgs<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, options) = (holder.py(), PyDict::new(holder.py()));
    guarded(|| {
        let shown = args.shown()?;
        if let Some(tz) = args.tz {
            options.set_item("tz", zone(tz)?.0)?;
        }
        if let Some(ids) = ids {
            options.set_item("ids", ids)?;
        }
        let shown =
            shown.map(|Shown { labels, gaps }| holder.call_method1("_shown", (labels, gaps)));
        let shown = shown.transpose()?;
        frames(py, name)?.call((shown.as_ref().unwrap_or(holder),), Some(&options))
    })
}

/// Whether `gaps=` asks for a row for each bucket that is missing.
///
/// # Errors
/// `QueryError` for what is unknown.
pub(crate) fn is_explicit(gaps: Option<&str>) -> Result<bool> {
    match gaps {
        None => Ok(false),
        Some("explicit") => Ok(true),
        Some(other) => {
            let message = format!("gaps={other:?} is unknown: give \"explicit\" or None.");
            Err(Error::new(Kind::QueryError, message))
        }
    }
}

/// Whether `labels=` says that there are none.
pub(crate) fn is_without(labels: &Bound<'_, PyAny>) -> bool {
    labels.cast::<PyBool>().is_ok_and(|labels| !labels.is_true())
}
