//! The agent: one process that holds the key and the ledger for many clients.
//!
//! Clients request access tokens and pages from it, so extra processes get no extra allowance. A
//! page is counted before it is granted. If a client or the agent is killed, the count is too high,
//! never too low.

mod address;
mod admission;
mod connection;
mod link;
mod listener;
mod message;
mod pages;
mod routes;
mod server;
mod trust;

pub use self::address::{AgentAddress, Place};
pub(crate) use self::link::AgentIssuer;
pub use self::link::AgentLink;
pub use self::listener::{Listen, TlsListen};
pub use self::message::Holder;
pub use self::routes::Lessor;
pub use self::server::{Agent, AgentOptions};
pub use self::trust::ClientTls;

/// Disables core dumps, so that a crash never writes the private key to disk. Other processes of
/// the same user cannot read the memory of this process either. Child processes are unaffected. Has
/// no effect on systems other than Linux.
pub fn forbid_core_dumps() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        log::warn!(target: "siteline::token", "core dumps cannot be disabled: {error}");
    }
}
