//! A store of the user's own: a Python object that keeps pages and states. See `siteline.targets.StoreTarget`.
//!
//! A plain one is called with the interpreter held, on the thread that called the sync (in asyncio:
//! that of the loop), between two futures of the core, never inside one. An async one is called on the
//! event loop, while the step of the sync waits for it on a thread of its own.

use std::any::Any;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::bridge::errors::raise;
use crate::bridge::event_loop::{EventLoop, LoopClosed, ask, begin_on};
use crate::bridge::events::Origin;
use crate::bridge::process::{Inside, attached};
use crate::bridge::runtime::wait_for;
use crate::frame::{PageSource, Synced};
use siteline_base::lock::Mutex;
use siteline_core::client::table::Provenance;
use siteline_core::client::{Client, ListedIds};
use siteline_core::error::{Error, Kind, Result};
use siteline_core::store::{Applied, Delivery, Target};
use siteline_core::sync::Feed;

/// Makes the pages of a sync as Python sees them.
#[derive(Debug)]
pub(crate) struct SyncedPages {
    feeds: HashMap<String, Feed>,
    host: String,
    listed: Arc<ListedIds>,
}

impl SyncedPages {
    /// Of these feeds, read by this client.
    pub(crate) fn new(feeds: &[Feed], client: &Client) -> Self {
        let feeds = feeds.iter().map(|feed| (feed.name().to_owned(), feed.clone())).collect();
        let host = client.base_url().host().to_owned();
        Self { feeds, host, listed: Arc::clone(client.listed()) }
    }

    /// A page of a feed; what was asked is the range of its chain.
    pub(crate) fn page(&self, feed: &str, delivery: &Delivery<'_>) -> Result<PageSource> {
        let Delivery { page, batch_first, read_at, chain, is_only_chain, .. } = *delivery;
        let known = self.feeds.get(feed).ok_or_else(|| {
            let message = format!("a page came for the feed {feed:?}, which was not asked for");
            Error::new(Kind::InternalError, message)
        })?;
        let provenance = Provenance {
            query: known.query(chain.start, chain.end)?,
            further: Vec::new(),
            host: self.host.clone(),
            read_at,
            pages: page.sequence.saturating_sub(batch_first) + 1,
            resumed_after_pages: batch_first.saturating_sub(chain.first),
            not_listed: Vec::new(),
            through: Vec::new(),
            listed: Arc::clone(&self.listed),
        };
        let synced = Some(Synced { feed: feed.to_owned(), chain, batch_first, is_only_chain });
        Ok(PageSource { page: page.clone(), provenance, synced })
    }
}

/// A Python object as a [`Target`].
#[derive(Debug)]
pub(crate) struct PyTarget {
    /// A `siteline._awaiting.PlainTarget`, or an `AsyncTarget`, whose methods give awaitables.
    object: Arc<Py<PyAny>>,
    pub(crate) is_async: bool,
    pages: SyncedPages,
    /// What it raised: the sync raises it unchanged.
    raised: Mutex<Option<PyErr>>,
}

impl PyTarget {
    /// # Errors
    /// `QueryError` for an object that is no store, `ConfigError` for an async one in a sync call.
    pub(crate) fn new(
        object: &Bound<'_, PyAny>,
        feeds: &[Feed],
        client: &Client,
    ) -> PyResult<Self> {
        let _inside = Inside::enter(object.py());
        let module = object.py().import("siteline._awaiting")?;
        let object = module.call_method1("target", (object,))?;
        let is_async = object.is_instance(&module.getattr("AsyncTarget")?)?;
        let object = Arc::new(object.unbind());
        let pages = SyncedPages::new(feeds, client);
        Ok(Self { object, is_async, pages, raised: Mutex::default() })
    }

    /// The outcome of a step of the core, with what the object raised meanwhile as its error.
    pub(crate) fn outcome<T>(&self, py: Python<'_>, outcome: Result<T>) -> PyResult<T> {
        let raised = self.raised.lock().take();
        outcome.map_err(|error| raised.unwrap_or_else(|| raise(py, &error)))
    }

    /// Calls a method, and waits for what it gives where that is an awaitable. What is raised is kept
    /// for [`PyTarget::outcome`].
    fn method<T: Send + 'static>(
        &self,
        name: &'static str,
        arguments: impl for<'py> PyCallArgs<'py> + Send + 'static,
        read: impl FnOnce(Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> Result<T> {
        let object = Arc::clone(&self.object);
        let answer = move |py: Python<'_>| object.call_method1(py, name, arguments);
        let outcome = if self.is_async {
            let caller = Origin::awaited().ok_or_else(|| LoopClosed::error("The store"))?;
            wait_for(ask(caller, answer, |_, outcome| outcome.and_then(read)))
                .map_err(|LoopClosed| LoopClosed::error("The store"))?
        } else {
            attached(|py| read(answer(py)?.into_bound(py)))
                .ok_or_else(|| Error::new(Kind::ClosedError, "the process is ending"))?
        };
        outcome.map_err(|raised| {
            if let Some(error) = attached(|py| unstorable(py, &raised)).flatten() {
                return error;
            }
            *self.raised.lock() = Some(raised);
            Error::new(Kind::StoreError, "the store raised an exception")
        })
    }
}

/// The error of a target of siteline for a page whose values it cannot store
/// (`siteline.targets._refusals`); `None` for any other.
fn unstorable(py: Python<'_>, raised: &PyErr) -> Option<Error> {
    let value = raised.value(py);
    let is_unstorable = value.getattr("_is_unstorable").and_then(|one| one.is_truthy());
    if !is_unstorable.unwrap_or(false) {
        return None;
    }
    let message: String = value.getattr("message").and_then(|text| text.extract()).ok()?;
    let hint: Option<String> = value.getattr("hint").and_then(|text| text.extract()).ok()?;
    let error = Error::new(Kind::StoreError, message).with(|context| {
        context.hint = hint;
        context.unstorable = true;
    });
    Some(match raised.cause(py) {
        Some(cause) => error.with_source(cause),
        None => error,
    })
}

/// The bytes of a state.
///
/// # Errors
/// `TypeError` that names where it came from.
pub(super) fn bytes_or_none(whose: &str, state: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    let kind = state.get_type().name()?;
    let bytes: Option<&[u8]> = state.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "{whose} a {kind}: a state is the bytes that were given to be stored last, or None."
        ))
    })?;
    Ok(bytes.map(<[u8]>::to_vec))
}

fn counts(given: &Bound<'_, PyAny>) -> PyResult<Applied> {
    let three = || given.extract().map(|(new, revised, same)| (new, revised, same, 0));
    let counts = given.extract().or_else(|_| three());
    let (inserted, revised, unchanged, flagged) = counts.map_err(|_: PyErr| {
        let shown = given.repr().map(|shown| shown.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!(
            "apply() of the store returned {}: it must return (inserted, revised, unchanged), or these \
             and withdrawn.",
            siteline_core::error::excerpt(&shown)
        ))
    })?;
    Ok(Applied { inserted, revised, unchanged, flagged })
}

impl Target for PyTarget {
    fn lock(&self, feed: &str) -> Result<Box<dyn Any + Send>> {
        let held = self.method("lock", (feed.to_owned(),), |held| Ok(held.unbind()))?;
        let caller = if self.is_async { Origin::awaited() } else { None };
        Ok(Box::new(HeldLock { object: Arc::clone(&self.object), caller, held: Some(held) }))
    }

    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>> {
        self.method("state", (feed.to_owned(),), |state| {
            bytes_or_none("state() of the store returned", &state)
        })
    }

    fn apply(&self, feed: &str, delivery: Option<&Delivery<'_>>, state: &[u8]) -> Result<Applied> {
        let page = delivery.map(|delivery| self.pages.page(feed, delivery)).transpose()?;
        let state = Cow::<[u8]>::Owned(state.to_vec());
        self.method("apply", (feed.to_owned(), page, state), |given| counts(&given))
    }
}

/// What `lock()` of the object gave, for its `release()` when the run is over.
struct HeldLock {
    object: Arc<Py<PyAny>>,
    /// For an async store: the lock is released on this caller's event loop. A thread that works for
    /// the loop waits for that.
    caller: Option<(Arc<Origin>, Arc<EventLoop>)>,
    held: Option<Py<PyAny>>,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        let object = Arc::clone(&self.object);
        let Some(caller) = self.caller.take() else {
            let _ = attached(|py| {
                let held = held.into_bound(py);
                let released = object.bind(py).call_method1("release", (&held,));
                released.map_or_else(|raised| raised.write_unraisable(py, Some(&held)), drop);
            });
            return;
        };
        let release = move |py: Python<'_>| object.call_method1(py, "release", (held,));
        if Origin::awaited().is_none() {
            return begin_on(caller, release);
        }
        // On a loop that was closed nothing can be released.
        let _ = wait_for(ask(caller, release, |py, released| {
            released.map_or_else(|raised| raised.write_unraisable(py, None), drop);
        }));
    }
}
