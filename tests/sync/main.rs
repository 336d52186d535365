//! Syncs from the sandbox: client, sandbox and sync together, over real sockets, on clocks that
//! stand still.

#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

mod bench;
mod convergence;
mod model;
mod reads;
mod recovery;
mod revisions;
mod spending;
mod states;
mod target;
