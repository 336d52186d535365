//! Emits the core's log records to the loggers `siteline.token`, `siteline.http`, `siteline.data`,
//! `siteline.sync` and `siteline.ledger` of the standard library. Records of other crates are dropped.
//!
//! A logging handler is the user's code: it may wait for a lock, or use the client itself. So the core
//! never calls it while it works. Each call has a [`LogBuffer`], to which its steps push their records.
//! They are emitted where no lock is held: by the caller's thread at the end of the call, or by a thread
//! of the runtime while the call waits. All steps of one read, and all calls of an iterator, share a
//! buffer with their prefetch: records of a prefetched page are emitted when it is waited for or taken.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use log::kv::{Key, Value, VisitSource};
use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::IntoPyDict as _;
use tokio::sync::Notify;

use crate::bridge::notes::{CallNotes, Origin, is_anyone_told};
use crate::bridge::process::{attached, detached};
use siteline_base::lock::Mutex;
use siteline_core::fork::Owned;

/// Most records in a buffer. A full one drops its oldest: memory stays bounded if a handler hangs.
const MOST: usize = 10_000;
/// How long the end of a call waits for a record that another thread is emitting.
const LONGEST_EMIT: Duration = Duration::from_millis(250);

thread_local! {
    /// The buffer of the call whose step runs on this thread.
    static CURRENT: RefCell<Option<Arc<LogBuffer>>> = const { RefCell::new(None) };
    /// Whether this thread is emitting a record, so that a handler may be running on it.
    static EMITTING: Cell<bool> = const { Cell::new(false) };
}

/// The records of one call, or of one iterator, and what is told of its requests.
#[derive(Default)]
pub(crate) struct LogBuffer {
    records: Mutex<Records>,
    pushed: Notify,
    emitted: Condvar,
    /// Whether all records are dropped.
    discards: bool,
    /// The level below which no logger wants a record.
    lowest: AtomicU8,
    /// Whether its latest call was begun in asyncio.
    is_awaited: AtomicBool,
    notes: OnceLock<Arc<CallNotes>>,
    /// Whether whoever makes the call tells its notes, after its end.
    tells_later: bool,
}

#[derive(Default)]
struct Records {
    pending: VecDeque<LogRecord>,
    /// The number of threads that are emitting a record, and of those that wait for them.
    emitting: usize,
    waiting: usize,
    /// The first exception of a handler, until a call raises it.
    raised: Option<PyErr>,
}

struct LogRecord {
    level: u8,
    /// Of the logger.
    name: String,
    text: String,
    fields: Fields,
    file: Option<&'static str>,
    line: Option<u32>,
}

/// The attributes of a record besides its text, such as `page`; those without a value are left out.
struct Fields(Vec<(String, Field)>);

#[derive(IntoPyObject)]
enum Field {
    Whole(u64),
    Text(String),
}

impl Fields {
    fn of(record: &Record<'_>) -> Self {
        let mut fields = Self(Vec::new());
        // Visiting fails only if `visit_pair` does.
        let _ = record.key_values().visit(&mut fields);
        fields
    }
}

impl<'a> VisitSource<'a> for Fields {
    fn visit_pair(&mut self, name: Key<'a>, value: Value<'a>) -> Result<(), log::kv::Error> {
        let text = || value.to_borrowed_str().map(|text| Field::Text(text.to_owned()));
        let field = value.to_u64().map(Field::Whole).or_else(text);
        self.0.extend(field.map(|field| (name.as_str().to_owned(), field)));
        Ok(())
    }
}

impl LogBuffer {
    /// The buffer of a call that begins on this thread. A call that a handler makes gets one that drops
    /// its records: they would call the handler again, without end.
    pub(crate) fn for_call(buffer: Arc<Self>) -> Arc<Self> {
        if EMITTING.get() { Arc::new(Self { discards: true, ..Self::default() }) } else { buffer }
    }

    /// At the beginning of a call: records that no logger wants now are not made. A logger that is given
    /// a lower level meanwhile gets its records from the next call on.
    ///
    /// # Errors
    /// What a signal handler raised.
    pub(crate) fn begin(&self, py: Python<'_>) -> PyResult<()> {
        self.lowest.store(lowest_level(py)?, Ordering::Relaxed);
        if is_anyone_told() { self.notes().begin(py) } else { Ok(()) }
    }

    /// What is told of its requests.
    pub(crate) fn notes(&self) -> &Arc<CallNotes> {
        self.notes.get_or_init(Arc::default)
    }

    /// Where the latest call comes from, if anyone is told of its requests.
    pub(crate) fn origin(&self) -> Option<Arc<Origin>> {
        self.notes.get().and_then(|notes| notes.origin())
    }

    /// What is told of the requests of the call whose step runs on this thread.
    pub(crate) fn current_notes() -> Arc<CallNotes> {
        Arc::clone(Self::current().notes())
    }

    /// What the end of the call tells, on the thread of the caller.
    pub(crate) fn notes_to_tell(&self) -> Option<&Arc<CallNotes>> {
        self.notes.get().filter(|_| !self.tells_later)
    }

    /// Tells the notes of its requests, on the thread of the caller, without a lock.
    ///
    /// # Errors
    /// What was raised by what is told. The other notes wait for the next call.
    pub(crate) fn tell(&self, py: Python<'_>) -> PyResult<()> {
        self.notes.get().map_or(Ok(()), |notes| notes.tell(py))
    }

    pub(crate) fn set_awaited(&self, is_awaited: bool) {
        self.is_awaited.store(is_awaited, Ordering::Relaxed);
    }

    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// Runs a step of the call; its records are pushed here.
    pub(crate) fn run<T>(self: &Arc<Self>, step: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(Some(Arc::clone(self)));
        let outcome = step();
        CURRENT.set(before);
        outcome
    }

    /// The buffer of the call whose step runs on this thread.
    pub(crate) fn current() -> Arc<Self> {
        CURRENT.with_borrow(Option::clone).unwrap_or_default()
    }

    /// Whether there are records that no thread is emitting.
    pub(crate) fn has_progress(&self) -> bool {
        let records = self.records();
        records.emitting == 0 && !records.pending.is_empty()
    }

    /// Ends when there are such records.
    pub(crate) async fn progress(&self) {
        loop {
            let mut pushed = pin!(self.pushed.notified());
            // Before the look, so that no record between the two is missed.
            pushed.as_mut().enable();
            if self.has_progress() {
                return;
            }
            pushed.await;
        }
    }

    /// Drops the records that no logger wants. Whether none is left or being emitted: then no handler has
    /// to run, nor to be waited for. Records that a prefetch pushes later stay for the next call.
    pub(crate) fn is_quiet(&self, py: Python<'_>) -> bool {
        while let Some(record) = self.take() {
            let is_wanted = !matches!(record.is_wanted(py), Ok(false));
            if is_wanted {
                self.records().pending.push_front(record);
            }
            self.finish_emit(None);
            if is_wanted {
                return false;
            }
        }
        self.records().emitting == 0
    }

    /// At the end of the call: emits the records on this thread. A record that another thread is
    /// emitting is waited for, at most [`LONGEST_EMIT`]. The caller holds no lock.
    ///
    /// # Errors
    /// The first exception of a handler, on any thread. `logging` itself catches every `Exception`, so
    /// it is one such as `KeyboardInterrupt`.
    pub(crate) fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.wait_for_others(py)?;
        self.emit(py);
        self.wait_for_others(py)?;
        self.raised().map_or(Ok(()), Err)
    }

    /// Does not wait in a handler: the record that would be waited for may be the handler's own.
    fn wait_for_others(&self, py: Python<'_>) -> PyResult<()> {
        if EMITTING.get() || self.records().emitting == 0 {
            return Ok(());
        }
        detached(py, || {
            let busy = |records: &mut Records| records.emitting > 0;
            let mut records = self.records();
            records.waiting += 1;
            let waited = self.emitted.wait_timeout_while(records, LONGEST_EMIT, busy);
            waited.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
        })
    }

    /// Emits the records on a thread of the runtime, while the call goes on. An exception of a handler is
    /// raised by the call at its end, or given to `sys.unraisablehook` where the call no longer exists.
    pub(crate) fn flush_meanwhile(self: &Arc<Self>) {
        attached(|py| {
            self.emit(py);
            let is_alone = Arc::strong_count(self) == 1;
            if let Some(raised) = is_alone.then(|| self.raised()).flatten() {
                raised.write_unraisable(py, None);
            }
        });
    }

    fn emit(&self, py: Python<'_>) {
        let before = EMITTING.replace(true);
        while let Some(record) = self.take() {
            self.finish_emit(record.emit(py).err());
        }
        EMITTING.set(before);
    }

    fn push(&self, record: LogRecord) {
        if self.discards {
            return;
        }
        let mut records = self.records();
        if records.pending.len() == MOST {
            records.pending.pop_front();
        }
        records.pending.push_back(record);
        drop(records);
        self.pushed.notify_waiters();
    }

    fn take(&self) -> Option<LogRecord> {
        let mut records = self.records();
        let record = records.pending.pop_front()?;
        records.emitting += 1;
        Some(record)
    }

    /// After a record was emitted. The first exception is kept. A later one is dropped after the lock is
    /// released, because dropping it may run Python code.
    fn finish_emit(&self, raised: Option<PyErr>) {
        let mut records = self.records();
        records.emitting -= 1;
        let later = if records.raised.is_some() {
            raised
        } else {
            std::mem::replace(&mut records.raised, raised)
        };
        let is_awaited = records.waiting > 0;
        drop(records);
        if is_awaited {
            self.emitted.notify_all();
        }
        drop(later);
    }

    /// The first exception of a handler, once.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.records().raised.take()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock()
    }
}

/// A buffer that several calls share, such as the steps of one read. Records that are pushed between
/// two calls are emitted by the later one.
#[derive(Default)]
pub(crate) struct SharedLogBuffer {
    buffer: Owned<Arc<LogBuffer>>,
    tells_later: bool,
}

impl SharedLogBuffer {
    /// Its notes are told by [`LogBuffer::tell`] alone.
    pub(crate) fn that_tells_later() -> Self {
        Self { buffer: Owned::default(), tells_later: true }
    }

    /// After the last of its calls: what is left of its notes is told by any call.
    pub(crate) fn end(&self) {
        if let Some(notes) = self.buffer.get().and_then(|buffer| buffer.notes.get()) {
            notes.end();
        }
    }

    /// A forked child has its own: a thread that the child does not have may have locked the parent's.
    pub(crate) fn get(&self) -> Arc<LogBuffer> {
        let tells_later = self.tells_later;
        let new = || Arc::new(LogBuffer { tells_later, ..LogBuffer::default() });
        Arc::clone(self.buffer.get_or_init(new))
    }
}

impl Drop for SharedLogBuffer {
    fn drop(&mut self) {
        self.end();
    }
}

impl LogRecord {
    /// Whether its logger is enabled for it. Runs no handler.
    fn is_wanted(&self, py: Python<'_>) -> PyResult<bool> {
        static IS_WANTED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let is_wanted = IS_WANTED.import(py, "siteline._logs", "is_wanted")?;
        is_wanted.call1((&self.name, self.level))?.is_truthy()
    }

    fn emit(self, py: Python<'_>) -> PyResult<()> {
        if !self.is_wanted(py)? {
            return Ok(());
        }
        let fields = self.fields.0.into_py_dict(py)?;
        let (file, line) = (self.file.unwrap_or_default(), self.line.unwrap_or_default());
        let parts = (self.name, self.level, file, line, self.text, fields);
        py.import("siteline._logs")?.call_method1("emit", parts).map(drop)
    }
}

/// The lowest level for which a logger of the core is enabled.
fn lowest_level(py: Python<'_>) -> PyResult<u8> {
    static LOWEST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOWEST.import(py, "siteline._logs", "lowest_level")?.call0()?.extract()
}

/// The level that `logging` has for it.
fn python_level(level: Level) -> u8 {
    match level {
        Level::Error => 40,
        Level::Warn => 30,
        Level::Info => 20,
        Level::Debug | Level::Trace => 10,
    }
}

/// The logger of the crate `log`.
struct BufferLogger;

impl Log for BufferLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        metadata.level() <= Level::Debug
            && (target == "siteline" || target.starts_with("siteline::"))
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        CURRENT.with_borrow(|buffer| {
            // The core logs nothing outside a call.
            let Some(buffer) = buffer else { return };
            let level = python_level(record.level());
            if level < buffer.lowest.load(Ordering::Relaxed) {
                return;
            }
            buffer.push(LogRecord {
                level,
                name: record.target().replace("::", "."),
                text: record.args().to_string(),
                fields: Fields::of(record),
                file: record.file_static(),
                line: record.line(),
            });
        });
    }

    fn flush(&self) {}
}

/// Installs the logger, unless the crate `log` has one already.
pub(crate) fn install() {
    if log::set_logger(&BufferLogger).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}
