//! The core's log records, emitted to the standard library's loggers `siteline.token`,
//! `siteline.http`, `siteline.data`, `siteline.sync` and `siteline.ledger`; those of other crates are
//! dropped.
//!
//! A logging call runs the user's code: it may wait for a lock, or use the client itself. So the core
//! never makes one while it works. Each call has a [`LogBuffer`]; the records of its steps are pushed
//! there, and emitted where no lock is held: at the end of the call, and while it still waits by a
//! thread of the runtime. The steps of one read share a buffer with what it prefetches, and so do the
//! calls of an iterator: records of a prefetched page are emitted when that page is waited for or taken.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, MutexGuard};
use std::time::Duration;

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3_log::Caching;

use crate::fork::Owned;
use crate::lock::Mutex;
use crate::python::bridge::process::{attached, detached};

/// A buffer that is full drops its oldest record: a handler may hang, and memory has an end.
const MOST: usize = 10_000;
/// How long the end of a call waits for a record that another thread is emitting.
const LONGEST_EMIT: Duration = Duration::from_millis(250);

/// Made with the first record: importing `logging` takes as long as everything else.
static LOGGER: PyOnceLock<Option<pyo3_log::Logger>> = PyOnceLock::new();

thread_local! {
    /// The buffer of the call whose step runs on this thread.
    static CURRENT: RefCell<Option<Arc<LogBuffer>>> = const { RefCell::new(None) };
    /// Whether a handler runs on this thread, called from here.
    static EMITTING: Cell<bool> = const { Cell::new(false) };
}

/// The records of one call, or of one iterator.
#[derive(Default)]
pub(crate) struct LogBuffer {
    records: Mutex<Records>,
    emitted: Condvar,
    /// Whether records are dropped as they come.
    discards: bool,
    /// Whether the last of its calls was begun by an event loop.
    is_awaited: AtomicBool,
}

#[derive(Default)]
struct Records {
    pending: VecDeque<LogRecord>,
    /// How many threads are emitting a record.
    emitting: usize,
    /// What a handler raised first, until a call raises it.
    raised: Option<PyErr>,
}

struct LogRecord {
    level: Level,
    target: String,
    text: String,
    module: Option<&'static str>,
    file: Option<&'static str>,
    line: Option<u32>,
}

impl LogBuffer {
    /// The buffer of a call that begins on this thread. The calls of a handler get one that discards:
    /// their records would call the handler again, without end.
    pub(crate) fn for_call(buffer: Arc<Self>) -> Arc<Self> {
        if EMITTING.get() { Arc::new(Self { discards: true, ..Self::default() }) } else { buffer }
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
    pub(crate) fn has_pending(&self) -> bool {
        let records = self.records();
        records.emitting == 0 && !records.pending.is_empty()
    }

    /// At the end of the call: emits the records on this thread, after those that another thread is
    /// emitting, for which it waits a moment. The caller holds no lock.
    ///
    /// # Errors
    /// What the handlers raised first, here or meanwhile; `logging` itself keeps all but Ctrl-C and
    /// its like.
    pub(crate) fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.wait_for_others(py)?;
        self.emit(py);
        self.wait_for_others(py)?;
        self.raised().map_or(Ok(()), Err)
    }

    /// Does not wait within a handler: it may be called with the very record that is awaited.
    fn wait_for_others(&self, py: Python<'_>) -> PyResult<()> {
        if EMITTING.get() || self.records().emitting == 0 {
            return Ok(());
        }
        detached(py, || {
            let busy = |records: &mut Records| records.emitting > 0;
            drop(self.emitted.wait_timeout_while(self.records(), LONGEST_EMIT, busy));
        })
    }

    /// On a thread of the runtime, while the call goes on. What a handler raises here is raised by the
    /// call at its end; where the call is gone, it goes to `sys.unraisablehook`.
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
    }

    fn take(&self) -> Option<LogRecord> {
        let mut records = self.records();
        let record = records.pending.pop_front()?;
        records.emitting += 1;
        Some(record)
    }

    /// After a record was emitted. Of several exceptions the first is kept; the others are dropped
    /// without the lock, for that may run Python code.
    fn finish_emit(&self, raised: Option<PyErr>) {
        let mut records = self.records();
        records.emitting -= 1;
        let later = if records.raised.is_some() {
            raised
        } else {
            std::mem::replace(&mut records.raised, raised)
        };
        drop(records);
        self.emitted.notify_all();
        drop(later);
    }

    fn raised(&self) -> Option<PyErr> {
        self.records().raised.take()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock()
    }
}

/// The buffer that several calls share, such as the steps of one read: records that are pushed between
/// two of them are emitted at the next.
#[derive(Default)]
pub(crate) struct SharedLogBuffer(Owned<Arc<LogBuffer>>);

impl SharedLogBuffer {
    /// A forked child has one of its own: a thread that is gone may have locked that of the parent.
    pub(crate) fn get(&self) -> Arc<LogBuffer> {
        Arc::clone(self.0.get_or_init(Arc::default))
    }
}

impl LogRecord {
    fn emit(self, py: Python<'_>) -> PyResult<()> {
        let make = || {
            // To ask for a logger takes the one lock of `logging`, which Ctrl-C at the wrong moment
            // leaves locked (CPython up to 3.12): then every other thread waits for ever.
            let logger = pyo3_log::Logger::new(py, Caching::Loggers).ok()?;
            Some(logger.filter(LevelFilter::Debug))
        };
        let Some(logger) = LOGGER.get_or_init(py, make) else { return Ok(()) };
        let mut builder = Record::builder();
        builder
            .level(self.level)
            .target(&self.target)
            .module_path_static(self.module)
            .file_static(self.file)
            .line(self.line);
        logger.log(&builder.args(format_args!("{}", self.text)).build());
        // pyo3-log leaves it pending, where it would spoil whatever is called next.
        PyErr::take(py).map_or(Ok(()), Err)
    }
}

/// What the crate `log` knows of us.
struct Layer;

impl Log for Layer {
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
            // Nothing of ours has anything to say outside a call.
            let Some(buffer) = buffer else { return };
            buffer.push(LogRecord {
                level: record.level(),
                target: record.target().to_owned(),
                text: record.args().to_string(),
                module: record.module_path_static(),
                file: record.file_static(),
                line: record.line(),
            });
        });
    }

    fn flush(&self) {}
}

/// `logging` hears of forks. Where a thread imports it in the middle of one, it lets go of a lock that
/// it never took, and complains: whoever will have something to say imports it before.
pub(crate) fn import(py: Python<'_>) -> PyResult<()> {
    py.import("logging").map(drop)
}

/// Begins taking records, unless another extension in this process came first with a logger of its
/// own.
pub(crate) fn install() {
    if log::set_logger(&Layer).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}
