//! What the operating system refuses: one description for each I/O error, and threads that are started
//! without a panic.
//!
//! No text here comes from a file or from the service, so all of it may be shown.

mod limits;
mod refusal;
mod threads;

pub(crate) use self::refusal::{advice, exhausted_files, is_passing, lacks_files, reason};
pub(crate) use self::threads::{Refused, begin, no_thread, on_thread, start};
