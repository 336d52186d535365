//! The core's records, handed to the stdlib loggers `siteline.token`, `siteline.http` and
//! `siteline.data`; those of other crates go nowhere.
//!
//! A logging call runs the user's code: it may wait for a lock, or use the client itself. So the
//! core never makes one while it works. Each call has a [`Desk`]; what is said during its steps is
//! laid down there, and handed over where nothing is held: at the end of the call, and while it
//! still waits by a thread of the runtime. The steps of a read that is told of share one, with what it
//! asks for early, and so do the calls of an iterator, with what it reads ahead: that is handed over
//! when its page is waited for or taken.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3_log::Caching;

use crate::python::process::attached;
use crate::python::runtime::detached;

/// Beyond this the oldest go: a handler hangs, and memory has an end.
const MOST: usize = 10_000;
/// How long the end of a call waits for a record of its own that another thread has in hand.
const IN_HAND: Duration = Duration::from_millis(250);

/// Made when there is something to hand over first: importing `logging` takes as long as all else.
static LOGGER: PyOnceLock<Option<pyo3_log::Logger>> = PyOnceLock::new();

thread_local! {
    /// The desk of the call whose step runs on this thread.
    static DESK: RefCell<Option<Arc<Desk>>> = const { RefCell::new(None) };
    /// A handler runs on this thread, called from here.
    static HANDING: Cell<bool> = const { Cell::new(false) };
}

/// The records of one call, or of one iterator.
#[derive(Default)]
pub(crate) struct Desk {
    records: Mutex<Records>,
    handed: Condvar,
}

#[derive(Default)]
struct Records {
    laid: VecDeque<Laid>,
    /// Threads with a record in hand.
    in_hand: usize,
    /// What a handler raised first, until a call raises it.
    raised: Option<PyErr>,
}

struct Laid {
    level: Level,
    target: String,
    text: String,
    module: Option<&'static str>,
    file: Option<&'static str>,
    line: Option<u32>,
}

impl Desk {
    /// Runs a step of the call: what it says is laid down here.
    pub(crate) fn during<T>(self: &Arc<Self>, step: impl FnOnce() -> T) -> T {
        let before = DESK.replace(Some(Arc::clone(self)));
        let outcome = step();
        DESK.set(before);
        outcome
    }

    /// The desk of the call whose step runs on this thread.
    pub(crate) fn of_this_step() -> Arc<Self> {
        DESK.with_borrow(Option::clone).unwrap_or_default()
    }

    /// Whether a thread should be found to hand over what lies here.
    pub(crate) fn is_waiting(&self) -> bool {
        let records = self.records();
        records.in_hand == 0 && !records.laid.is_empty()
    }

    /// At the end of the call: hands over what lies here, on this thread, after what another one has
    /// in hand, for which it waits a moment. Hold nothing here.
    ///
    /// # Errors
    /// What the handlers raised first, here or meanwhile; `logging` itself keeps all but Ctrl-C and
    /// its like.
    pub(crate) fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.await_others(py)?;
        self.hand_over(py);
        self.await_others(py)?;
        self.raised().map_or(Ok(()), Err)
    }

    /// Not from a handler: what is in hand may be what it was called with.
    fn await_others(&self, py: Python<'_>) -> PyResult<()> {
        if is_in_handler() || self.records().in_hand == 0 {
            return Ok(());
        }
        detached(py, || {
            let busy = |records: &mut Records| records.in_hand > 0;
            drop(self.handed.wait_timeout_while(self.records(), IN_HAND, busy));
        })
    }

    /// On a thread of the runtime, while the call goes on: what a handler raises here is for the call
    /// to raise at its end. Where that has gone, nobody can hear of it but `sys.unraisablehook`.
    pub(crate) fn clear_meanwhile(self: &Arc<Self>) {
        attached(|py| {
            self.hand_over(py);
            let is_alone = Arc::strong_count(self) == 1;
            if let Some(raised) = is_alone.then(|| self.raised()).flatten() {
                raised.write_unraisable(py, None);
            }
        });
    }

    fn hand_over(&self, py: Python<'_>) {
        let before = HANDING.replace(true);
        while let Some(laid) = self.take() {
            self.hand_in(laid.hand_over(py).err());
        }
        HANDING.set(before);
    }

    fn lay(&self, laid: Laid) {
        let mut records = self.records();
        if records.laid.len() == MOST {
            records.laid.pop_front();
        }
        records.laid.push_back(laid);
    }

    fn take(&self) -> Option<Laid> {
        let mut records = self.records();
        let laid = records.laid.pop_front()?;
        records.in_hand += 1;
        Some(laid)
    }

    /// After a record was handed over. What was raised later than the first goes: without the lock,
    /// for that may run Python code.
    fn hand_in(&self, raised: Option<PyErr>) {
        let mut records = self.records();
        records.in_hand -= 1;
        let later = if records.raised.is_some() {
            raised
        } else {
            std::mem::replace(&mut records.raised, raised)
        };
        drop(records);
        self.handed.notify_all();
        drop(later);
    }

    fn raised(&self) -> Option<PyErr> {
        self.records().raised.take()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The desk of calls that belong together, as the steps of one read do: what goes on between two of
/// them has its say at the next.
pub(crate) struct CommonDesk {
    desk: Arc<Desk>,
    process: u32,
}

impl Default for CommonDesk {
    fn default() -> Self {
        Self { desk: Arc::default(), process: std::process::id() }
    }
}

impl CommonDesk {
    /// In a forked child that of the parent is not touched: a thread that is gone may hold it.
    pub(crate) fn get(&self) -> Arc<Desk> {
        if self.process == std::process::id() { Arc::clone(&self.desk) } else { Arc::default() }
    }
}

impl Laid {
    fn hand_over(self, py: Python<'_>) -> PyResult<()> {
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

/// Whether this thread runs a handler that was called from here.
pub(crate) fn is_in_handler() -> bool {
    HANDING.get()
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
        // What a handler's own calls have to say would never end.
        if !self.enabled(record.metadata()) || HANDING.get() {
            return;
        }
        DESK.with_borrow(|desk| {
            // Nothing of ours has anything to say outside a call.
            let Some(desk) = desk else { return };
            desk.lay(Laid {
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
