//! An agent: a token and an allowance that another process holds (§5.4: extra processes give no extra
//! allowance).
//!
//! One process has the key and the ledger; many ask it for access tokens and for pages that they may
//! request. A page is counted before it is granted, so that a client or an agent that is killed counts
//! too many, never too few.
//!
//! | file | contents |
//! |---|---|
//! | `address` | where an agent listens, and whose tokens it has |
//! | `message` | what both sides say to each other |
//! | `trust` | certificates and secrets, over a network |
//! | `connection` | one call of a client |
//! | `pages` | the pages that a process was granted |
//! | `link` | the client's side: a [`Ledger`](crate::http::Ledger) and an issuer of tokens |
//! | `lessor` | what the agent needs of the client that has the key |
//! | `leases` | the pages that it granted |
//! | `routes` | what it answers |
//! | `listener` | its socket |
//! | `server` | its thread |
//! | `core_dump` | no key on a disk when the process crashes |

mod address;
mod admission;
mod connection;
mod core_dump;
mod door;
mod leases;
mod lessor;
mod link;
mod listener;
mod message;
mod pages;
mod routes;
mod server;
mod trust;

pub use self::address::{AgentAddress, Place};
pub use self::core_dump::forbid_core_dumps;
pub(crate) use self::lessor::Lessor;
pub use self::link::AgentLink;
pub(crate) use self::link::{AgentIssuer, AgentLedger};
pub use self::listener::{Listen, TlsListen};
pub use self::message::Holder;
pub use self::server::{Agent, AgentOptions};
pub use self::trust::ClientTls;
