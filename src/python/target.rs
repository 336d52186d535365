//! A store of the user's own: a Python object that keeps pages and states. See `siteline.StoreTarget`.
//!
//! It is called with the interpreter held, on the thread that called the sync (in asyncio: the
//! loop's), between two futures of the core and never inside one.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::client::scan::Provenance;
use crate::error::{Error, Kind, Result};
use crate::python::conversions::refuse;
use crate::python::errors::raise;
use crate::python::page::PyPage;
use crate::python::process::attached;
use crate::store::{Applied, Delivery, Target};
use crate::sync::Feed;

const WANTED: &str =
    "store= is a siteline.Store, or an object with state() and apply(): see siteline.StoreTarget.";

/// A Python object as a [`Target`].
#[derive(Debug)]
pub(crate) struct PyTarget {
    object: Py<PyAny>,
    feeds: HashMap<String, Feed>,
    host: String,
    /// What it raised: it comes through as it is.
    raised: Mutex<Option<PyErr>>,
}

impl PyTarget {
    /// # Errors
    /// `QueryError` for an object that is none.
    pub(crate) fn new(object: &Bound<'_, PyAny>, feeds: &[Feed], host: String) -> PyResult<Self> {
        let py = object.py();
        let inspect = py.import("inspect")?;
        for name in ["state", "apply", "lock"] {
            let method = match object.getattr_opt(name)?.filter(Bound::is_callable) {
                Some(method) => method,
                // It may be left out, and may be something else: a `threading.Lock` of its own.
                None if name == "lock" => continue,
                None => return Err(refuse(py, Kind::Query, WANTED)),
            };
            if inspect.call_method1("iscoroutinefunction", (method,))?.is_truthy()? {
                let message = format!("{name}() of the store is async: nobody would await it.");
                return Err(refuse(py, Kind::Query, message));
            }
        }
        let feeds = feeds.iter().map(|feed| (feed.input().name.clone(), feed.clone())).collect();
        Ok(Self { object: object.clone().unbind(), feeds, host, raised: Mutex::default() })
    }

    /// What the core gives back, or what the object raised on the way.
    ///
    /// # Errors
    /// These.
    pub(crate) fn outcome<T>(&self, py: Python<'_>, outcome: Result<T>) -> PyResult<T> {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        outcome.map_err(|error| raised.unwrap_or_else(|| raise(py, &error)))
    }

    /// Calls Python code; what it raises is kept, for [`PyTarget::outcome`].
    fn call<T>(&self, work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
        let ending = || Error::new(Kind::Closed, "the process is ending");
        attached(work).ok_or_else(ending)?.map_err(|raised| {
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            Error::new(Kind::Store, "the store raised an exception")
        })
    }

    /// The page as Python sees it; what was asked is the range of its chain.
    fn page<'py>(
        &self,
        py: Python<'py>,
        feed: &str,
        delivery: &Delivery<'_>,
    ) -> PyResult<Bound<'py, PyPage>> {
        let Delivery { page, read_at, chain, .. } = *delivery;
        let feed = self.feeds.get(feed).ok_or_else(|| {
            let message = format!("a page came for the feed {feed:?}, which was not asked for");
            refuse(py, Kind::Internal, message)
        })?;
        let query = feed.query(chain.start, chain.end).map_err(|error| raise(py, &error))?;
        let provenance = Provenance {
            query,
            further: Vec::new(),
            host: self.host.clone(),
            read_at,
            pages: 1,
            resumed_after_pages: page.sequence.saturating_sub(chain.first),
        };
        Bound::new(py, PyPage { page: page.clone(), provenance, chain: Some(chain) })
    }
}

impl Target for PyTarget {
    fn lock(&self, feed: &str) -> Result<Box<dyn Any + Send>> {
        self.call(|py| {
            let lock = self.object.bind(py).getattr_opt("lock")?;
            let Some(lock) = lock.filter(Bound::is_callable) else {
                return Ok(Box::new(()) as Box<dyn Any + Send>);
            };
            let held = lock.call1((feed,))?;
            if !held.hasattr("__enter__")? || !held.hasattr("__exit__")? {
                let message = format!(
                    "lock() of the store gave a {}: it gives a context manager.",
                    held.get_type().name()?
                );
                return Err(PyTypeError::new_err(message));
            }
            held.call_method0("__enter__")?;
            Ok(Box::new(Held(Some(held.unbind()))) as Box<dyn Any + Send>)
        })
    }

    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>> {
        self.call(|py| {
            let state = self.object.bind(py).call_method1("state", (feed,))?;
            if state.is_none() {
                return Ok(None);
            }
            let Ok(bytes) = state.cast::<PyBytes>() else {
                let kind = state.get_type().name()?;
                let message = format!(
                    "state() of the store gave a {kind}: it gives the bytes of the \
                                       newest apply(), or None."
                );
                return Err(PyTypeError::new_err(message));
            };
            Ok(Some(bytes.as_bytes().to_vec()))
        })
    }

    fn apply(&self, feed: &str, delivery: Option<&Delivery<'_>>, state: &[u8]) -> Result<Applied> {
        self.call(|py| {
            let page = delivery.map(|delivery| self.page(py, feed, delivery)).transpose()?;
            let arguments = (feed, page, PyBytes::new(py, state));
            let counts = self.object.bind(py).call_method1("apply", arguments)?;
            let three = || -> PyResult<(u64, u64, u64)> { counts.cast::<PyTuple>()?.extract() };
            let (inserted, revised, unchanged) = three().map_err(|_| {
                let shown = counts.repr().map(|shown| shown.to_string()).unwrap_or_default();
                PyTypeError::new_err(format!(
                    "apply() of the store gave {}: it gives (inserted, revised, unchanged).",
                    crate::error::excerpt(&shown)
                ))
            })?;
            Ok(Applied { inserted, revised, unchanged, flagged: 0 })
        })
    }
}

/// What `lock()` gave, entered. Left when the run is over.
struct Held(Option<Py<PyAny>>);

impl Drop for Held {
    fn drop(&mut self) {
        let Some(held) = self.0.take() else { return };
        let _ = attached(|py| {
            let nothing = (py.None(), py.None(), py.None());
            if let Err(raised) = held.bind(py).call_method1("__exit__", nothing) {
                raised.write_unraisable(py, Some(held.bind(py)));
            }
            held.drop_ref(py);
        });
    }
}
