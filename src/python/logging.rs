//! The core's records, handed to the stdlib loggers `siteline.token`, `siteline.http` and
//! `siteline.data`; those of other crates go nowhere.
//!
//! A logging call runs Python code, and Ctrl-C may strike just there. What it raises belongs to the
//! call that waits: [`watched`] brings it there.

use std::cell::RefCell;

use log::{LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;
use pyo3_log::Caching;

tokio::task_local! {
    /// What logging raised first while the innermost wait was being driven.
    static RAISED: RefCell<Option<PyErr>>;
}

struct Logging(pyo3_log::Logger);

impl Log for Logging {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        // `None` while Python shuts down: then nobody listens.
        Python::try_attach(|py| {
            self.0.log(record);
            // pyo3-log leaves it pending, where it would spoil whatever is called next.
            if let Some(raised) = PyErr::take(py) {
                keep(py, raised);
            }
        });
    }

    fn flush(&self) {}
}

fn keep(py: Python<'_>, raised: PyErr) {
    let mut raised = Some(raised);
    let waiting = RAISED.try_with(|slot| {
        let mut slot = slot.borrow_mut();
        if slot.is_none() {
            *slot = raised.take();
        }
    });
    if waiting.is_err()
        && let Some(raised) = raised
    {
        raised.write_unraisable(py, None);
    }
}

/// Runs `step`; what logging raised meanwhile comes out beside its value.
pub(crate) fn watched<T>(step: impl FnOnce() -> T) -> (T, Option<PyErr>) {
    RAISED.sync_scope(RefCell::default(), || (step(), RAISED.with(RefCell::take)))
}

/// Begins handing records over, unless another extension in this process came first with a logger
/// of its own.
pub(crate) fn install(py: Python<'_>) {
    let Ok(logger) = pyo3_log::Logger::new(py, Caching::Nothing) else { return };
    let logger =
        logger.filter(LevelFilter::Off).filter_target("siteline".to_owned(), LevelFilter::Debug);
    if log::set_boxed_logger(Box::new(Logging(logger))).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}
