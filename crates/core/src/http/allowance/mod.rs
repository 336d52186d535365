//! The daily allowance of data requests (§8), counted before a request is sent.
//!
//! A [`Ledger`] counts in memory for the lifetime of a client, or in a file that processes share.
//! All ledgers use the same `Count`. The service's clock decides to which day a request belongs,
//! and it is known only by evidence: no step of this machine's clock and no single reply opens a
//! new day.
//!
//! Token requests are limited per integration too (§5.4). A ledger counts them and stores the pause
//! that the service requested, so that all processes that share the ledger wait until its end. A
//! ledger never contains a token.

mod count;
mod days;
mod file;
mod ledger;
mod local;
mod locked;
mod loose;
mod service_clock;
#[cfg(test)]
mod simulation_tests;
mod state;
mod tally;
#[cfg(test)]
mod test_moments;
mod time_of_day;

pub use self::count::Terms;
pub use self::file::Integration;
pub use self::ledger::{Ledger, Outcome, Permit, Reservation};
pub use self::local::LocalLedger;
pub use self::state::AllowanceState;
pub(crate) use self::state::exhausted;
pub use self::time_of_day::TimeOfDay;
