//! Feeds kept right against the sandbox: client, sandbox and sync together, over real sockets, on
//! clocks that stand still.

#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

mod bench;
mod convergence;
mod home;
mod model;
mod recovery;
mod revisions;
mod spending;
mod states;
