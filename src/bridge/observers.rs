//! Observers of requests: `on_request=`, and the instrument of `siteline.otel`. A finished request is an
//! event of its call. If the call is over, the event is left to the next call or to `Client.close()`.

use std::collections::{HashMap, VecDeque};
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::header::HeaderMap;
use serde_json::json;

use crate::bridge::events::{Event, Handling, Origin, REQUESTS, What};
use crate::convert::state::record;
use crate::prelude::*;
use siteline_core::fork::Owned;
use siteline_core::http::{Observer, Recipient, RequestNote};

/// Whether there ever was an instrument.
static IS_INSTRUMENTED: AtomicBool = AtomicBool::new(false);
static OF_ALL: Instrument = Mutex::new(None);

type Instrument = Mutex<Option<Arc<Py<PyAny>>>>;

fn set(place: &Instrument, instrument: Option<Py<PyAny>>) {
    IS_INSTRUMENTED.fetch_or(instrument.is_some(), Ordering::Relaxed);
    // Dropped after the lock is released, because that may run Python code.
    let _old = std::mem::replace(&mut *place.lock(), instrument.map(Arc::new));
}

type Left = VecDeque<(Arc<Origin>, RequestNote)>;

/// The observers of one client.
pub(crate) struct Observers {
    me: Weak<Self>,
    on_request: Option<Py<PyAny>>,
    /// Has precedence over the global one.
    instrument: Instrument,
    /// Requests of ended calls. A forked child leaves the parent's to the parent.
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

    pub(crate) fn on_request(&self) -> Option<&Py<PyAny>> {
        self.on_request.as_ref()
    }

    pub(crate) fn exist(&self) -> bool {
        self.on_request.is_some() || self.instrument().is_some()
    }

    /// Sets the instrument of a client, or of all clients.
    pub(crate) fn set_instrument(of: Option<&Self>, instrument: Option<Py<PyAny>>) {
        set(of.map_or(&OF_ALL, |own| &own.instrument), instrument);
    }

    pub(crate) fn instrument(&self) -> Option<Arc<Py<PyAny>>> {
        let own = self.instrument.lock().clone();
        own.or_else(|| OF_ALL.lock().clone())
    }

    pub(super) fn leave(&self, origin: Arc<Origin>, note: RequestNote) {
        self.left.get_or_init(Mutex::default).lock().push_back((origin, note));
    }

    /// Notifies of the present requests; later ones wait.
    pub(crate) fn notify_of_left(&self, py: Python<'_>) -> PyResult<()> {
        let Some(left) = self.left.get() else { return Ok(()) };
        let count = left.lock().len();
        let _handling = Handling::begin(REQUESTS);
        for _ in 0..count {
            let next = left.lock().pop_front();
            // Another thread may have taken it.
            let Some((origin, note)) = next else { break };
            self.notify(py, &origin, &note)?;
        }
        Ok(())
    }

    /// Notifies all observers, even if one raises.
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

pub(super) fn trace_headers(py: Python<'_>) -> PyResult<Option<Arc<HeaderMap>>> {
    static HEADERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if !IS_INSTRUMENTED.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let given = HEADERS.import(py, "siteline.otel", "_trace_headers")?.call0()?;
    let headers = HeaderMap::try_from(&given.extract::<HashMap<String, String>>()?).ok();
    Ok(headers.filter(|headers| !headers.is_empty()).map(Arc::new))
}

fn event<'py>(py: Python<'py>, note: &RequestNote) -> PyResult<Object<'py>> {
    static EVENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
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
    record(EVENT.import(py, "siteline._records.requests", "RequestEvent")?, &event)
}
