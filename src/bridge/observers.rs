//! Observers of the requests of a client: `on_request=`, and the instrument of `siteline.otel` that traces and
//! counts. A finished request is an event of its call (see [`crate::bridge::events`]).
//!
//! If the call is over, because it gave the request up, the event is left to the next call of the client, or to
//! `Client.close()`.

use std::collections::VecDeque;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use crate::bridge::events::{Event, Handling, Origin, What};
use crate::convert::state::record;
use crate::prelude::*;
use siteline_core::fork::Owned;
use siteline_core::http::{Observer, Recipient, RequestNote};

/// The headers of a call that is traced, as W3C Trace Context names them.
const TRACE_HEADERS: [&str; 2] = ["traceparent", "tracestate"];

/// Whether there was an instrument: before that, a call has no trace headers.
static IS_INSTRUMENTED: AtomicBool = AtomicBool::new(false);
/// Traces and counts the requests of all clients.
static OF_ALL: Instrument = Mutex::new(None);

/// An object of `siteline.otel`.
type Instrument = Mutex<Option<Arc<Py<PyAny>>>>;

fn set(place: &Instrument, instrument: Option<Py<PyAny>>) {
    IS_INSTRUMENTED.fetch_or(instrument.is_some(), Ordering::Relaxed);
    // The old one is dropped after the lock is released, because that may run Python code.
    let _old = std::mem::replace(&mut *place.lock(), instrument.map(Arc::new));
}

type Left = VecDeque<(Arc<Origin>, RequestNote)>;

/// The observers of the requests of one client.
pub(crate) struct Observers {
    me: Weak<Self>,
    on_request: Option<Py<PyAny>>,
    /// Traces and counts this client only.
    instrument: Instrument,
    /// Requests without a call that notifies of them, in the order in which they ended. A forked child leaves its
    /// parent's to the parent.
    left: Owned<Mutex<Left>>,
}

impl Observers {
    pub(crate) fn new(on_request: Option<Py<PyAny>>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            on_request,
            instrument: Mutex::new(None),
            left: Owned::empty(),
        })
    }

    /// The callable, for the garbage collector.
    pub(crate) fn on_request(&self) -> Option<&Py<PyAny>> {
        self.on_request.as_ref()
    }

    /// Whether the client has observers.
    pub(crate) fn exist(&self) -> bool {
        self.on_request.is_some() || self.instrument().is_some()
    }

    /// Traces and counts this client with `instrument`, even if all clients have one; `None` ends that.
    pub(crate) fn set_instrument(&self, instrument: Option<Py<PyAny>>) {
        set(&self.instrument, instrument);
    }

    /// The instrument that traces and counts its requests.
    pub(crate) fn instrument(&self) -> Option<Arc<Py<PyAny>>> {
        let own = self.instrument.lock().clone();
        own.or_else(|| OF_ALL.lock().clone())
    }

    /// Keeps a request after the end of its call.
    pub(super) fn leave(&self, origin: Arc<Origin>, note: RequestNote) {
        self.left.get_or_init(Mutex::default).lock().push_back((origin, note));
    }

    /// Notifies of the requests that were left; requests that are added meanwhile wait.
    pub(crate) fn notify_of_left(&self, py: Python<'_>) -> PyResult<()> {
        let Some(left) = self.left.get() else { return Ok(()) };
        let count = left.lock().len();
        let _handling = Handling::requests();
        for _ in 0..count {
            let next = left.lock().pop_front();
            // Another thread may have taken it.
            let Some((origin, note)) = next else { break };
            self.notify(py, &origin, &note)?;
        }
        Ok(())
    }

    /// Notifies each observer, even if another one raises.
    pub(super) fn notify(
        &self,
        py: Python<'_>,
        origin: &Origin,
        note: &RequestNote,
    ) -> PyResult<()> {
        let method = |it: Arc<Py<PyAny>>| it.bind(py).getattr(intern!(py, "request"));
        let instrument = self.instrument().map(method).transpose()?;
        let on_request = self.on_request.as_ref().map(|callable| callable.bind(py).clone());
        let event = event(py, note)?;
        let mut outcome = Ok(());
        for observer in [instrument, on_request].into_iter().flatten() {
            outcome = outcome.and(origin.in_context(py, (observer, &event)).map(drop));
        }
        outcome
    }
}

impl Observer for Observers {
    fn recipient(&self) -> Option<Recipient> {
        let origin = Origin::current().filter(|_| self.exist())?;
        let (queue, me) = (origin.request_queue()?, self.me.upgrade()?);
        queue.upgrade()?.remember(&me);
        let headers = origin.headers.clone().filter(|_| self.instrument().is_some());
        let give = move |note| {
            let event = Event { origin, what: What::Request(me, note) };
            let left = match queue.upgrade() {
                Some(events) => events.push(event),
                None => Some(event),
            };
            if let Some(Event { origin, what: What::Request(me, note) }) = left {
                me.leave(origin, note);
            }
        };
        Some(Recipient { headers, give: Box::new(give) })
    }
}

/// Traces and counts all clients with `instrument`; `None` ends that.
#[pyfunction]
#[pyo3(signature = (instrument))]
pub(crate) fn _instrument(instrument: Option<Py<PyAny>>) {
    set(&OF_ALL, instrument);
}

/// The trace headers of a call that begins on this thread.
pub(super) fn trace_headers(py: Python<'_>) -> PyResult<Option<Arc<HeaderMap>>> {
    static HEADERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if !IS_INSTRUMENTED.load(Ordering::Relaxed) {
        return Ok(None);
    }
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

/// The `siteline.types.RequestEvent` of a finished request.
fn event<'py>(py: Python<'py>, note: &RequestNote) -> PyResult<Bound<'py, PyAny>> {
    let error = match note.error {
        Some(kind) => Some(kind.to_string()),
        None => note.is_abandoned.then(|| "abandoned".to_owned()),
    };
    let event = json!({
        "kind": note.kind.name(),
        "method": note.kind.method(),
        "url": note.url,
        "status": note.status,
        "error": error,
        "started": note.started,
        "duration": note.duration.as_secs_f64(),
        "bytes": note.bytes,
        "points": note.points,
        "attempt": note.attempt,
        "reason": note.reason,
        "waited": note.waited.as_secs_f64(),
        "feed": note.feed.as_deref(),
        "allowance_left": note.allowance_left,
        "sent": note.is_sent,
    });
    record(py, ("siteline._records.requests", "RequestEvent"), &event, [])
}
