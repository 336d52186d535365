//! Handles failures of the operating system. Describes each I/O error in the same way everywhere,
//! and starts threads without a panic.
//!
//! No text in this module originates from a file or from the service, so users may see all of it.

mod limits;
mod refusal;
mod threads;

pub use self::refusal::{advice, reason};
pub(crate) use self::refusal::{exhausted_files, is_passing, lacks_files};
pub use self::threads::{no_thread, on_thread, start};
