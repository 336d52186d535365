//! Feeds kept right against the sandbox: client, sandbox and sync together, over real sockets, on
//! clocks that stand still.

mod bench;
mod convergence;
mod model;
mod recovery;
mod revisions;
mod spending;
mod states;
