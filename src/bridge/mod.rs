//! The crossing between Python and the core: threads, event loops, fork and exit.

pub(crate) mod call;
pub(crate) mod errors;
pub(crate) mod event_loop;
pub(crate) mod events;
pub(crate) mod logging;
pub(crate) mod long_work;
pub(crate) mod observers;
pub(crate) mod panics;
pub(crate) mod process;
pub(crate) mod runtime;
