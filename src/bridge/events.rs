//! One queue for the log records, finished requests and wanted signatures of a call. Handlers are users' code
//! that may block, raise, or use siteline. So the driver of the call runs them without a lock, on the caller's
//! thread or loop, with the context variables of the call.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::call::PyCallArgs;
use reqwest::header::HeaderMap;
use tokio::sync::Notify;

use crate::bridge::event_loop::{EventLoop, Job};
use crate::bridge::logging::{LogRecord, lowest_level};
use crate::bridge::observers::{Observers, trace_headers};
use crate::prelude::*;
use siteline_core::fork::Owned;
use siteline_core::http::RequestNote;

/// A full queue drops log records, so that memory stays bounded while a handler hangs.
const MOST: usize = 10_000;

thread_local! {
    /// The kinds that this thread is handling.
    static HANDLING: Cell<u8> = const { Cell::new(0) };
    /// The calls that this thread waits for: a handler may wait for another call.
    static WAITING: RefCell<Vec<Arc<Events>>> = const { RefCell::new(Vec::new()) };
}

tokio::task_local! {
    /// The origin of a future, and of the tasks that it starts.
    static ORIGIN: Arc<Origin>;
}

/// The queue and the context of a call.
pub(crate) struct Origin {
    events: Weak<Events>,
    /// `None` if a thread waits for the call.
    pub(crate) event_loop: Option<Arc<EventLoop>>,
    context: Py<PyAny>,
    /// `traceparent` and `tracestate` of its requests.
    pub(crate) headers: Option<Arc<HeaderMap>>,
    /// The lowest wanted level when the call began.
    lowest: u8,
    /// If a handler began the call: its kinds of events, which would recur without end.
    silenced: u8,
}

impl Origin {
    pub(crate) fn current() -> Option<Arc<Self>> {
        ORIGIN.try_with(Arc::clone).ok()
    }

    /// `None` unless a loop awaits the call.
    pub(crate) fn awaited() -> Option<(Arc<Self>, Arc<EventLoop>)> {
        let origin = Self::current()?;
        let event_loop = Arc::clone(origin.event_loop.as_ref()?);
        Some((origin, event_loop))
    }

    pub(crate) fn run<T>(self: Arc<Self>, step: impl FnOnce() -> T) -> T {
        ORIGIN.sync_scope(self, step)
    }

    pub(crate) fn run_if_known<T>(origin: Option<Arc<Self>>, step: impl FnOnce() -> T) -> T {
        match origin {
            Some(origin) => origin.run(step),
            None => step(),
        }
    }

    /// Calls the first argument in a copy of the call's context, which another thread may be using.
    pub(crate) fn in_context<'py>(
        &self,
        py: Python<'py>,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<Object<'py>> {
        let context = self.context.bind(py).call_method0(intern!(py, "copy"))?;
        context.call_method1(intern!(py, "run"), arguments)
    }

    /// Lets the driver of the call run this. Returns false if it has no driver.
    pub(super) fn ask(self: Arc<Self>, wanted: Arc<Wanted>) -> bool {
        if let Some(event_loop) = self.event_loop.clone() {
            event_loop.post(Box::new(move |py| wanted.serve(py)));
            return true;
        }
        let events =
            self.events.upgrade().filter(|events| events.drivers.load(Ordering::Relaxed) > 0);
        let push = |events: Arc<Events>| {
            events.push(Event { origin: self, what: What::Wanted(wanted) }).is_none()
        };
        events.is_some_and(push)
    }

    pub(super) fn log_queue(&self, level: u8) -> Option<Arc<Events>> {
        let is_wanted = level >= self.lowest && self.silenced & LOGS == 0;
        if is_wanted { self.events.upgrade() } else { None }
    }

    pub(super) fn request_queue(&self) -> Option<Weak<Events>> {
        (self.silenced & REQUESTS == 0).then(|| Weak::clone(&self.events))
    }
}

const LOGS: u8 = 1;
pub(super) const REQUESTS: u8 = 2;
pub(super) const WANTED: u8 = 4;
pub(super) const ALL: u8 = LOGS | REQUESTS | WANTED;

pub(super) struct Event {
    pub(super) origin: Arc<Origin>,
    pub(super) what: What,
}

pub(super) enum What {
    Log(LogRecord),
    Request(Arc<Observers>, RequestNote),
    Wanted(Arc<Wanted>),
}

/// Python code that the core waits for. It runs once.
pub(super) struct Wanted(Mutex<Option<Job>>);

impl Wanted {
    pub(super) fn new(job: Job) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(job))))
    }

    pub(super) fn serve(&self, py: Python<'_>) -> PyResult<()> {
        let job = self.0.lock().take();
        job.map_or(Ok(()), |job| job(py))
    }
}

impl Event {
    fn kind(&self) -> u8 {
        match self.what {
            What::Log(_) => LOGS,
            What::Request(..) => REQUESTS,
            What::Wanted(_) => WANTED,
        }
    }

    fn handle(self, py: Python<'_>) -> PyResult<()> {
        // A signer may make calls that log or need another signer.
        let _handling = Handling::begin(self.kind() & !WANTED);
        match self.what {
            What::Log(record) => record.emit(py, &self.origin),
            What::Request(observers, note) => observers.notify(py, &self.origin, &note),
            What::Wanted(wanted) => wanted.serve(py),
        }
    }
}

pub(super) struct Handling(u8);

impl Handling {
    pub(super) fn begin(kind: u8) -> Self {
        Self(HANDLING.replace(HANDLING.get() | kind))
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        HANDLING.set(self.0);
    }
}

/// The events of a call, or of the steps of a read. A forked child has its own queue, because the parent's
/// may be locked.
#[derive(Default)]
pub(crate) struct Events {
    queue: Owned<Queue>,
    /// The kinds that wait for [`Events::handle_all`].
    deferred: u8,
    /// Threads that wait for a call.
    drivers: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    pushed: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    latest: Option<Arc<Origin>>,
    /// They are also notified of requests that earlier calls left.
    observers: Vec<Arc<Observers>>,
    /// No driver takes events any more, but a task or a traceback may keep the queue.
    is_over: bool,
}

impl Events {
    pub(crate) fn that_defer_requests() -> Self {
        Self { queue: Owned::empty(), deferred: REQUESTS, drivers: AtomicUsize::new(0) }
    }

    fn queue(&self) -> &Queue {
        self.queue.get_or_init(Queue::default)
    }

    /// Begins a call.
    pub(crate) fn begin(
        self: &Arc<Self>,
        py: Python<'_>,
        event_loop: Option<Arc<EventLoop>>,
    ) -> PyResult<Arc<Origin>> {
        static COPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let origin = Arc::new(Origin {
            events: Arc::downgrade(self),
            event_loop,
            context: COPY.import(py, "contextvars", "copy_context")?.call0()?.unbind(),
            headers: trace_headers(py)?,
            lowest: lowest_level(py)?,
            silenced: HANDLING.get(),
        });
        // Dropped after the lock is released, because that may run Python code.
        let _old = self.queue().state.lock().latest.replace(Arc::clone(&origin));
        Ok(origin)
    }

    /// For a step between two calls, which runs no Python code.
    pub(crate) fn latest(&self) -> Option<Arc<Origin>> {
        self.queue().state.lock().latest.clone()
    }

    pub(crate) fn remember(&self, observers: &Arc<Observers>) {
        let known = &mut self.queue().state.lock().observers;
        if !known.iter().any(|one| Arc::ptr_eq(one, observers)) {
            known.push(Arc::clone(observers));
        }
    }

    /// Returns the event if no driver will take it.
    pub(super) fn push(&self, event: Event) -> Option<Event> {
        let queue = self.queue();
        let mut state = queue.state.lock();
        if state.is_over {
            return Some(event);
        }
        if state.events.len() < MOST || event.kind() != LOGS {
            state.events.push_back(event);
        }
        drop(state);
        queue.pushed.notify_waiters();
        None
    }

    pub(super) fn drive(self: &Arc<Self>) -> Waiter {
        self.drivers.fetch_add(1, Ordering::Relaxed);
        WAITING.with_borrow_mut(|waiting| waiting.push(Arc::clone(self)));
        Waiter(PhantomData)
    }

    /// Whether there are events of these kinds that are not deferred.
    pub(super) fn has(&self, kinds: u8) -> bool {
        let kinds = kinds & !self.deferred;
        self.queue().state.lock().events.iter().any(|event| event.kind() & kinds != 0)
    }

    pub(super) async fn due(&self, kinds: u8) {
        loop {
            let mut pushed = pin!(self.queue().pushed.notified());
            // Registered before the check, so that no event is missed.
            pushed.as_mut().enable();
            if self.has(kinds) {
                return;
            }
            pushed.await;
        }
    }

    /// Handles the present events. Later ones wait, so that a fast read does not keep the caller here.
    pub(crate) fn handle(&self, py: Python<'_>) -> PyResult<()> {
        self.handle_but(py, self.deferred)
    }

    pub(crate) fn handle_all(&self, py: Python<'_>) -> PyResult<()> {
        self.handle_but(py, 0)
    }

    fn handle_but(&self, py: Python<'_>, skipped: u8) -> PyResult<()> {
        let skipped = skipped | HANDLING.get();
        let state = &self.queue().state;
        let count = state.lock().events.len();
        for _ in 0..count {
            let event = {
                let events = &mut state.lock().events;
                let place = events.iter().position(|event| event.kind() & skipped == 0);
                place.and_then(|place| events.remove(place))
            };
            let Some(event) = event else { break };
            event.handle(py)?;
        }
        if skipped & REQUESTS != 0 {
            return Ok(());
        }
        let observers = state.lock().observers.clone();
        observers.iter().try_for_each(|one| one.notify_of_left(py))
    }

    /// Leaves the unhandled requests to other calls of the client.
    pub(crate) fn end(&self) {
        let Some(queue) = self.queue.get() else { return };
        let (left, _latest) = {
            let mut state = queue.state.lock();
            state.is_over = true;
            (std::mem::take(&mut state.events), state.latest.take())
        };
        for Event { origin, what } in left {
            if let What::Request(observers, note) = what {
                observers.leave(origin, note);
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.end();
    }
}

pub(super) struct Waiter(PhantomData<*const ()>);

impl Waiter {
    pub(super) fn has_due(events: &Events) -> bool {
        events.has(ALL & !HANDLING.get())
            || WAITING.with_borrow(|waiting| waiting.iter().any(|events| events.has(WANTED)))
    }

    /// Also serves the outer calls of this thread, which the call of a handler may need.
    pub(super) fn handle(py: Python<'_>, events: &Events) -> PyResult<()> {
        let waiting = WAITING.with_borrow(Clone::clone);
        waiting.iter().try_for_each(|events| events.handle_but(py, ALL & !WANTED))?;
        events.handle(py)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let events = WAITING.with_borrow_mut(Vec::pop);
        if let Some(events) = events {
            events.drivers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// An exception of a handler replaces a value, but not an exception.
pub(crate) fn after_events<T>(
    py: Python<'_>,
    handled: PyResult<()>,
    outcome: PyResult<T>,
) -> PyResult<T> {
    match (outcome, handled) {
        (Ok(value), handled) => handled.map(|()| value),
        (Err(raised), handled) => {
            handled.unwrap_or_else(|later| later.write_unraisable(py, None));
            Err(raised)
        }
    }
}
