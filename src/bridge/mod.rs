//! The crossing between Python and the core: the only files that know threads, event loops, fork and
//! the end of the process.

pub(crate) mod awaitable;
pub(crate) mod call;
pub(crate) mod coroutine;
mod delivery;
pub(crate) mod errors;
pub(crate) mod logging;
pub(crate) mod long_work;
pub(crate) mod modules;
pub(crate) mod notes;
pub(crate) mod panics;
pub(crate) mod process;
pub(crate) mod refusals;
pub(crate) mod runtime;
mod steps;
