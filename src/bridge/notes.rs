//! Tells Python of the requests of a client: `on_request=`, and what `siteline.otel` traces and counts.
//!
//! Both are the user's code, so the core never calls them while it works. Its notes wait in the
//! [`ClientNotes`] of their client. The thread that waits in a call tells those of the call's own
//! requests, and those that no call will tell, because theirs was given up: from time to time while it
//! waits, and at the end of the call; an event loop at the end. `Client.close()` tells what is left. What
//! is told runs with the context variables of the call that sent the request. The requests that it makes
//! itself are not told: it would be called without end.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;

use crate::convert::state::record;
use siteline_base::lock::Mutex;
use siteline_core::fork::Owned;
use siteline_core::http::{Observer, Recipient, RequestNote};

/// The headers of a call that is traced, as W3C Trace Context names them.
const TRACE_HEADERS: [&str; 2] = ["traceparent", "tracestate"];

/// How many clients have an `on_request=`, and what traces; how many of these trace. Without any, a call
/// learns nothing for them.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);
static TRACERS: AtomicUsize = AtomicUsize::new(0);
/// What traces and counts the requests of all clients.
static OF_ALL: Mutex<Option<Arc<Py<PyAny>>>> = Mutex::new(None);
static HAS_OF_ALL: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is telling a note.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Whom the requests of one client are told to, and the notes that wait for that.
pub(crate) struct ClientNotes {
    me: Weak<Self>,
    on_request: Option<Py<PyAny>>,
    /// What traces and counts this client alone.
    instrument: Mutex<Option<Arc<Py<PyAny>>>>,
    has_instrument: AtomicBool,
    /// The call whose step runs on this thread.
    current: fn() -> Arc<CallNotes>,
    /// In the order in which the requests ended. A forked child leaves its parent's to the parent.
    waiting: Arc<Owned<Mutex<VecDeque<Waiting>>>>,
}

struct Waiting {
    call: Weak<CallNotes>,
    is_over: Arc<AtomicBool>,
    origin: Option<Arc<Origin>>,
    note: RequestNote,
}

impl Waiting {
    /// Whether it is told by this call, or with all. One that no call will tell is told by any.
    fn is_due(&self, call: Option<&Arc<CallNotes>>) -> bool {
        let is_own = |call| std::ptr::eq(self.call.as_ptr(), Arc::as_ptr(call));
        let is_over = self.call.strong_count() == 0 || self.is_over.load(Ordering::Relaxed);
        is_over || call.is_none_or(is_own)
    }
}

/// A call for which requests are made, or the calls of one iterator.
#[derive(Default)]
pub(crate) struct CallNotes {
    /// Whose requests it made.
    clients: Mutex<Vec<Arc<ClientNotes>>>,
    /// Where its latest call comes from.
    origin: Mutex<Option<Arc<Origin>>>,
    /// Whether it will tell no more: a task that it left behind, or the traceback of the exception that
    /// ended it, may keep it for long.
    is_over: Arc<AtomicBool>,
}

/// The context variables of a call, and the headers of its requests.
pub(crate) struct Origin {
    context: Py<PyAny>,
    headers: Option<Arc<HeaderMap>>,
    /// Whether what is told makes the call.
    is_silent: bool,
}

tokio::task_local! {
    /// Where the polled future of the core comes from. The tasks that it starts come from there too, also
    /// where a later call has begun when they are first polled.
    static ORIGIN: Option<Arc<Origin>>;
}

/// A future that comes from there.
pub(crate) fn from_origin<F: Future>(
    origin: Option<Arc<Origin>>,
    future: F,
) -> impl Future<Output = F::Output> + use<F> {
    ORIGIN.scope(origin, future)
}

/// Runs a step that comes from there.
pub(crate) fn step_from_origin<T>(origin: Option<Arc<Origin>>, step: impl FnOnce() -> T) -> T {
    ORIGIN.sync_scope(origin, step)
}

/// Where the future or step that runs on this thread comes from.
pub(crate) fn current_origin() -> Option<Arc<Origin>> {
    ORIGIN.try_with(Clone::clone).ok().flatten()
}

/// Whether somebody may be told of a request.
pub(crate) fn is_anyone_told() -> bool {
    LISTENERS.load(Ordering::Relaxed) > 0
}

impl CallNotes {
    /// At the beginning of a call, on its own thread.
    ///
    /// # Errors
    /// What a signal handler raised.
    pub(crate) fn begin(&self, py: Python<'_>) -> PyResult<()> {
        let headers = if TRACERS.load(Ordering::Relaxed) > 0 { headers(py)? } else { None };
        let context = py.import(intern!(py, "contextvars"))?;
        let context = context.call_method0(intern!(py, "copy_context"))?.unbind();
        let is_silent = TELLING.get();
        let origin = Some(Arc::new(Origin { context, headers, is_silent }));
        // The old one is dropped after the lock is released, because that may run Python code.
        let _old = std::mem::replace(&mut *self.origin.lock(), origin);
        Ok(())
    }

    /// Where its latest call comes from.
    pub(crate) fn origin(&self) -> Option<Arc<Origin>> {
        self.origin.lock().clone()
    }

    /// After its end: what is left of its notes is told by any call.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether [`CallNotes::tell`] has something to tell.
    pub(crate) fn is_due(self: &Arc<Self>) -> bool {
        let clients = self.clients.lock().clone();
        !TELLING.get() && clients.iter().any(|client| client.due(Some(self)) > 0)
    }

    /// On the thread of the call, without a lock.
    ///
    /// # Errors
    /// What was raised by what is told; the other notes wait for the next time.
    pub(crate) fn tell(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let clients = self.clients.lock().clone();
        clients.iter().try_for_each(|client| client.tell(py, Some(self)))
    }

    fn remember(&self, client: Arc<ClientNotes>) {
        let mut clients = self.clients.lock();
        if !clients.iter().any(|known| Arc::ptr_eq(known, &client)) {
            clients.push(client);
        }
    }
}

/// The outcome of a call, after its notes were told. What that raises takes the place of a value; an
/// exception that ends the call stays.
///
/// # Errors
/// Those two.
pub(crate) fn tell_before<T>(
    py: Python<'_>,
    notes: Option<&Arc<CallNotes>>,
    outcome: PyResult<T>,
) -> PyResult<T> {
    let told = notes.map_or(Ok(()), |notes| notes.tell(py));
    match (outcome, told) {
        (Ok(value), told) => told.map(|()| value),
        (Err(raised), told) => {
            told.unwrap_or_else(|later| later.write_unraisable(py, None));
            Err(raised)
        }
    }
}

impl ClientNotes {
    /// `current` gives the call whose step runs on this thread.
    pub(crate) fn new(on_request: Option<Py<PyAny>>, current: fn() -> Arc<CallNotes>) -> Arc<Self> {
        LISTENERS.fetch_add(usize::from(on_request.is_some()), Ordering::Relaxed);
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            on_request,
            instrument: Mutex::new(None),
            has_instrument: AtomicBool::new(false),
            current,
            waiting: Arc::default(),
        })
    }

    /// The callable, for the garbage collector.
    pub(crate) fn on_request(&self) -> Option<&Py<PyAny>> {
        self.on_request.as_ref()
    }

    /// Whether somebody is told of its requests.
    pub(crate) fn is_told(&self) -> bool {
        self.on_request.is_some()
            || self.has_instrument.load(Ordering::Relaxed)
            || HAS_OF_ALL.load(Ordering::Relaxed)
    }

    /// The call tells of the requests of this client, even if it makes none itself.
    pub(crate) fn told_by(&self, call: &CallNotes) {
        if let Some(me) = self.me.upgrade() {
            call.remember(me);
        }
    }

    /// Traces and counts this client with `instrument`, whatever all clients have; `None` ends that.
    pub(crate) fn set_instrument(&self, instrument: Option<Py<PyAny>>) {
        let _old = exchange(&self.instrument, &self.has_instrument, instrument);
    }

    /// What traces and counts its requests.
    pub(crate) fn instrument(&self) -> Option<Arc<Py<PyAny>>> {
        let own = self.instrument.lock().clone();
        own.or_else(|| OF_ALL.lock().clone())
    }

    /// Tells the notes of this call, and those that no call will tell; all without a call. Those that
    /// come meanwhile wait: a read that goes on faster than they are told must not keep the call here.
    ///
    /// # Errors
    /// As [`CallNotes::tell`].
    pub(crate) fn tell(&self, py: Python<'_>, call: Option<&Arc<CallNotes>>) -> PyResult<()> {
        if TELLING.get() {
            return Ok(());
        }
        for _ in 0..self.due(call) {
            // Another thread may have told it.
            let Some(waiting) = self.take(call) else { break };
            let _telling = Telling::begin();
            self.give(py, &waiting)?;
        }
        Ok(())
    }

    /// How many notes wait for this call.
    fn due(&self, call: Option<&Arc<CallNotes>>) -> usize {
        let waiting = (*self.waiting).get().map(Mutex::lock);
        waiting.map_or(0, |waiting| waiting.iter().filter(|one| one.is_due(call)).count())
    }

    fn take(&self, call: Option<&Arc<CallNotes>>) -> Option<Waiting> {
        let mut waiting = (*self.waiting).get()?.lock();
        let place = waiting.iter().position(|one| one.is_due(call))?;
        waiting.remove(place)
    }

    fn give(&self, py: Python<'_>, waiting: &Waiting) -> PyResult<()> {
        let instrument = self.instrument();
        let method = |it: Arc<Py<PyAny>>| it.bind(py).getattr(intern!(py, "request"));
        let instrument = instrument.map(method).transpose()?;
        let on_request = self.on_request.as_ref().map(|callable| callable.bind(py).clone());
        let note = event(py, &waiting.note)?;
        let mut outcome = Ok(());
        for told in [instrument, on_request].into_iter().flatten() {
            let returned = match &waiting.origin {
                // A copy, because another thread may be telling a request of the same call.
                Some(origin) => {
                    let context = origin.context.bind(py).call_method0(intern!(py, "copy"))?;
                    context.call_method1(intern!(py, "run"), (told, &note))
                }
                None => told.call1((&note,)),
            };
            outcome = outcome.and(returned.map(drop));
        }
        outcome
    }
}

impl Observer for ClientNotes {
    fn recipient(&self) -> Option<Recipient> {
        if !self.is_told() {
            return None;
        }
        let origin = current_origin();
        if origin.as_ref().is_some_and(|origin| origin.is_silent) {
            return None;
        }
        let call = (self.current)();
        call.remember(self.me.upgrade()?);
        let headers = origin.as_ref().and_then(|origin| origin.headers.clone());
        let (waiting, is_over) = (Arc::clone(&self.waiting), Arc::clone(&call.is_over));
        let call = Arc::downgrade(&call);
        let give = move |note| {
            let waiting = (*waiting).get_or_init(Mutex::default);
            waiting.lock().push_back(Waiting { call, is_over, origin, note });
        };
        Some(Recipient { headers, give: Box::new(give) })
    }
}

impl Drop for ClientNotes {
    fn drop(&mut self) {
        LISTENERS.fetch_sub(usize::from(self.on_request.is_some()), Ordering::Relaxed);
        self.set_instrument(None);
    }
}

/// Marks that this thread is telling a note.
struct Telling(bool);

impl Telling {
    fn begin() -> Self {
        Self(TELLING.replace(true))
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        TELLING.set(self.0);
    }
}

/// Traces and counts all clients with `instrument`; `None` ends that.
#[pyfunction]
#[pyo3(name = "_instrument", signature = (instrument))]
fn instrument_all(instrument: Option<Py<PyAny>>) {
    let _old = exchange(&OF_ALL, &HAS_OF_ALL, instrument);
}

/// Adds `_instrument`, past `add_function`, which would list it in `__all__`.
pub(crate) fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.as_any().setattr("_instrument", wrap_pyfunction!(instrument_all, module)?)
}

/// Returns the old one, which is dropped without the lock, because that may run Python code.
fn exchange(
    known: &Mutex<Option<Arc<Py<PyAny>>>>,
    is_known: &AtomicBool,
    new: Option<Py<PyAny>>,
) -> Option<Arc<Py<PyAny>>> {
    let mut known = known.lock();
    for count in [&LISTENERS, &TRACERS] {
        count.fetch_add(usize::from(new.is_some()), Ordering::Relaxed);
        count.fetch_sub(usize::from(known.is_some()), Ordering::Relaxed);
    }
    is_known.store(new.is_some(), Ordering::Relaxed);
    std::mem::replace(&mut *known, new.map(Arc::new))
}

/// The headers of a request that this thread makes now.
fn headers(py: Python<'_>) -> PyResult<Option<Arc<HeaderMap>>> {
    static HEADERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let given = HEADERS.import(py, "siteline.otel", "_trace_headers")?.call0()?;
    let mut headers = HeaderMap::new();
    for name in TRACE_HEADERS {
        let Ok(value) = given.get_item(name) else { continue };
        let value: String = value.extract()?;
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    Ok(Some(headers).filter(|headers| !headers.is_empty()).map(Arc::new))
}

/// The fields of a `siteline.types.RequestEvent`.
#[derive(Serialize)]
struct RequestEvent<'a> {
    kind: &'static str,
    method: &'static str,
    url: &'a str,
    status: Option<u16>,
    error: Option<String>,
    started: Timestamp,
    duration: f64,
    bytes: u64,
    points: Option<u64>,
    attempt: u32,
    reason: Option<&'a str>,
    waited: f64,
    feed: Option<&'a str>,
    allowance_left: Option<u64>,
    sent: bool,
}

/// The `siteline.types.RequestEvent` of a finished request.
fn event<'py>(py: Python<'py>, note: &RequestNote) -> PyResult<Bound<'py, PyAny>> {
    let error = match note.error {
        Some(kind) => Some(kind.to_string()),
        None => note.is_abandoned.then(|| "abandoned".to_owned()),
    };
    let event = RequestEvent {
        kind: note.kind.name(),
        method: note.kind.method(),
        url: &note.url,
        status: note.status,
        error,
        started: note.started,
        duration: note.duration.as_secs_f64(),
        bytes: note.bytes,
        points: note.points,
        attempt: note.attempt,
        reason: note.reason.as_deref(),
        waited: note.waited.as_secs_f64(),
        feed: note.feed.as_deref(),
        allowance_left: note.allowance_left,
        sent: note.is_sent,
    };
    record(py, ("siteline._records.requests", "RequestEvent"), &event, [])
}
