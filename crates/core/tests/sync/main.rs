//! Client, sandbox and sync together, over real sockets, with frozen clocks.

#![expect(clippy::disallowed_methods, reason = "each test has its own runtime")]

mod concurrency;
mod convergence;
mod harness;
mod ledger;
mod max_pages;
mod reads;
mod recovery;
mod revisions;
mod set_aside;
mod states;
mod target;
#[expect(dead_code, reason = "the unit tests use more of it")]
#[path = "../../src/test_kit.rs"]
mod test_kit;
