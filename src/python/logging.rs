//! The core's records, handed to the stdlib loggers `siteline.token`, `siteline.http` and
//! `siteline.data`; those of other crates go nowhere.
//!
//! A logging call runs the user's code: it may wait for a lock, or use the client itself. So the
//! core never makes one while it works. It lays its records down here, and they are handed over
//! where nothing is held: at the end of the call that waited, and while it waits by a thread of the
//! runtime.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;
use pyo3_log::Caching;

use crate::python::process::{attached, undivided};
use crate::python::runtime::detached;

/// Beyond this the oldest go: a handler hangs, and memory has an end.
const MOST: usize = 10_000;
/// How long the end of a call waits for records that another thread is handing over.
const OTHERS: Duration = Duration::from_millis(250);
const LOOK: Duration = Duration::from_millis(1);

static LOGGER: OnceLock<pyo3_log::Logger> = OnceLock::new();
static DESK: Mutex<Desk> = Mutex::new(Desk { laid: VecDeque::new(), handing: 0 });

thread_local! {
    static HANDING: Cell<bool> = const { Cell::new(false) };
}

struct Desk {
    laid: VecDeque<Laid>,
    /// Threads with a record in hand.
    handing: usize,
}

struct Laid {
    level: Level,
    target: String,
    text: String,
    module: Option<&'static str>,
    file: Option<&'static str>,
    line: Option<u32>,
}

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
        let laid = Laid {
            level: record.level(),
            target: record.target().to_owned(),
            text: record.args().to_string(),
            module: record.module_path_static(),
            file: record.file_static(),
            line: record.line(),
        };
        let mut desk = desk();
        if desk.laid.len() == MOST {
            desk.laid.pop_front();
        }
        desk.laid.push_back(laid);
    }

    fn flush(&self) {}
}

/// Only within a step, or with the interpreter held: a fork may not come upon it.
fn desk() -> MutexGuard<'static, Desk> {
    DESK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands over what lies here, on this thread, and waits a moment for what others have in hand, so
/// that a call's records are there when it returns. Hold nothing here.
///
/// # Errors
/// What the handlers raised first; `logging` itself keeps all but Ctrl-C and its like.
pub(crate) fn hand_over(py: Python<'_>) -> PyResult<()> {
    if HANDING.get() {
        return Ok(());
    }
    let outcome = hand_over_what_lies(py);
    if desk().handing > 0 {
        detached(py, || {
            let mut waited = Duration::ZERO;
            while undivided(|| desk().handing > 0) && waited < OTHERS {
                thread::sleep(LOOK);
                waited += LOOK;
            }
        })?;
    }
    outcome
}

/// Whether a thread should be found to hand over what lies here.
pub(crate) fn is_waiting() -> bool {
    undivided(|| {
        let desk = desk();
        desk.handing == 0 && !desk.laid.is_empty()
    })
}

/// On a thread of the runtime: hands over what lies here while the call that said it goes on.
pub(crate) fn hand_over_meanwhile() {
    attached(|py| {
        if let Err(raised) = hand_over_what_lies(py) {
            raised.write_unraisable(py, None);
        }
    });
}

/// As [`hand_over`], without waiting for others.
pub(crate) fn hand_over_what_lies(py: Python<'_>) -> PyResult<()> {
    let mut outcome = Ok(());
    HANDING.set(true);
    while let Some(laid) = take() {
        let handed = laid.hand_over(py);
        desk().handing -= 1;
        outcome = outcome.and(handed);
    }
    HANDING.set(false);
    outcome
}

fn take() -> Option<Laid> {
    let mut desk = desk();
    let laid = desk.laid.pop_front()?;
    desk.handing += 1;
    Some(laid)
}

impl Laid {
    fn hand_over(self, py: Python<'_>) -> PyResult<()> {
        let Some(logger) = LOGGER.get() else { return Ok(()) };
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

/// In a forked child: nobody has a record in hand, and what lies here the parent hands over.
pub(crate) fn forked() {
    let mut desk = desk();
    desk.laid.clear();
    desk.handing = 0;
    HANDING.set(false);
}

/// Begins taking records, unless another extension in this process came first with a logger of its
/// own.
pub(crate) fn install(py: Python<'_>) {
    let Ok(logger) = pyo3_log::Logger::new(py, Caching::Nothing) else { return };
    if log::set_logger(&Layer).is_ok() {
        drop(LOGGER.set(logger.filter(LevelFilter::Debug)));
        log::set_max_level(LevelFilter::Debug);
    }
}
