//! The daily allowance of data requests (§8), counted before the bytes of a request leave.
//!
//! A [`Ledger`] keeps the count: in memory for the life of a client, or in a file that processes
//! share. All of them count by the same [`Count`]. Times are the service's: which day a request falls
//! in is the service's business.
//!
//! Token requests are limited too, across the whole integration (§5.4): a ledger counts them, and
//! keeps the pause that the service asked for, so that all who share the ledger wait for its end. It
//! never holds a token.
//!
//! | file | noun |
//! |---|---|
//! | `time_of_day` | when the service's day begins |
//! | `state` | what is used and left |
//! | `count` | the arithmetic: days, pins and pauses |
//! | `ledger` | the trait of those who keep a count |
//! | `memory` | the ledger in memory |
//! | `text` | a count as the text of a file |
//! | `locked` | that file, open and locked |
//! | `file` | the ledger in a file |
//! | `default` | the file in the user's state folder, or memory where none can be made |

mod count;
mod default;
mod file;
mod ledger;
mod locked;
mod memory;
mod state;
mod text;
mod time_of_day;

pub use self::count::{Reservation, Terms};
pub use self::default::DefaultLedger;
pub use self::file::{FileLedger, Integration};
pub use self::ledger::Ledger;
pub use self::memory::MemoryLedger;
pub use self::state::AllowanceState;
pub(crate) use self::state::exhausted;
pub use self::time_of_day::TimeOfDay;
